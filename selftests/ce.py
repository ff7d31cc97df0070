#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Marks in both directions, against stock dctcp in the same boot: what the receiver answers to each
# change of CE, when it answers, and what the sender's alpha and threshold make of ECE and of loss; what
# carries ECT. docs/rfc8257.md says which requirement of RFC 8257 each case shows.
#
# "At once" is before the write of the packet into the device has returned, so no clock is asked.

import socket
import struct
import time

import ktap
import modules
from farend import ACK, CE, CWR, ECE, ECT0, NOT_ECT, RECOVERY, RST, Connection, Net

STOCK, FLOOR = "dctcp", "dctcp_floor"

suite = ktap.Suite()


def answers(c, segments):
    """(bytes acknowledged so far, ECE) of each ACK."""
    return [((s.ack - c.base) & 0xFFFFFFFF, bool(s.flags & ECE)) for s in segments]


def delaying(net, algorithm):
    """A connection whose receiver delays ACKs: quick ACKs are used up, a reply was written."""
    c = Connection(net, algorithm, ecn="rfc3168").establish()
    for _ in range(40):
        c.data(100)
        c.write(10)
        c.ack(to=(c.una + 10) & 0xFFFFFFFF)
    c.base = c.seq
    return c


def both(net, act):
    """Runs `act` on a delaying connection of each algorithm."""
    seen = {}
    for algorithm in (STOCK, FLOOR):
        c = delaying(net, algorithm)
        seen[algorithm] = act(c)
        c.close()
        ktap.note(f"{algorithm}: {seen[algorithm]}"[:150])
    return seen[STOCK], seen[FLOOR]


def control(first):
    """A lone unmarked segment must be left waiting, or "at once" means nothing."""
    if first:
        raise ktap.Void(f"the receiver does not delay ACKs: {first}")


def add_receiver(net):
    """C10 and C11."""

    @suite.case("CE begins while an ACK is delayed: the old ACK without ECE, then one with it (C10)")
    def _begins():
        def act(c):
            control(answers(c, c.data(100)))
            return answers(c, c.data(100, ecn=CE))

        stock, floor = both(net, act)
        ktap.equal(floor, [(100, False), (200, True)], "answers")
        ktap.equal(floor, stock, "answers, as stock's")

    @suite.case("CE ends while an ACK is delayed: the old ACK with ECE, then one without (C10)")
    def _ends():
        def act(c):
            c.data(100, ecn=CE)
            # Until a marked segment is left waiting.
            for _ in range(40):
                if not c.data(100, ecn=CE):
                    break
                c.wait(0)
            else:
                raise ktap.Void("the receiver does not delay ACKs of marked segments")
            c.base = c.seq - 100
            return answers(c, c.data(100, ecn=ECT0))

        stock, floor = both(net, act)
        ktap.equal(floor, [(100, True), (200, False)], "answers")
        ktap.equal(floor, stock, "answers, as stock's")

    @suite.case("CE on a lone segment is acknowledged at once, with ECE; its end too, without (C11)")
    def _lone():
        def act(c):
            control(answers(c, c.data(100)))
            c.wait(0.5)
            return answers(c, c.data(100, ecn=CE)) + answers(c, c.data(100))

        stock, floor = both(net, act)
        ktap.equal(floor, [(200, True), (300, False)], "answers")
        ktap.equal(floor, stock, "answers, as stock's")

    @suite.case("a segment with CWR is acknowledged at once (aae06bf5f904)")
    def _cwr():
        def act(c):
            control(answers(c, c.data(100)))
            c.wait(0.5)
            return answers(c, c.data(100, flags=CWR))

        stock, floor = both(net, act)
        ktap.equal(floor, [(200, False)], "answers")
        ktap.equal(floor, stock, "answers, as stock's")

    @suite.case("CE and CWR on one segment: CWR is processed first, and the answer has ECE")
    def _both_bits():
        def act(c):
            control(answers(c, c.data(100)))
            c.wait(0.5)
            # CE already, so that nothing but CWR is new; and once more while it is not.
            return (answers(c, c.data(100, ecn=CE)) + answers(c, c.data(100, ecn=CE, flags=CWR))
                    + answers(c, c.data(100)) + answers(c, c.data(100, ecn=CE, flags=CWR)))

        stock, floor = both(net, act)
        ktap.equal(floor, [(200, True), (300, True), (400, False), (500, True)], "answers")
        ktap.equal(floor, stock, "answers, as stock's")

    @suite.case("a pure ACK with CWR ends ECE until the next data: a deviation of core TCP's")
    def _pure_cwr():
        def act(c):
            control(answers(c, c.data(100)))
            c.wait(0.5)
            seen = answers(c, c.data(100, ecn=CE))
            c.inject(ACK | CWR)
            seen.append([bool(s.flags & ECE) for s in c.write(10)])
            return seen + (answers(c, c.data(100, ecn=CE)) or answers(c, c.wait(0.5)))

        stock, floor = both(net, act)
        ktap.equal(floor, [(200, True), [False], (300, True)], "answers, and ECE on data")
        ktap.equal(floor, stock, "as stock's")

    @suite.case("a segment without ECT leaves the CE state as it is: a deviation of core TCP's")
    def _not_ect():
        def act(c):
            control(answers(c, c.data(100)))
            c.wait(0.5)
            seen = answers(c, c.data(100, ecn=CE))
            seen += answers(c, c.data(100, ecn=NOT_ECT)) or answers(c, c.wait(0.5))
            return seen + [c.dctcp().ce_state]

        stock, floor = both(net, act)
        ktap.equal(floor, [(200, True), (300, True), True], "answers and CE state")
        ktap.equal(floor, stock, "as stock's")

    @suite.case("marks at every place of a train of 12: every answer is stock's")
    def _train():
        def act(c):
            seen = []
            for pattern in (0b000000000001, 0b101010101010, 0b000111000111, 0b011011100100):
                for i in range(12):
                    seen.append(answers(c, c.data(100, ecn=CE if pattern >> i & 1 else ECT0)))
                seen.append(answers(c, c.wait(0.5)))
            return seen

        stock, floor = both(net, act)
        if not any(ece for step in stock for _, ece in step):
            raise ktap.Void("no ECE was seen")
        ktap.equal(floor, stock, "answers, as stock's")


def add_handshake(net):
    """RFC 8257 §3.6: what a mark on a packet of the handshake does."""

    @suite.case("CE on a SYN or SYN-ACK is ignored: the CE state stays false, and no ECE is sent")
    def _syn():
        def act(c):
            seen = [bool(s.flags & ECE) for s in c.write(10)] + [c.dctcp().ce_state]
            # Control: a marked segment of data is answered with ECE.
            return seen + [bool(s.flags & ECE) for s in c.data(100, ecn=CE)]

        for passive in (False, True):
            stock, floor = each(net, act, passive=passive, syn_ecn=CE)
            ktap.equal(floor, [False, False, True], f"ECE, CE state, ECE after CE; passive {passive}")
            ktap.equal(floor, stock, "as stock's")


def windows(c, count, marks):
    """`count` windows of 2 packets; marks(i) tells whether window i is marked. Yields alphas."""
    packet = c.packet
    for i in range(count):
        c.write(2 * c.MSS)
        for _ in range(2):
            packet += 1
            c.ack(packet, flags=ECE if marks(i) else 0)
        c.packet = packet
        yield c.dctcp().alpha


def each(net, act, **how):
    """Runs `act` on a fresh connection of each algorithm."""
    seen = {}
    for algorithm in (STOCK, FLOOR):
        with Connection(net, algorithm, **how) as c:
            c.packet = 0
            seen[algorithm] = act(c)
    return seen[STOCK], seen[FLOOR]


def add_sender(net):
    """C14, C15, and the reaction to marks."""

    @suite.case("alpha rises with marks and goes back to 0, all the way, when they stop (C14)")
    def _alpha():
        # Fifteen marked windows take what is wanted below 2; the script knows no pacing.
        with modules.Parameter("tcp_dctcp_floor", "pace_below_floor", "N"):
            stock, floor = each(net, lambda c: list(windows(c, 110, lambda i: 5 <= i < 20)))
        ktap.note(f"alpha: {floor[:6]} … {floor[17:22]} … {floor[80:84]} …")
        if stock[19] <= stock[4]:
            raise ktap.Void("stock's alpha did not rise with marks")
        ktap.equal(floor[-1], 0, "alpha at the end")
        ktap.equal(floor, stock, "alpha, window by window, as stock's")

    @suite.case("alpha follows a mixed pattern of marks as stock's does")
    def _mixed():
        stock, floor = each(net, lambda c: list(windows(c, 60, lambda i: i % 7 in (0, 3))))
        ktap.equal(floor, stock, "alpha, window by window, as stock's")

    @suite.case("a mark reduces by alpha, a loss halves, also where nothing was marked (C15)")
    def _reduce():
        def act(c):
            seen = []
            for loss in (False, True):
                before = c.info().cwnd
                c.write(8 * c.MSS)
                if loss:
                    if not c.ack(c.packet, sacks=[(c.packet + 1, c.packet + 4)]):
                        c.wait(1)
                    ktap.equal(c.info().ca_state, RECOVERY, "CA state")
                else:
                    c.ack(c.packet + 1, flags=ECE)
                seen.append((before, c.info().ssthresh))
                c.packet += 8
                c.ack(c.packet)
                c.write(c.MSS)
                c.packet += 1
                c.ack(c.packet)
            return seen

        for start in (0, 512, 1024):
            with modules.Parameter("tcp_dctcp", "dctcp_alpha_on_init", start), \
                 modules.Parameter("tcp_dctcp_floor", "dctcp_alpha_on_init", start):
                stock, floor = each(net, act)
            ktap.note(f"alpha {start}: (cwnd, ssthresh) at a mark and at a loss: {floor}")
            ktap.equal(floor, stock, "as stock's")
            cwnd, ssthresh = floor[1]
            ktap.equal(ssthresh, max(2, cwnd // 2), f"ssthresh after a loss at {cwnd}")
            if start == 0:
                ktap.equal(floor[0][1], floor[0][0], "ssthresh after a mark with alpha 0")


    @suite.case("marks of one window reduce once, and CWR says so once")
    def _once():
        def act(c):
            c.write(8 * c.MSS)
            thresholds, flags = [], []
            for packet in range(1, 9):
                flags += [bool(s.flags & CWR) for s in c.ack(packet, flags=ECE)]
                flags += [bool(s.flags & CWR) for s in c.write(c.MSS)]
                thresholds.append(c.info().ssthresh)
            # All that was out when the first mark came is acknowledged: the next mark is a new one.
            end = c.at(8)
            sent = c.ack(to=(end + len(flags) * c.MSS) & 0xFFFFFFFF, flags=ECE) + c.write(2 * c.MSS)
            flags += [bool(s.flags & CWR) for s in sent]
            return thresholds, flags, c.info().ssthresh

        # Segments one by one: TSO would defer them by the clock.
        net.run("ip", "link", "set", "tun0", "gso_max_segs", "1")
        try:
            stock, floor = each(net, act)
        finally:
            net.run("ip", "link", "set", "tun0", "gso_max_segs", "65535")
        thresholds, flags, after = floor
        ktap.note(f"ssthresh {thresholds}, then {after}; CWR {flags}")
        ktap.equal(len(set(thresholds)), 1, "thresholds within a window")
        ktap.equal(after < thresholds[0], True, "the next window's is less")
        ktap.equal(sum(flags), 2, "segments with CWR")
        ktap.equal(floor, stock, "as stock's")

    @suite.case("the window at a mark is cwnd·(1 − alpha/2), packet by packet of a grid")
    def _cwnd():
        for start in (0, 300, 700, 1024):
            with modules.Parameter("tcp_dctcp", "dctcp_alpha_on_init", start), \
                 modules.Parameter("tcp_dctcp_floor", "dctcp_alpha_on_init", start):
                def act(c):
                    c.write(10 * c.MSS)
                    before = c.info().cwnd
                    for packet in range(1, 11):
                        c.ack(packet, flags=ECE if packet == 1 else 0)
                    c.write(c.MSS)
                    c.ack(11)
                    # The first ACK ends a window of its own: alpha is an ACK older than the mark.
                    return before, c.info().ssthresh

                stock, floor = each(net, act)
            alpha = start - (start >> 4 or start)
            alpha = min(1024, alpha + (1 << 6))
            before, ssthresh = floor
            ktap.note(f"alpha {start}, after the first window {alpha}: {before} -> {ssthresh}")
            ktap.equal(ssthresh, max(2, before - (before * alpha >> 11)), "ssthresh")
            ktap.equal(floor, stock, "as stock's")


def add_accurate(net):
    """Accurate ECN: marks go back, and come back, as a counter of packets."""

    def sends(c):
        """Alpha and window, window by window, while the peer counts marks."""
        seen = []
        for i in range(60):
            c.write(2 * c.MSS)
            for packet in (2 * i + 1, 2 * i + 2):
                c.ack(packet, marks=int(i % 7 in (0, 3)))
            seen.append((c.dctcp().alpha, c.info().cwnd))
        return seen

    def receives(c):
        """The counter, modulo 8, on what is sent after each segment of a pattern of marks."""
        seen = []
        for i in range(20):
            c.data(100, ecn=CE if i % 3 else ECT0)
            seen += [s.ace for s in c.write(10)]
            c.ack(to=(c.una + 10) & 0xFFFFFFFF)
        return seen

    for family, version in ((socket.AF_INET, "IPv4"), (socket.AF_INET6, "IPv6")):
        for passive in (False, True):
            def accurate(how=dict(ecn="accecn", family=family, passive=passive)):
                def act(c):
                    ktap.equal(c.accurate, True, "Accurate ECN was agreed on")
                    return sends(c)

                net.sysctl("net.ipv4.tcp_ecn", 3)
                try:
                    stock, floor = each(net, act, **how)
                    counters = each(net, receives, **how)
                finally:
                    net.sysctl("net.ipv4.tcp_ecn", 1)
                ktap.note(f"(alpha, cwnd): {floor[:4]} … {floor[-4:]}; counter {counters[1]}")
                if not any(after > before for (before, _), (after, _) in zip(stock, stock[1:])):
                    raise ktap.Void("stock's alpha did not rise with marks")
                ktap.equal(floor, stock, "alpha and window, as stock's")
                # Begins at 5; two of three segments are marked.
                marks = [sum(1 for i in range(n + 1) if i % 3) for n in range(20)]
                ktap.equal(counters[1], [(5 + m) % 8 for m in marks], "the counter")
                ktap.equal(counters[1], counters[0], "the counter, as stock's")

            side = "passive" if passive else "active"
            suite.cases.append((f"Accurate ECN: alpha follows the peer's counter, the peer hears of "
                                f"each mark, {version}, {side} open", accurate))


def add_ect(net):
    """What carries ECT(0): RFC 8257 wants it on SYN, SYN-ACK and RST as well."""

    def kinds(algorithm, how):
        with Connection(net, algorithm, rtt=0.1, **how) as c:
            sent = c.write(4 * c.MSS)
            seen = {"SYN": c.handshake[0].ecn, "data": sent[0].ecn}
            time.sleep(0.1)
            again = [s for n in (2, 3, 4) for s in c.ack(0, sacks=[(1, n)])] or c.wait()
            ktap.equal(again[0].seq, c.at(0), "the retransmission")
            seen["retransmission"] = again[0].ecn
            seen["pure ACK"] = [s for s in c.data(100) + c.data(100) if not s.length][0].ecn
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.sock.close()
            reset = [s for s in c.now() if s.flags & RST]
            seen["RST"] = reset[0].ecn
            return seen

    for family, version in ((socket.AF_INET, "IPv4"), (socket.AF_INET6, "IPv6")):
        for passive in (False, True):
            how = {"family": family, "passive": passive}

            def ect(how=how):
                stock, floor = kinds(STOCK, how), kinds(FLOOR, how)
                ktap.note(f"{floor}")
                ktap.equal(floor, dict.fromkeys(floor, ECT0), "ECT")
                ktap.equal(floor, stock, "as stock's")

            side = "SYN-ACK" if passive else "SYN"
            suite.cases.append((f"{side}, data, retransmissions, ACKs and RST carry ECT(0), {version}", ect))


def main():
    """Makes the cases and runs them."""
    modules.need_root("ip")
    modules.need_stock_dctcp()
    modules.load("tcp_dctcp_floor")
    net = Net()
    net.sysctl("net.ipv4.tcp_ecn", 1)
    # Alpha's windows are not to be cut short by the window's decay in between.
    net.sysctl("net.ipv4.tcp_slow_start_after_idle", 0)
    add_receiver(net)
    add_handshake(net)
    add_sender(net)
    add_accurate(net)
    add_ect(net)
    suite.run()


main()
