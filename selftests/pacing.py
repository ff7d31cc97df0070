#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Pacing below the floor: after a loss at the floor, where more than a quarter is marked, dctcp_floor keeps cwnd at
# 2 and sends a packet every RTT/w, with and without sch_fq; and it is stock again afterwards.
#
# The peer answers after 150 ms. A loss takes the window to 1, the next to 1/2, a packet every 300 ms.
# Control: the same with pace_below_floor=N, and marks without a loss.

import time

import ktap
import modules
from farend import ECE, Connection, Net

FLOOR, STOCK = "dctcp_floor", "dctcp"
RTT = 0.15
#: Enough marks for a window of 2: ten packets, five, two.
MARKS = 18
PACKETS = 80
#: RPCs of one packet, one after the other.
RPCS = 12

suite = ktap.Suite()


class Peer:
    """Acknowledges packet after packet, an RTT after each was sent."""

    def __init__(self, connection, packets):
        self.c, self.acked, self.out = connection, 0, 0
        self.write(packets * connection.MSS)

    def saw(self, segments):
        """Counts what came out; what waits in sch_fq has not."""
        for segment in segments:
            end = (segment.end - self.c.at(0)) & 0xFFFFFFFF
            self.out = max(self.out, end // self.c.MSS)
        return segments

    def write(self, length):
        """The application writes; returns what left at once."""
        return self.saw(self.c.write(length))

    def now(self):
        """What came out by now."""
        return self.saw(self.c.now())

    def wait(self, timeout=5):
        """What comes out next."""
        return self.saw(self.c.wait(timeout))

    @property
    def waiting(self):
        """Packets that came out and are not acknowledged."""
        return self.out - self.acked

    def ack(self, flags=0):
        """Acknowledges the next packet, and returns how many that makes leave at once."""
        if not self.waiting:
            self.wait()
            ktap.equal(self.waiting > 0, True, "a packet came out")
        time.sleep(RTT)
        self.now()
        self.acked += 1
        return len(self.saw(self.c.ack(self.acked, flags=flags)))

    def frees(self, qdisc, flags=0):
        """The next ACK makes a packet leave: at once, or, since sch_fq spaces stock's packets too,
        within an RTT, as TCP knows it."""
        sent = self.ack(flags)
        if not sent and not self.waiting and qdisc == "fq":
            sent = len(self.wait(max(RTT, self.c.info().rtt_us / 1e6)))
        ktap.equal(sent > 0 or self.waiting > 0, True, "an ACK lets a packet go")

    def drain(self):
        """Acknowledges what is out, with marks, until nothing is."""
        while self.waiting:
            self.ack(ECE)

    def lose(self):
        """The first of two packets is lost and the SACK of the second shows it; what repairs it is
        acknowledged with a mark."""
        while self.waiting < 2:
            # Paced they come by themselves.
            if not self.wait(3 * RTT):
                self.ack(ECE)
        time.sleep(RTT)
        first = self.acked
        self.now()
        sent = self.saw(self.c.ack(first, sacks=[(first + 1, first + 2)], flags=ECE))
        while self.c.at(first) not in [s.seq for s in sent]:
            # RACK's reordering window, a quarter of an RTT, and the time of a packet.
            more = self.wait()
            ktap.equal(len(more) > 0, True, "a retransmission came")
            sent += more
        time.sleep(RTT)
        self.acked += 2
        self.saw(self.c.ack(self.acked, flags=ECE))


def fall(net, qdisc, cc, paced, *, losses=2, packets=PACKETS):
    """A connection whose every packet was marked, with data to send, after some losses."""
    net.run("tc", "qdisc", "replace", "dev", "tun0", "root", qdisc)
    with modules.Parameter("tcp_dctcp_floor", "pace_below_floor", "Y" if paced else "N"):
        with Connection(net, cc, rtt=RTT) as c:
            peer = Peer(c, packets)
            for _ in range(MARKS):
                peer.ack(ECE)
            for _ in range(losses):
                peer.lose()
            yield c, peer


def stays_away(c, peer):
    """A marked ACK frees nothing at once. Returns how long after the packet before it the next
    one came."""
    peer.drain()
    ktap.equal(c.info().cwnd, 2, "cwnd")
    ktap.equal(len(peer.wait()), 1, "packets that came out together")
    begin = time.monotonic()
    ktap.equal(peer.ack(ECE), 0, "packets that the ACK freed")
    ktap.equal(len(peer.wait()), 1, "packets that came out together")
    return time.monotonic() - begin


def is_paced(c, least, most):
    """The rate is that of a window between `least` and `most` packets, in an RTT that may be a
    busy host's."""
    rate = c.info().pacing_rate
    ktap.equal(c.MSS * least / (2 * RTT) < rate <= c.MSS * most / RTT, True, f"rate {rate}")


def add_cases(net, qdisc):
    """The cases, under one qdisc."""

    @suite.case(f"{qdisc}: a packet every 2 RTTs, and stock once marks are on a quarter")
    def _paced():
        for c, peer in fall(net, qdisc, FLOOR, True):
            gap = stays_away(c, peer)
            ktap.note(f"the next packet after {1000 * gap:.0f} ms; {c.info().pacing_rate} bytes/s")
            ktap.equal(gap > 1.5 * RTT, True, f"a gap of {gap:.3f} s is more than 1.5 RTTs")
            is_paced(c, 1 / 2, 3 / 4)
            # Alpha goes down by a sixteenth a window: after the 22nd it is below 1/4.
            for clean in range(40):
                if c.dctcp().alpha <= 256:
                    break
                is_paced(c, 1 / 2, 1)
                peer.ack()
            ktap.equal(17 < clean < 26, True, f"{clean} ACKs without a mark")
            peer.ack()
            same_rate(c)
            # Clocked by ACKs: each makes one packet leave, or two, at once.
            for _ in range(6):
                peer.frees(qdisc)
            same_rate(c)
            if qdisc == "pfifo":
                # Nobody paces any more: a window leaves in one piece.
                while peer.acked < PACKETS:
                    peer.ack()
                cwnd = c.info().cwnd
                ktap.equal(cwnd > 3, True, f"cwnd {cwnd} has grown")
                ktap.equal(len(peer.write(cwnd * c.MSS)), cwnd, "packets that leave at once")

    @suite.case(f"{qdisc}: marks without a loss are not paced")
    def _marks():
        for c, peer in fall(net, qdisc, FLOOR, True, losses=0):
            for _ in range(3):
                peer.frees(qdisc, ECE)
            ktap.equal(c.info().cwnd, 2, "cwnd")
            same_rate(c)

    @suite.case(f"{qdisc}: a lone RPC at 1/2 packet waits for 2 RTTs at most, from 1 packet on not")
    def _rpc():
        waits = {}
        for losses in (1, 2):
            waits[losses] = []
            for c, peer in fall(net, qdisc, FLOOR, True, losses=losses, packets=MARKS + 12):
                while peer.acked < MARKS + 12:
                    peer.ack(ECE)
                for _ in range(RPCS):
                    # More than what the packet before it asked for.
                    time.sleep(2 * RTT)
                    begin = time.monotonic()
                    if not peer.write(c.MSS):
                        peer.wait()
                    waits[losses].append(time.monotonic() - begin)
                    peer.ack(ECE)
                is_paced(c, 1 / losses, 2 / losses)
            waits[losses].sort()
            ktap.note(f"w = 1/{losses}: "
                      + ", ".join(f"{1e3 * wait:.0f}" for wait in waits[losses]) + " ms")
        # One of them may have met a stall of the host.
        ktap.equal(waits[1][-3] < RTT / 2, True, "from one packet on it leaves at once")
        ktap.equal(waits[2][RPCS // 2] > RTT / 4, True, "below, starts are spread")
        ktap.equal(waits[2][-2] < 3 * RTT, True, "the wait is 2 RTTs at most")

    @suite.case(f"{qdisc}: pace_below_floor=N leaves nothing paced")
    def _off():
        for c, peer in fall(net, qdisc, FLOOR, False):
            for _ in range(3):
                peer.frees(qdisc, ECE)
            ktap.equal(c.info().cwnd, 2, "cwnd")
            same_rate(c)

    @suite.case(f"{qdisc}: stock is not paced")
    def _stock():
        for c, peer in fall(net, qdisc, STOCK, True):
            for _ in range(3):
                peer.frees(qdisc, ECE)
            same_rate(c)

    @suite.case(f"{qdisc}: another algorithm inherits no pacing")
    def _released():
        for c, peer in fall(net, qdisc, FLOOR, True):
            stays_away(c, peer)
            c.sock.setsockopt(6, 13, STOCK.encode())
            same_rate(c)
            # sch_fq keeps the gap that was promised to the packet after the last.
            peer.ack()
            peer.ack()
            for _ in range(3):
                peer.frees(qdisc)


def add_start(net):
    """The case about the size of a start; sch_fq would space its packets."""

    @suite.case("what grew since the last mark is not sent at once, where most is marked")
    def _start():
        left = {}
        for paced in (True, False):
            for c, peer in fall(net, "pfifo", FLOOR, paced, losses=0, packets=MARKS + 12):
                while peer.acked < MARKS + 12:
                    peer.ack()
                info = c.info()
                ktap.equal(info.cwnd > 3 and c.dctcp().alpha > 256, True,
                           f"cwnd {info.cwnd} has grown, alpha {c.dctcp().alpha}")
                time.sleep(RTT)
                left[paced] = len(peer.write(info.cwnd * c.MSS)) - info.cwnd
        ktap.equal(left[False], 0, "pace_below_floor=N: all leaves")
        ktap.equal(left[True] < -1, True, f"Y: {-left[True]} packets wait")


def same_rate(c):
    """The rate is what core TCP would set: 120 or 200 percent of mss*cwnd/srtt."""
    info = c.info()
    share = info.pacing_rate * info.rtt_us / 1e6 / (c.MSS * max(info.cwnd, info.unacked))
    ktap.equal(1.15 < share < 1.25 or 1.95 < share < 2.05, True, f"{share:.2f} of a window an RTT")


def main():
    """All cases without sch_fq, then with it."""
    modules.need_root("ip", "tc")
    modules.need_stock_dctcp()
    modules.load("tcp_dctcp_floor")
    net = Net()
    net.sysctl("net.ipv4.tcp_ecn", 1)
    add_cases(net, "pfifo")
    add_start(net)
    add_cases(net, "fq")
    suite.run()


main()
