#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Pacing below the floor: while DCTCP wants a window of less than 2 packets, dctcp_floor keeps cwnd
# at 2 and sends a packet every RTT/w, with and without sch_fq; and it is stock again afterwards.
#
# The peer answers after 50 ms. Marks on every packet take the window to 1/16, a packet every 800 ms:
# a gap that no delay of the host is taken for. Control: the same with pace_below_floor=N.

import time

import ktap
import modules
from farend import ECE, Connection, Net

FLOOR, STOCK = "dctcp_floor", "dctcp"
RTT = 0.05
#: Enough marks for the least window: ten packets, five, three, two, and then one by one.
MARKS = 30
PACKETS = 60

suite = ktap.Suite()


class Peer:
    """Acknowledges packet after packet, an RTT after each was sent."""

    def __init__(self, connection, packets):
        self.c, self.acked = connection, 0
        self.waiting = len(connection.write(packets * connection.MSS))

    def ack(self, flags=0):
        """Acknowledges the next packet, and returns what that makes leave at once."""
        if not self.waiting:
            self.waiting = len(self.c.wait())
            ktap.equal(self.waiting > 0, True, "a packet came out")
        time.sleep(RTT)
        self.waiting += len(self.c.now())
        self.acked += 1
        sent = len(self.c.ack(self.acked, flags=flags))
        self.waiting += sent - 1
        return sent

    def frees(self, qdisc, flags=0):
        """The next ACK makes a packet leave: at once, or, since sch_fq spaces stock's packets too,
        within an RTT."""
        sent = self.ack(flags)
        if not sent and not self.waiting and qdisc == "fq":
            self.waiting = sent = len(self.c.wait(RTT))
        ktap.equal(sent > 0 or self.waiting > 0, True, "an ACK lets a packet go")

    def drain(self):
        """Acknowledges what is out, with marks, until nothing is."""
        while self.waiting:
            self.ack(ECE)


def fall(net, qdisc, cc, paced):
    """A connection whose every packet was marked, with data to send."""
    net.run("tc", "qdisc", "replace", "dev", "tun0", "root", qdisc)
    with modules.Parameter("tcp_dctcp_floor", "pace_below_floor", "Y" if paced else "N"):
        with Connection(net, cc, rtt=RTT) as c:
            peer = Peer(c, PACKETS)
            for _ in range(MARKS):
                peer.ack(ECE)
            yield c, peer


def stays_away(c, peer):
    """The marked ACK frees nothing at once; the packet comes later. Returns how much later."""
    if peer.waiting:
        peer.drain()
    ktap.equal(c.info().cwnd, 2, "cwnd")
    begin = time.monotonic()
    peer.waiting = len(c.wait())
    ktap.equal(peer.waiting, 1, "packets that came out together")
    return time.monotonic() - begin


def add_cases(net, qdisc):
    """The cases, under one qdisc."""

    @suite.case(f"{qdisc}: a packet every 16 RTTs, and stock after two ACKs without a mark")
    def _paced():
        for c, peer in fall(net, qdisc, FLOOR, True):
            gap = stays_away(c, peer)
            rate = c.info().pacing_rate
            ktap.note(f"the next packet after {1000 * gap:.0f} ms; {rate} bytes/s")
            ktap.equal(gap > 4 * RTT, True, f"a gap of {gap:.3f} s is more than 4 RTTs")
            # A window of 1/16 in an RTT of 50 ms or a little more.
            ktap.equal(c.MSS / 16 / (2 * RTT) < rate <= c.MSS / 16 / RTT, True, f"rate {rate}")
            peer.ack()
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
                ktap.equal(len(c.write(cwnd * c.MSS)), cwnd, "packets that leave at once")

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
    add_cases(net, "fq")
    suite.run()


main()
