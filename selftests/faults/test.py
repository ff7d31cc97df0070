#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Each fault of lowtail_faults.ko injects what it says, and no more: what it counts is compared with
# what arrived, with the sender's own view, and with the same exchanges while it is off.

import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
# Where build.sh leaves them: not where the modules under test are.
os.environ["LOWTAIL_KO"] = os.environ.get(
    "LOWTAIL_FAULTS_KO", f"{HERE}/../../out/kbuild/{os.uname().release}-faults"
)

# pylint: disable=wrong-import-position
import ktap  # noqa: E402
import modules  # noqa: E402
from pair import CE, PORT, Pair, charged, exchange, info  # noqa: E402

FAULTS = ("tsq", "late", "ce", "lone", "rexmit")
suite = ktap.Suite()


def all_off(pair):
    """Switches everything off, on both sides."""
    for side in (pair.left, pair.right):
        for fault in FAULTS:
            side.fault(fault, "off")


def refused(side, fault, plan):
    """The plan is refused, and the old one stays."""
    before = side.sysctl(f"net.lowtail_faults.{fault}")
    try:
        side.fault(fault, plan)
    except OSError as error:
        ktap.equal(error.errno, 22, f"errno of '{plan}'")
    else:
        raise AssertionError(f"{fault} took '{plan}'")
    ktap.equal(side.sysctl(f"net.lowtail_faults.{fault}"), before, "the plan afterwards")


def add_switches(pair):
    """What can be switched, and what is off."""

    @suite.case("off at first, and nothing is counted or changed")
    def _off():
        c, s = pair.connect("dctcp")
        for _ in range(100):
            exchange(c, s)
        ktap.equal({p.sysctl(f"net.lowtail_faults.{f}") for f in FAULTS
                    for p in (pair.left, pair.right)}, {"off"}, "plans")
        ktap.equal({pair.left.counts(f) for f in FAULTS}, {(0, 0, 0)}, "counts")
        packets = pair.arrived()
        ktap.equal(len(packets), 100, "data packets")
        ktap.equal([p for p in packets if p[2] == CE], [], "marked packets")
        ktap.equal(info(c, "total_retrans"), 0, "retransmissions")

    @suite.case("plans are read back as written; what is not a plan is refused")
    def _plans():
        for plan in ("every 3 sport 1 dport 65535 limit 7", "random 1000000", "off"):
            pair.left.fault("ce", plan)
            ktap.equal(pair.left.sysctl("net.lowtail_faults.ce"), plan, "plan")
        pair.left.fault("ce", "every 3")
        for plan in ("", "on", "every", "every 0", "every x", "every -1", "every 4294967296",
                     "off 1", "every 1 dport 65536", "every 1 dport", "every 1 delay 5"):
            refused(pair.left, "ce", plan or " ")
        for plan in ("every 1", "every 1 delay 200001"):
            refused(pair.left, "late", plan)

    @suite.case("other ports and the other namespace are left alone")
    def _others():
        for fault in ("ce", "lone", "rexmit", "tsq"):
            pair.left.fault(fault, "every 1 dport 9001")
        c, s = pair.connect("dctcp")
        for _ in range(20):
            exchange(c, s)
        ktap.equal({pair.left.counts(f)[:2] for f in FAULTS}, {(0, 0)}, "counts")
        ktap.equal(len(pair.arrived()), 20, "data packets")


def add_ce(pair):
    """CE on the last packet of a request."""

    def marks(plan, requests, size=4000):
        pair.left.fault("ce", plan)
        c, s = pair.connect("dctcp")
        marked, others = [], 0
        for _ in range(requests):
            exchange(c, s, size)
            *body, last = pair.arrived()
            marked.append(last[2] == CE)
            others += sum(p[2] == CE for p in body)
        ktap.equal(others, 0, "marks on other packets than the last")
        ktap.equal(info(c, "total_retrans"), 0, "retransmissions")
        return marked

    @suite.case("ce: the last packet of every third request is marked, and no other packet")
    def _every():
        seen = marks(f"every 3 dport {PORT}", 30)
        ktap.equal(seen, [False, False, True] * 10, "marked")
        ktap.equal(pair.left.counts("ce"), (30, 10, 0), "counts")

    @suite.case("ce: random is the same at every run, and one in four")
    def _random():
        first, second = marks("random 4", 200, 100), marks("random 4", 200, 100)
        ktap.equal(first, second, "marked")
        ktap.note(f"{sum(first)} of 200")
        assert 25 <= sum(first) <= 75, f"{sum(first)} of 200 requests marked"

    @suite.case("ce: a limit ends it")
    def _limit():
        ktap.equal(sum(marks("every 2 limit 3", 20)), 3, "marks")
        ktap.equal(pair.left.counts("ce"), (20, 3, 0), "counts")

    @suite.case("ce: packets without ECT, or that a device will split, are skipped and counted")
    def _skipped():
        pair.left.fault("ce", "every 1")
        pair.right.sysctl("net.ipv4.tcp_ecn", "0")
        c, s = pair.connect("cubic")
        for _ in range(10):
            exchange(c, s)
        pair.right.sysctl("net.ipv4.tcp_ecn", "1")
        ktap.equal(pair.left.counts("ce"), (0, 0, 10), "counts without ECN")

        pair.left.fault("ce", "every 1")
        pair.segments(64)
        c, s = pair.connect("dctcp")
        for _ in range(10):
            exchange(c, s, 4000)
        pair.segments(1)
        ktap.equal(pair.left.counts("ce"), (0, 0, 10), "counts with TSO")
        ktap.equal([p for p in pair.arrived() if p[2] == CE], [], "marked packets")


def add_loss(pair):
    """Loss of a lone packet and of a retransmission."""

    @suite.case("lone: every fourth lone packet is lost, and costs the sender 200 ms")
    def _lone():
        pair.left.fault("lone", f"every 4 dport {PORT}")
        c, s = pair.connect()
        hit, spared = [], []
        for n in range(1, 13):
            took = exchange(c, s)
            (spared if n % 4 else hit).append(took)
            ktap.equal(info(c, "total_retrans"), n // 4, f"retransmissions after {n} exchanges")
        ktap.equal(pair.left.counts("lone"), (12, 3, 0), "counts")
        ktap.note(f"hit {min(hit) * 1e3:.0f} ms, spared {statistics.median(spared) * 1e3:.1f} ms")
        assert min(hit) >= 0.2, f"a lost lone packet cost {min(hit)} s only"
        # Each arrived once: the lost ones as their retransmissions.
        ktap.equal(len(pair.arrived()), 12, "data packets")

    @suite.case("lone: a request of two packets has none")
    def _two():
        pair.left.fault("lone", "every 1")
        c, s = pair.connect()
        for _ in range(10):
            exchange(c, s, 2000)
        ktap.equal(pair.left.counts("lone"), (0, 0, 0), "counts")
        ktap.equal(len(pair.arrived()), 20, "data packets")

    @suite.case("rexmit: retransmissions are lost as often as asked, nothing else is")
    def _rexmit():
        pair.left.fault("rexmit", "every 1 limit 2")
        c, s = pair.connect()
        for _ in range(20):
            exchange(c, s)
        ktap.equal(pair.left.counts("rexmit"), (0, 0, 0), "counts without loss")
        ktap.equal(len(pair.arrived()), 20, "data packets")

        pair.left.fault("lone", "every 1 limit 1")
        took = exchange(c, s)
        ktap.note(f"the request arrived after {took * 1e3:.0f} ms")
        ktap.equal(pair.left.counts("rexmit")[:2], (3, 2), "counts")
        ktap.equal(info(c, "total_retrans"), 3, "retransmissions")
        ktap.equal(len(pair.arrived()), 1, "data packets")


def add_completions(pair):
    """Late completions, and the wake-up that is lost."""
    # One packet, then a small write that what is in the device outweighs: corked.
    reply = (1000, 5)

    def warm():
        """A connection whose client delays ACKs."""
        c, s = pair.connect()
        for _ in range(40):
            exchange(c, s, 100, reply)
        return c, s

    def answer(c, s):
        """An exchange that finds nothing of an earlier one in the device."""
        while charged(s):
            time.sleep(0.001)
        return exchange(c, s, 100, reply)

    @suite.case("late: the charge outlives the packet by the delay, the packet is not delayed")
    def _late():
        c, s = pair.connect()
        c.sendall(b"x" * 100)
        if charged(c):
            raise ktap.Void("veth completes late by itself")
        s.recv(100)
        pair.left.fault("late", "every 1 delay 100000")
        begin = time.monotonic()
        c.sendall(b"x" * 100)
        s.recv(100)
        arrived = time.monotonic() - begin
        assert charged(c) > 0, "completed at once"
        while charged(c) and time.monotonic() - begin < 2:
            time.sleep(0.001)
        done = time.monotonic() - begin
        ktap.note(f"arrived after {arrived * 1e3:.1f} ms, completed after {done * 1e3:.1f} ms")
        assert done >= 0.1, f"completed after {done} s"
        assert arrived < done / 2, f"the packet was delayed too: {arrived} s"
        ktap.equal(pair.left.counts("late"), (1, 1, 0), "counts")
        ktap.equal(charged(c), 0, "charge in the end")

    @suite.case("late: autocorking sets in, and ends with the completion")
    def _cork():
        c, s = warm()
        before = pair.right.corked()
        off = [exchange(c, s, 100, reply) for _ in range(20)]
        ktap.equal(pair.right.corked() - before, 0, "TCPAutoCorking while off")
        pair.right.fault("late", "every 1 delay 8000")
        on = [answer(c, s) for _ in range(20)]
        corks = pair.right.corked() - before
        assert corks >= 15, f"{corks} of 20 replies corked"
        off, on = statistics.median(off), statistics.median(on)
        ktap.note(f"off {off * 1e3:.1f} ms, on {on * 1e3:.1f} ms")
        assert on >= 0.008, f"a corked reply took {on} s"
        assert on < 0.03, f"a corked reply waited for something else: {on} s"

    @suite.case("tsq: every second wake-up is lost, and the write waits for a delayed ACK")
    def _tsq():
        c, s = warm()
        pair.right.fault("late", "every 1 delay 10000")
        pair.right.fault("tsq", "every 2")
        lost, woken = [], []
        for _ in range(40):
            before = pair.right.counts("tsq")
            took = answer(c, s)
            after = pair.right.counts("tsq")
            # None is due where a busy host lets the completion come before the second write.
            if after[0] > before[0]:
                (lost if after[1] > before[1] else woken).append(took)
        seen, hit, skipped = pair.right.counts("tsq")
        ktap.equal((hit, skipped), (seen // 2, 0), "hit and skipped")
        ktap.equal((len(lost), len(woken)), (hit, seen - hit), "exchanges with one candidate each")
        # Where the client acknowledged at once, nothing was corked.
        ktap.note(f"{seen} wake-ups in 40 replies, {hit} lost")
        assert hit >= 5, f"{hit} wake-ups lost"
        ktap.note(f"woken: median {statistics.median(woken) * 1e3:.1f} ms; "
                  f"lost: median {statistics.median(lost) * 1e3:.1f}, least {min(lost) * 1e3:.1f} ms")
        assert statistics.median(woken) < 0.03, "the control waits for an ACK too"
        assert min(lost) > 0.035, "a lost wake-up cost nothing"

    @suite.case("tsq: without a corked write there is no candidate")
    def _none():
        c, s = warm()
        pair.right.fault("tsq", "every 1")
        for _ in range(20):
            exchange(c, s, 100, reply)
        ktap.equal(pair.right.counts("tsq"), (0, 0, 0), "counts")

    @suite.case("unloaded while completions are out: they come at once, and it loads again")
    def _unload():
        c, s = pair.connect()
        pair.left.fault("late", "every 1 delay 200000")
        c.sendall(b"x" * 100)
        s.recv(100)
        assert charged(c) > 0, "nothing was out"
        modules.unload("lowtail_faults")
        ktap.equal(charged(c), 0, "charge")
        exchange(c, s)
        modules.load("lowtail_faults")


def add_2018(pair):
    """The sender of 2018."""

    def windows(algorithm, plan, size):
        pair.left.fault("ce", plan)
        c, s = pair.connect(algorithm)
        seen = []
        for _ in range(30):
            exchange(c, s, size)
            seen.append(info(c, "snd_cwnd"))
        return seen

    for name, size in (("one packet", 1000), ("three packets", 4000)):

        def marked(size=size):
            stock, old = (windows(a, "every 1", size) for a in ("dctcp", "dctcp_2018"))
            ktap.note(f"dctcp {stock[-6:]}, dctcp_2018 {old[-6:]}")
            ktap.equal(min(stock), 2, "least cwnd of dctcp")
            ktap.equal(min(old), 1, "least cwnd of dctcp_2018")

        suite.case(f"dctcp_2018: CE on requests of {name} leaves cwnd 1, dctcp's 2")(marked)

    @suite.case("dctcp_2018: without marks and losses the same window as dctcp, packet for packet")
    def _same():
        pair.delay(20000)
        stock, old = (windows(a, "off", 40000) for a in ("dctcp", "dctcp_2018"))
        ktap.note(f"dctcp {stock[:6]}")
        ktap.equal(old, stock, "cwnd")


def main():
    """Sets up, runs, cleans up."""
    modules.need_root("ip", "tc")
    modules.need_stock_dctcp()
    modules.load("lowtail_faults")
    modules.load("tcp_dctcp_2018")
    for module in ("veth", "sch_netem"):
        subprocess.run(["modprobe", "-q", module], check=False)
    pair = Pair()
    for add in (add_switches, add_ce, add_loss, add_completions, add_2018):
        add(pair)
    # Every case begins with all faults off.
    suite.cases = [(name, lambda case=case: (all_off(pair), case())) for name, case in suite.cases]
    try:
        suite.run()
    finally:
        pair.close()
        modules.unload("lowtail_faults")
        modules.unload("tcp_dctcp_2018")


main()
