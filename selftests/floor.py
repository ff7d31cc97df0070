#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# The floor: dctcp_floor's window is 2 packets or more whenever something is sent, in every case in
# which stock dctcp, on the same kernel and against the same peer, is seen at 1.
#
# The window is read at every transmission. A case whose control stays at 2 or more is void.

import atexit
import random
import socket
import time

import ktap
import modules
from farend import ECE, LOSS, RECOVERY, Connection, Net
from plays import FALLS, FLOOR, HOLDS, STOCK, Plays
from watch import Watch

#: A compared one, where it can be had.
BPF = "bpf_dctcp"

suite = ktap.Suite()
plays = Plays()
algorithms = [STOCK, FLOOR]


def reordering_timer(c):
    """The first of two packets is lost; nothing but RACK's timer, a quarter of an RTT, finds it."""
    c.write(2000)
    time.sleep(SLOW["rtt"])
    ktap.equal(c.ack(0, sacks=[(1, 2)]), [], "what the SACK alone makes it send")
    ktap.equal([s.seq for s in c.wait()[:1]], [c.at(0)], "the first retransmission")
    ktap.equal(c.info().ca_state, RECOVERY, "CA state")
    c.ack(2)


def third_sack(c):
    """The first of four packets is lost; the third SACK tells."""
    c.write(4000)
    time.sleep(SLOW["rtt"])
    ktap.equal(c.ack(0, sacks=[(1, 2)]), [], "what the first SACK makes it send")
    ktap.equal(c.ack(0, sacks=[(1, 3)]), [], "what the second SACK makes it send")
    sent = c.ack(0, sacks=[(1, 4)])
    ktap.equal([s.seq for s in sent[:1]], [c.at(0)], "the first retransmission")
    ktap.equal(c.info().ca_state, RECOVERY, "CA state")
    c.ack(4)


def rto(c):
    """Both packets are lost, and the retransmission timer fires, twice."""
    c.write(2000)
    for _ in range(2):
        ktap.equal([s.seq for s in c.wait()[:1]], [c.at(0)], "the first retransmission")
        ktap.equal(c.info().ca_state, LOSS, "CA state")
    c.ack(2)


def syn_sent_thrice(c):
    """The window that the handshake leaves, when its first packet was sent three times."""
    c.write(5000)
    c.ack(1)


def undo(c):
    """An RTO that turns out to be wrong: everything had arrived (DSACK)."""
    c.write(2000)
    again = c.wait()
    c.ack(2, sacks=[(0, 1)])
    if len(again) == 2:
        c.ack(2, sacks=[(1, 2)])
    ktap.equal(c.info().ca_state not in (RECOVERY, LOSS), True, "out of Loss")
    c.write(2000)
    c.ack(4)


def undo_recovery(c):
    """A fast retransmission that turns out to be wrong: the first packet had arrived (DSACK)."""
    c.write(2000)
    time.sleep(SLOW["rtt"])
    ktap.equal(c.ack(0, sacks=[(1, 2)]), [], "what the SACK alone makes it send")
    ktap.equal([s.seq for s in c.wait()[:1]], [c.at(0)], "the first retransmission")
    c.ack(2, sacks=[(0, 1)])
    ktap.equal(c.info().ca_state != RECOVERY, True, "out of Recovery")
    c.write(2000)
    c.ack(4)


def marked(c):
    """Every ACK carries ECE: CWR episode after CWR episode, alpha at its most."""
    packet = 0
    for _ in range(12):
        waiting = len(c.write(3000))
        for _ in range(3):
            # Below the floor they are paced.
            waiting += 0 if waiting else len(c.wait())
            ktap.equal(waiting > 0, True, "a packet came out")
            packet += 1
            waiting += len(c.ack(packet, flags=ECE)) - 1


def marked_and_lost(c):
    """The window is being reduced for marks when the first of what is left is lost."""
    c.write(4000)
    c.ack(1, flags=ECE)
    c.ack(2, flags=ECE)
    sent = c.ack(2, sacks=[(3, 4)], flags=ECE) or c.wait()
    ktap.equal([s.seq for s in sent[:1]], [c.at(2)], "the first retransmission")
    c.ack(4)


SLOW = {"rtt": 0.1}
NO_ECN = {"ecn": "none"}
PASSIVE = {"passive": True}
IPV6 = {"family": socket.AF_INET6}
IPPROTO_MPTCP = 262

# name, what happens, how the connection is opened, how stock compares.
PLAYS = [
    ("Recovery by the reordering timer, active open, IPv4", reordering_timer, SLOW, FALLS),
    ("Recovery by the reordering timer, passive open, IPv4", reordering_timer, SLOW | PASSIVE, FALLS),
    ("Recovery by the reordering timer, active open, IPv6", reordering_timer, SLOW | IPV6, FALLS),
    ("Recovery by the reordering timer, passive open, IPv6", reordering_timer, SLOW | IPV6 | PASSIVE, FALLS),
    ("Recovery by the third SACK, active open", third_sack, SLOW, FALLS),
    ("Recovery by the third SACK, passive open", third_sack, SLOW | PASSIVE, FALLS),
    ("Loss after two RTOs, active open, IPv4", rto, {}, FALLS),
    ("Loss after two RTOs, passive open, IPv6", rto, IPV6 | PASSIVE, FALLS),
    ("Loss that is undone (DSACK)", undo, {}, FALLS),
    ("Loss that is undone (DSACK), passive open, IPv6", undo, IPV6 | PASSIVE, FALLS),
    ("Recovery that is undone (DSACK)", undo_recovery, SLOW, FALLS),
    ("a SYN sent three times", syn_sent_thrice, {"deaf": 2}, FALLS),
    ("a SYN-ACK sent three times, IPv6", syn_sent_thrice, IPV6 | PASSIVE | {"deaf": 2}, FALLS),
    ("without ECN: Recovery by the reordering timer", reordering_timer, SLOW | NO_ECN, FALLS),
    ("without ECN: Recovery by the third SACK, passive open", third_sack, SLOW | NO_ECN | PASSIVE, FALLS),
    ("without ECN: Loss after two RTOs", rto, NO_ECN, FALLS),
    ("without ECN: a SYN sent three times", syn_sent_thrice, NO_ECN | {"deaf": 2}, FALLS),
    ("with AccECN: Recovery by the reordering timer", reordering_timer, SLOW | {"ecn": "accecn"}, FALLS),
    ("a socket of MPTCP, fallen back to TCP: Recovery by the third SACK", third_sack,
     SLOW | {"protocol": IPPROTO_MPTCP}, FALLS),
    ("CWR: every ACK with ECE", marked, {}, HOLDS),
    ("CWR, then Recovery", marked_and_lost, {}, HOLDS),
]

# With rto_floor=N. A SYN's timeouts are RTOs too: core TCP is in Loss when the handshake is over.
WAIVED = [(rto, 1), (undo, 1), (syn_sent_thrice, 1),
          (reordering_timer, 2), (third_sack, 2), (undo_recovery, 2), (marked, 2), (marked_and_lost, 2)]


def play(net):
    """Plays everything with both algorithms; the slow handshakes overlap."""
    opened = []
    for name, act, how, _ in PLAYS:
        net.least_rto("300ms" if act in (rto, undo) else "10s")
        for algorithm in algorithms:
            if how.get("ecn") == "accecn":
                net.sysctl("net.ipv4.tcp_ecn", 3)
            opened.append((name, act, algorithm, Connection(net, algorithm, **how)))
            net.sysctl("net.ipv4.tcp_ecn", 1)
            if not how.get("deaf"):
                plays.run(*opened.pop())
    for one in opened:
        plays.run(*one)


def random_peer(net, algorithm, seed):
    """A peer that loses, marks, acknowledges in part and falls silent, by a seed."""
    dice = random.Random(seed)
    ecn = dice.choice(["rfc3168", "rfc3168", "none"])
    with Connection(net, algorithm, ecn=ecn, passive=dice.random() < 0.5) as c:
        have, end, sent, retries = set(), 0, [], 0
        for _ in range(80):
            if not sent and len(have) < end:
                # Nothing that was sent is left: a timer's turn. Some of them, or it takes long.
                retries += 1
                sent = c.wait(1) if retries < 3 else sent
            if not sent and len(have) < end:
                break
            if not sent or dice.random() < 0.2:
                count = dice.choice([1, 1, 2, 3, 10])
                sent = sent + c.write(count * c.MSS)
                end += count
            for segment in sent:
                first = ((segment.seq - c.irs - 1) & 0xFFFFFFFF) // c.MSS
                if dice.random() < 0.85:
                    have.update(range(first, first + max(1, segment.length // c.MSS)))
            una = next(i for i in range(end + 1) if i not in have)
            above = sorted(p for p in have if p > una)
            flags = ECE if dice.random() < 0.3 and ecn != "none" else 0
            sacks = [(above[0], above[0] + 1), (above[-1], above[-1] + 1)] if above else []
            sent = c.ack(una, sacks=sacks, flags=flags)
        return c.port


def add_cases(watch, random_ports):
    """One case for each play."""
    for name, _, _, wanted in PLAYS:
        suite.cases.append((name, lambda n=name, w=wanted: plays.judge(watch, n, w)))

    @suite.case("with stock in our place the cases in which it falls would fail")
    def _can_fail():
        plays.stock_fails(watch, [(name, {}) for name, _, _, wanted in PLAYS if wanted == FALLS])

    @suite.case("bpf_dctcp of the kernel's selftests falls where stock does")
    def _bpf():
        if BPF not in algorithms:
            raise ktap.Skip("bpf_dctcp was not built, or not taken (selftests/bpf_dctcp.sh)")
        falls = {}
        for name, _, _, wanted in PLAYS:
            ktap.equal(plays.played[name].get((BPF, "error")), None, f"what went wrong in {name}")
            falls[name] = plays.lowest(watch, name, BPF) < 2
            ktap.equal(falls[name], wanted == FALLS, f"{BPF} under 2 in {name}")
        ktap.note(f"{BPF} is under 2 in {sum(falls.values())} of {len(falls)} cases")

    @suite.case("a peer of chance: 6 connections of 80 steps")
    def _chance():
        lowest = {a: min(min(watch.windows(p)) for p in random_ports[a]) for a in (STOCK, FLOOR)}
        count = {a: sum(len(watch.windows(p)) for p in random_ports[a]) for a in (STOCK, FLOOR)}
        ktap.note(f"least window of {count[STOCK]} transmissions: {STOCK} {lowest[STOCK]}; "
                  f"of {count[FLOOR]}: {FLOOR} {lowest[FLOOR]}")
        if lowest[STOCK] >= 2:
            raise ktap.Void(f"{STOCK} stayed at {lowest[STOCK]}")
        ktap.equal(lowest[FLOOR] >= 2, True, f"least window {lowest[FLOOR]} is 2 or more")

    @suite.case("rto_floor=N: 1 after an RTO, and the floor elsewhere")
    def _waived():
        for act, wanted in WAIVED:
            entry = plays.played[f"rto_floor=N, {act.__name__}"]
            lowest = min(watch.windows(entry[FLOOR]))
            ktap.note(f"{act.__name__}: least window {lowest}")
            ktap.equal(entry.get((FLOOR, "error")), None, "errors")
            ktap.equal(lowest, wanted, f"least window of {act.__name__}")

    @suite.case("rto_floor=N: after an RTO, every transmission has stock's window")
    def _as_stock():
        stock = watch.windows(plays.played["Loss after two RTOs, active open, IPv4"][STOCK])
        floor = watch.windows(plays.played["rto_floor=N, rto"][FLOOR])
        ktap.note(f"windows {floor}")
        ktap.equal(floor, stock, "windows, transmission by transmission")


def main():
    """Plays, then judges."""
    modules.need_root("ip")
    modules.need_stock_dctcp()
    modules.load("tcp_dctcp_floor")
    if modules.register_bpf_dctcp():
        algorithms.append(BPF)

    watch = Watch()
    atexit.register(watch.remove)
    net = Net()
    net.sysctl("net.ipv4.tcp_ecn", 1)
    play(net)
    net.least_rto("300ms")
    random_ports = {
        a: [random_peer(net, a, seed) for seed in range(6)] for a in (STOCK, FLOOR)
    }
    with modules.Parameter("tcp_dctcp_floor", "rto_floor", "N"):
        for act, _ in WAIVED:
            deaf = 2 if act is syn_sent_thrice else 0
            net.least_rto("300ms" if act in (rto, undo) else "10s")
            connection = Connection(net, FLOOR, deaf=deaf, **SLOW)
            plays.run(f"rto_floor=N, {act.__name__}", act, FLOOR, connection)
    watch.stop()
    add_cases(watch, random_ports)
    suite.run()


main()
