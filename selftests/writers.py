#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# The rest of the places that write a connection's window (docs/window.md; floor.py has PRR, RTOs and
# undo): no packet leaves dctcp_floor with a window of 1, whoever wrote it.
#
# Under stock dctcp, in the same boot and against the same peer, the value must really be 1, or the
# case is void; where the writer cannot bring stock under 2, ours has to be the same.

import atexit
import contextlib
import ctypes
import socket
import statistics
import struct
import time

import ktap
import modules
import sockops
from farend import ACK, ADDRESSES, ECE, LOSS, OPEN, RECOVERY, SYN, Connection, Net
from plays import FALLS, FLOOR, HOLDS, SAME, STOCK, Plays
from watch import Watch

TCP_FASTOPEN_COOKIE = 34
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, TCP_REPAIR_OPTIONS, TCP_REPAIR_WINDOW = 19, 20, 21, 22, 29
RECV_QUEUE, SEND_QUEUE = 1, 2

suite = ktap.Suite()
plays = Plays()
net = None


class Late(Connection):
    """The application chooses the algorithm when the SYN is out: no init() after the handshake."""

    def open(self):
        super().open()
        self.choose(self.late)


class FastOpen(Connection):
    """Data in the SYN (RFC 7413), with a cookie that an earlier connection was given."""

    DATA = 500
    cookies = {}

    def open(self):
        if self.passive:
            self.first.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
            self.first.listen(16)
            cookie = self.cookies.get(self.family)
            length = self.DATA if cookie else 0
            self.inject(SYN | self._ecn_setup(), length=length,
                        options=self._syn_options() + self._cookie(cookie or b""))
            self.seq += length
        else:
            with contextlib.suppress(BlockingIOError):
                self.first.sendto(b"y" * self.DATA, socket.MSG_FASTOPEN, (ADDRESSES[self.family][1], 80))

    @staticmethod
    def _cookie(cookie):
        return bytes([TCP_FASTOPEN_COOKIE, 2 + len(cookie)]) + cookie

    @classmethod
    def learn(cls, family):
        """Both sides get a cookie: the kernel the peer's, the peer the kernel's."""
        cls.cookies.pop(family, None)
        with cls(net, "reno", family=family, passive=True) as c:
            options = c.handshake[0].options
            at = options.index(bytes([TCP_FASTOPEN_COOKIE, 10]))
            cls.cookies[family] = options[at + 2 : at + 10]
        client = cls(net, "reno", family=family)
        plain = client._syn_options
        client._syn_options = lambda: plain() + cls._cookie(b"lowtail!")
        with client as c:
            ktap.equal(c.handshake[0].length, 0, "data in a SYN without a cookie")

    def establish(self):
        """A server's socket is there before the handshake is over, and stays in SYN_RECV here."""
        if not self.passive or self.family not in self.cookies:
            return super().establish()
        syn = self._expect_syn()
        ktap.equal((syn.ack - 1000) & 0xFFFFFFFF, 1 + self.DATA, "what the SYN-ACK acknowledges")
        self.irs, self.una, self.handshake = syn.seq, syn.seq + 1, [syn]
        self.seq += 1
        self.accurate = False
        self.sock = self.first.accept()[0]
        self.sock.setblocking(False)
        self.first.close()
        return self


class Repaired(Connection):
    """A socket that is restored with two packets in its queue, as CRIU does it."""

    def open(self):
        first = self.first
        first.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        self.irs, self.una = 5000, 5001
        for queue, seq in ((SEND_QUEUE, self.una), (RECV_QUEUE, self.seq)):
            first.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
            first.setsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ, struct.pack("I", seq))
        first.connect((ADDRESSES[self.family][1], 80))
        first.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_OPTIONS, struct.pack("4I", 2, self.MSS, 4, 0))
        first.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_WINDOW,
                         struct.pack("5I", self.seq, 65535, 65535, 65535, self.seq))
        first.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
        ktap.equal(first.send(b"y" * 2 * self.MSS), 2 * self.MSS, "bytes restored")
        first.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)

    def establish(self):
        """Established already, without a packet."""
        self.sock, self.accurate = self.first, False
        ktap.equal([s.length for s in self.now()], [0], "what leaves when the repair is over")
        return self


def sends(c):
    """The window that the handshake leaves, and what the first ACKs make of it."""
    c.write(20000)
    for packet in range(1, 13):
        c.ack(packet)


def loss_probe(c):
    """The first of two packets is lost; the ACK of a loss probe tells."""
    c.write(2000)
    ktap.equal([s.seq for s in c.wait()], [c.at(1)], "the loss probe")
    # An ACK that came sooner than an RTT would be the first transmission's.
    time.sleep(2 * c.info().rtt_us / 1e6)
    sent = c.ack(0, sacks=[(1, 2)]) or c.wait()
    ktap.equal([s.seq for s in sent[:1]], [c.at(0)], "the first retransmission")
    ktap.equal(c.info().ca_state, RECOVERY, "CA state")
    c.ack(2)


def loss_probe_repairs(c):
    """The last of two packets is lost and the loss probe repairs it: a reduction without Recovery."""
    c.write(2000)
    c.ack(1)
    c.write(1000)
    probe = c.wait()
    ktap.equal([s.seq for s in probe], [c.at(2)], "the loss probe")
    c.ack(3)
    c.write(1000)
    before = net.counter("TCPLossProbeRecovery")
    c.ack(4)
    ktap.equal(net.counter("TCPLossProbeRecovery") - before, 1, "losses that a probe repaired")
    c.write(1000)


def mtu_probe(c, *, lost=False):
    """The path takes more than was assumed: the window is scaled down by the sizes. Or it does not."""
    success, failure = net.counter("TCPMTUPSuccess"), net.counter("TCPMTUPFail")
    sent = c.write(30 * c.MSS)
    size = sent[0].length
    while sent and all(s.length <= size for s in sent):
        sent = sent[1:] + c.ack(to=sent[0].end)
    ktap.equal(any(s.length > size for s in sent), True, "an MTU probe came")
    probe = next(s for s in sent if s.length > size)
    behind = sent[sent.index(probe) + 1 :] + c.ack(to=probe.seq)
    if lost:
        ktap.equal(len(behind) >= 3, True, "three packets behind the probe")
        for segment in behind[:3]:
            c.inject(ACK, options=struct.pack("!BBBBII", 1, 1, 5, 10, behind[0].seq, segment.end))
        c.now()
        ktap.equal(net.counter("TCPMTUPFail") - failure, 1, "MTU probes that failed")
    else:
        c.ack(to=probe.end, flags=ECE)
        ktap.equal(net.counter("TCPMTUPSuccess") - success, 1, "MTU probes that succeeded")
    c.write(4 * size)


def mtu_probe_fails(c):
    """The probe is lost, and what was taken from the window for it comes back."""
    mtu_probe(c, lost=True)


def silence(algorithm):
    """Seconds until the next transmission, when two packets were to be sent and nothing comes back: how
    many were sent, and how long it takes."""
    with Connection(net, algorithm, rtt=0.02) as c:
        sent = len(c.write(2000))
        began = time.monotonic()
        ktap.equal(c.next(2) is not None, True, "something is sent again")
        return sent, time.monotonic() - began


def idle(c):
    """The window decays while nothing is sent, towards an initial window of 1."""
    c.write(5000)
    for packet in range(1, 6):
        c.ack(packet)
    ktap.equal(c.info().cwnd >= 4, True, "the window has grown")
    Watch.mark(c.port)
    time.sleep(2)
    c.write(3000)
    c.ack(6)


def underused(c):
    """The window decays by what the application left of it. That needs a transmission an RTO after the
    last ACK with another one in between that is not acknowledged: two packets are out."""
    c.write(2000)
    for packet in (1, 2):
        c.ack(packet)
    window = c.info().cwnd
    time.sleep(0.7)
    c.write(1000)
    time.sleep(0.6)
    c.write(1000)
    c.ack(2, sacks=[])
    ktap.equal(c.info().cwnd, (window + 2) // 2, "half of what was not used is gone")
    for packet in (3, 4):
        c.ack(packet)


def zero_window(c):
    """The peer's window is shut, then open for a part: probes leave, without a question to the window."""
    c.write(1000)
    c.ack(1, window=0)
    c.write(3000)
    ktap.equal(bool(c.wait()), True, "a window probe came")
    c.ack(1, window=500)
    ktap.equal([s.length for s in c.wait()], [500], "a part is sent as a probe")
    c.ack(to=(c.una + 500) & 0xFFFFFFFF)


def at_one(c, algorithm):
    """Two RTOs: a window of 1 under any stock algorithm."""
    c.write(2000)
    for _ in range(2):
        c.wait()
        ktap.equal(c.info().ca_state, LOSS, "CA state")
    ktap.equal(c.info().cwnd, 2 if algorithm == FLOOR else 1, "window before the change")


def change_to_ours(c):
    """A stock algorithm has taken the window to 1 when ours takes over; the control keeps its own."""
    at_one(c, STOCK)
    Watch.mark(c.port)
    if c.target == FLOOR:
        c.choose(FLOOR)
    ktap.equal(len(c.data(100)) > 0 or len(c.wait()) > 0, True, "an ACK leaves")
    c.write(1000)
    c.ack(1)
    ktap.equal(c.algorithm(), FLOOR if c.target == FLOOR else c.cc, "algorithm")


def change_from_ours(c):
    """Another algorithm takes over, and gets a window of 2 or more."""
    at_one(c, c.cc)
    Watch.mark(c.port)
    if c.target != c.cc:
        c.choose(c.target)
    ktap.equal(len(c.data(100)) > 0 or len(c.wait()) > 0, True, "an ACK leaves")


def change_from_ours_then_rto(c):
    """From then on the other one's rule is in force, and nothing of ours: 1 after an RTO."""
    change_from_ours(c)
    Watch.mark(c.port)
    ktap.equal([s.seq for s in c.wait()[:1]], [c.at(0)], "the retransmission")


def reconnect(c):
    """The fallback's algorithm is kept when the socket is connected again, and has no init()."""
    ktap.equal(c.algorithm() in ("dctcp-reno", "dctcpfloor-reno"), True, "the fallback is in use")
    unspecified = struct.pack("H14x", socket.AF_UNSPEC)
    ktap.equal(ctypes.CDLL(None).connect(c.first.fileno(), unspecified, 16), 0, "disconnect")
    c.now()
    c.seq += 100000
    Watch.mark(c.port)
    with contextlib.suppress(BlockingIOError):
        c.first.connect((ADDRESSES[c.family][1], 80))
    c.deaf = 2
    c.establish()
    c.write(5000)
    c.ack(1)


def fast_open_refused(c):
    """The peer acknowledges the SYN and not its data, which is sent again."""
    # A SYN that is sent again carries none.
    ktap.equal(c.handshake[0].length, 0 if c.deaf else c.DATA, "data in the SYN")
    c.write(2000)
    c.ack(to=c.irs + 1 + c.DATA)


def fast_open_server(c):
    """The SYN-ACK is sent three times while data of the server is out already."""
    sent = c.write(2000)
    ktap.equal(len(sent), 2, "packets that the server sends in SYN_RECV")
    for _ in range(2):
        ktap.equal(bool(c._expect_syn()), True, "a SYN-ACK again")
    ktap.equal(c.info().ca_state, LOSS, "CA state")
    c.inject(ACK)
    c.now()
    c.data(100)
    c.write(1000)
    c.ack(1)


def repaired(c):
    """Nobody acknowledges what was restored."""
    ktap.equal([s.seq for s in c.wait()[:1]], [c.at(0)], "the retransmission")
    ktap.equal(c.info().ca_state, LOSS, "CA state")
    c.data(100)
    c.ack(2)


@contextlib.contextmanager
def sysctls(**values):
    """Sysctls of net.ipv4 with other values for a while."""
    before = {name: net.sysctl(f"net.ipv4.{name}") for name in values}
    for name, value in values.items():
        net.sysctl(f"net.ipv4.{name}", value)
    try:
        yield
    finally:
        for name, value in before.items():
            net.sysctl(f"net.ipv4.{name}", value)


@contextlib.contextmanager
def route(rto_min, metrics=""):
    """Routes to the far end with other metrics for a while."""
    net.route(rto_min, metrics)
    try:
        yield
    finally:
        net.route("10s")


def plain(_):
    """No setting of its own."""
    return contextlib.nullcontext()


def fast_rto(_):
    """RTOs are the matter."""
    return route("300ms")


def with_probes(_):
    """Loss probes are the matter."""
    return sysctls(tcp_early_retrans=3)


def metrics(text, rto_min="10s"):
    """Routes with these metrics."""
    return lambda _: route(rto_min, text)


def locked_cwnd(rto_min="10s"):
    """A clamp of 1. A lock counts from when something is remembered of the peer: here, its cookie."""

    @contextlib.contextmanager
    def setting(_):
        def remember():
            net.run("ip", "tcp_metrics", "flush", "all")
            for family in ADDRESSES:
                FastOpen.learn(family)

        with route(rto_min, "cwnd lock 1"):
            remember()
            yield
        remember()

    return setting


def bpf(*options):
    """A BPF program sets these options when a handshake is over."""
    return lambda _: sockops.SockOps(*options)


def bpf_chooses(algorithm):
    """It chooses the algorithm first: init() has been called, and does not come after it."""
    return sockops.SockOps((sockops.TCP_CONGESTION, algorithm), IW)


PASSIVE = {"passive": True}
IPV6 = {"family": socket.AF_INET6}
SLOW = {"rtt": 0.1}
DEAF = {"deaf": 2}
NO_ECN = {"ecn": "none"}
AFTER, DATA = {"after": True}, {"data": True}
IW = (sockops.TCP_BPF_IW, 1)
CLAMP = (sockops.TCP_BPF_SNDCWND_CLAMP, 1)


def probing(_):
    """tcp_mtu_probe() runs."""
    return sysctls(tcp_mtu_probing=2, tcp_base_mss=Probing.MSS)


class Probing(Connection):
    """The kernel begins with segments of less than half the size that the peer takes. Only a client's
    does: a server's keeps the size of the handshake."""

    MSS = 500

    def _syn_options(self):
        return struct.pack("!BBHBBBBBB", 2, 4, 1400, 1, 1, 4, 2, 1, 1)


# name, what happens, what is set up, how the connection is opened, how stock compares, what counts.
PLAYS = [
    ("TLP, then Recovery, active open", loss_probe, with_probes, SLOW, FALLS, {}),
    ("TLP, then Recovery, passive open, IPv6", loss_probe, with_probes,
     SLOW | PASSIVE | IPV6, FALLS, {}),
    ("TLP that repairs the loss: the end of a reduction", loss_probe_repairs,
     with_probes, SLOW, HOLDS, {}),
    ("an MTU probe that succeeds", mtu_probe, probing, {"kind": Probing}, HOLDS, {}),
    ("an MTU probe that succeeds, IPv6", mtu_probe, probing, {"kind": Probing} | IPV6, HOLDS, {}),
    ("an MTU probe that fails", mtu_probe_fails, probing, {"kind": Probing}, HOLDS, {}),
    ("route with initcwnd 1, active open", sends, metrics("initcwnd 1"), {}, FALLS, {}),
    ("route with initcwnd 1, passive open, IPv6", sends, metrics("initcwnd 1"),
     PASSIVE | IPV6, FALLS, {}),
    ("route with a locked cwnd 1, active open", sends, locked_cwnd(), {}, FALLS, {}),
    ("route with a locked cwnd 1, passive open, IPv6", sends, locked_cwnd(),
     PASSIVE | IPV6, FALLS, {}),
    ("route with a locked cwnd 1, without ECN", sends, locked_cwnd(), NO_ECN, FALLS, {}),
    ("a zero window under a clamp of 1", zero_window, locked_cwnd("300ms"), {}, FALLS, {}),
    ("idle, initcwnd 1", idle, metrics("initcwnd 1", "300ms"), {}, FALLS, AFTER),
    ("a window that is not used", underused, metrics("initcwnd 2", "1s"), {}, HOLDS, {}),
    ("TCP_BPF_IW 1, active open", sends, bpf(IW), {}, FALLS, {}),
    ("TCP_BPF_IW 1, passive open, IPv6", sends, bpf(IW), PASSIVE | IPV6, FALLS, {}),
    ("TCP_BPF_IW 1, without ECN", sends, bpf(IW), NO_ECN, FALLS, {}),
    ("TCP_BPF_SNDCWND_CLAMP 1, active open", sends, bpf(CLAMP), {}, FALLS, {}),
    ("TCP_BPF_SNDCWND_CLAMP 1, passive open, IPv6", sends, bpf(CLAMP),
     PASSIVE | IPV6, FALLS, {}),
    ("a restored socket (TCP_REPAIR), IPv4", repaired, plain, {"kind": Repaired}, FALLS, {}),
    ("a restored socket (TCP_REPAIR), IPv6", repaired, plain, {"kind": Repaired} | IPV6, FALLS, {}),
    *((f"{start} at 1 changed to ours, {how}", change_to_ours, fast_rto, more | {"start": start},
       FALLS, AFTER)
      for start in ("dctcp", "reno", "cubic") for how, more in (("IPv4", {}), ("IPv6", IPV6))),
    *((f"ours changed to {other}", change_from_ours, fast_rto, {"other": other}, FALLS, AFTER)
      for other in ("dctcp", "reno", "cubic")),
    *((f"ours changed to {other}: its own rule from then on", change_from_ours_then_rto, fast_rto,
       {"other": other}, SAME, AFTER) for other in ("dctcp", "reno", "cubic")),
    ("Fast Open: the peer refuses the data, active open", fast_open_refused, plain,
     {"kind": FastOpen}, HOLDS, {}),
    ("Fast Open: a SYN with data sent three times", fast_open_refused, plain,
     {"kind": FastOpen} | DEAF, FALLS, {}),
    ("Fast Open: a SYN with data sent three times, IPv6", fast_open_refused, plain,
     {"kind": FastOpen} | DEAF | IPV6, FALLS, {}),
    ("Fast Open: a SYN-ACK sent three times, data behind it", fast_open_server, plain,
     {"kind": FastOpen} | PASSIVE, FALLS, {}),
    ("Fast Open: a SYN-ACK sent three times, data behind it, IPv6", fast_open_server, plain,
     {"kind": FastOpen} | PASSIVE | IPV6, FALLS, {}),
    ("a SYN sent three times, IPv6", sends, plain, DEAF | IPV6, FALLS, {}),
    ("a SYN-ACK sent three times, IPv4", sends, plain, DEAF | PASSIVE, FALLS, {}),
    ("a SYN sent twice", sends, plain, {"deaf": 1}, FALLS, {}),
    ("a SYN-ACK sent twice", sends, plain, PASSIVE | {"deaf": 1}, HOLDS, {}),
    # What leaves between the handshake and the first data is the handshake's ACK, which no window
    # governs and of which the algorithm is told nothing.
    ("chosen while a SYN is out that is sent three times", sends, plain,
     DEAF | {"kind": Late, "start": "cubic"}, FALLS, DATA),
    ("TCP_BPF_IW 1, and BPF chooses the algorithm, active open", sends, bpf_chooses,
     {"start": "cubic"}, FALLS, DATA),
    ("TCP_BPF_IW 1, and BPF chooses the algorithm, passive open, IPv6", sends, bpf_chooses,
     {"start": "cubic"} | PASSIVE | IPV6, FALLS, DATA),
    ("connected again, after the fallback, by a SYN sent three times", reconnect, plain, NO_ECN, FALLS,
     AFTER),
]


def play(suites):
    """Opens and plays everything with both algorithms; handshakes that wait for timers overlap."""
    opened = []
    for name, act, setting, how, _, _ in suites:
        how = dict(how)
        kind, start, other = (how.pop(k, None) for k in ("kind", "start", "other"))
        for algorithm in (STOCK, FLOOR):
            with setting(algorithm):
                Late.late = algorithm
                cc = start or algorithm
                one = (name, act, algorithm, (kind or Connection)(net, cc, **how))
                one[3].target = other or algorithm
                if how.get("deaf", 0) > 1:
                    opened.append(one)
                else:
                    plays.run(*one)
    for one in opened:
        plays.run(*one)


def main():
    """Plays, then judges."""
    global net
    modules.need_root("ip", "mount")
    modules.need_stock_dctcp()
    modules.load("tcp_dctcp_floor")

    watch = Watch()
    atexit.register(watch.remove)
    net = Net()
    net.sysctl("net.ipv4.tcp_ecn", 1)
    net.sysctl("net.ipv4.tcp_fastopen", 3)
    # Segments go one by one, not by TSO's deferral, which is a matter of time.
    net.run("ip", "link", "set", "tun0", "gso_max_segs", "1")
    for family in ADDRESSES:
        FastOpen.learn(family)
    play(PLAYS)
    with sysctls(tcp_early_retrans=3), route("200ms", "initcwnd 1"):
        silences = {a: [silence(a) for _ in range(3)] for a in (STOCK, FLOOR)}
    watch.stop()

    @suite.case("C12: a lost packet costs its 200 ms where it was alone, a loss probe where two were out")
    def _silence():
        sent = {a: {n for n, _ in silences[a]} for a in (STOCK, FLOOR)}
        took = {a: statistics.median(t for _, t in silences[a]) for a in (STOCK, FLOOR)}
        ktap.note(f"packets out {sent}, seconds until the next {took}")
        if sent[STOCK] != {1} or took[STOCK] < 0.2:
            raise ktap.Void(f"{STOCK} sent more than one, or did not wait")
        ktap.equal(sent[FLOOR], {2}, "packets out")
        ktap.equal(took[FLOOR] < took[STOCK] / 2, True, f"{took[FLOOR]} s is less than half")

    for name, _, _, _, wanted, which in PLAYS:
        suite.cases.append((name, lambda n=name, w=wanted, k=which: plays.judge(watch, n, w, **k)))

    @suite.case("with stock in our place the cases in which it falls would fail")
    def _can_fail():
        plays.stock_fails(watch, [(p[0], p[5]) for p in PLAYS if p[4] == FALLS])

    suite.run()


main()
