# SPDX-License-Identifier: GPL-2.0
#
# The far end of TCP connections, spoken by hand: a network namespace whose only device is a TUN
# that this process holds, and peers that send exactly the segments a test wants.
#
# Nothing is lost, marked or reordered by chance. A segment written to the device is processed by
# the kernel before write() returns, so its immediate answers can be read at once and no clock is
# asked what "at once" means; only retransmission timers take time.
#
# It touches the namespace that it makes, and nothing else.

import contextlib
import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
import time

import ktap

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE = (1 << i for i in range(9))
NOT_ECT, ECT1, ECT0, CE = range(4)

TCP_INFO = socket.TCP_INFO
TCP_CONGESTION = socket.TCP_CONGESTION
TCP_CC_INFO = 26
SO_SNDBUFFORCE = 32
SIOCOUTQNSD = 0x894B

IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
TUNSETIFF = 0x400454CA

ADDRESSES = {
    socket.AF_INET: ("192.0.2.1", "192.0.2.2"),
    socket.AF_INET6: ("2001:db8::1", "2001:db8::2"),
}

OPEN, DISORDER, REDUCING, RECOVERY, LOSS = range(5)


class Net:
    """A network namespace with a TUN device, and the packets that came out of it."""

    def __init__(self):
        if not os.path.exists("/dev/net/tun"):
            subprocess.run(["modprobe", "tun"], check=False)
        if not os.path.exists("/dev/net/tun"):
            ktap.skip_all("no TUN device (CONFIG_TUN)")
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        os.unshare(os.CLONE_NEWNET)
        self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.queues = {}
        self.next_port = 20000
        self.rto_min, self.metrics = None, ""
        try:
            self.sysctl("net.ipv6.conf.default.accept_dad", 0)
            self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(self.tun, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN | IFF_NO_PI))
            mine, far = ADDRESSES[socket.AF_INET]
            mine6, far6 = ADDRESSES[socket.AF_INET6]
            batch = [
                "link set lo up",
                "link set tun0 up",
                f"addr add {mine}/32 dev tun0",
                f"addr add {mine6}/128 dev tun0 nodad",
            ]
            subprocess.run(["ip", "-batch", "-"], input="\n".join(batch), text=True, check=True)
            # What one connection learnt about the path must not reach the next, and the only
            # timers that fire are those that a case is about.
            self.sysctl("net.ipv4.tcp_no_metrics_save", 1)
            self.sysctl("net.ipv4.tcp_early_retrans", 0)
            self.least_rto("10s")
        finally:
            os.setns(home, os.CLONE_NEWNET)
            os.close(home)

    def least_rto(self, time_text):
        """The route's rto_min. Long, unless RTOs are the matter: the host of a guest may stall."""
        self.route(time_text, self.metrics)

    def route(self, rto_min, metrics=""):
        """The routes to the far end: rto_min, and more of `ip route`'s metrics."""
        if (rto_min, metrics) != (self.rto_min, self.metrics):
            for _, far in ADDRESSES.values():
                self.run("ip", "route", "replace", far, "dev", "tun0", "rto_min", rto_min,
                         *metrics.split())
        self.rto_min, self.metrics = rto_min, metrics

    @contextlib.contextmanager
    def inside(self):
        """Sockets made here belong to this namespace, and /proc/net is its own."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        os.setns(self.fd, os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(home, os.CLONE_NEWNET)
            os.close(home)

    def sysctl(self, name, value=None):
        """Reads a sysctl of this namespace, or writes it."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        os.setns(self.fd, os.CLONE_NEWNET)
        try:
            with open("/proc/sys/" + name.replace(".", "/"), "r+", encoding="ascii") as file:
                if value is None:
                    return file.read().strip()
                file.write(f"{value}\n")
                return value
        finally:
            os.setns(home, os.CLONE_NEWNET)
            os.close(home)

    def run(self, *command):
        """A program's output inside the namespace."""
        with self.inside():
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def counter(self, name):
        """A counter of /proc/net/netstat."""
        with self.inside(), open("/proc/thread-self/net/netstat", encoding="ascii") as file:
            lines = file.read().splitlines()
        for names, values in zip(lines[::2], lines[1::2]):
            if name in names.split():
                return int(values.split()[names.split().index(name)])
        raise KeyError(name)

    def port(self):
        """A local port that no other connection of this test has."""
        self.next_port += 1
        return self.next_port

    def pump(self, timeout):
        """Takes one packet out of the device and gives it to its connection. False: none came."""
        if not select.select([self.tun], [], [], timeout)[0]:
            return False
        segment = Segment.parse(os.read(self.tun, 65536))
        if segment is not None and (segment.family, segment.sport) in self.queues:
            self.queues[segment.family, segment.sport].append(segment)
        return True

    def close(self):
        """Takes the device away, and with it the way out."""
        os.close(self.tun)
        os.close(self.fd)


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Segment:
    """A TCP segment with its addresses."""

    def __init__(self, family, sport, dport, seq, ack, flags, *, length=0, ecn=NOT_ECT, options=b"",
                 window=65535):
        self.family, self.sport, self.dport = family, sport, dport
        self.seq, self.ack, self.flags, self.window = seq, ack, flags, window
        self.length, self.ecn, self.options = length, ecn, options

    @property
    def ace(self):
        """The three bits AE, CWR, ECE as AccECN's number."""
        return bool(self.flags & AE) << 2 | bool(self.flags & CWR) << 1 | bool(self.flags & ECE)

    @property
    def end(self):
        """The sequence number after this segment."""
        return (self.seq + self.length + bool(self.flags & (SYN | FIN))) & 0xFFFFFFFF

    @classmethod
    def parse(cls, packet):
        """A segment out of an IP packet; None for anything but TCP."""
        if packet[0] >> 4 == 4:
            family, ecn, protocol = socket.AF_INET, packet[1] & 3, packet[9]
            header, total = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0]
        else:
            family, ecn, protocol = socket.AF_INET6, packet[1] >> 4 & 3, packet[6]
            header, total = 40, 40 + struct.unpack_from("!H", packet, 4)[0]
        if protocol != socket.IPPROTO_TCP:
            return None
        sport, dport, seq, ack, bits, window = struct.unpack_from("!HHIIHH", packet, header)
        data = header + (bits >> 12) * 4
        return cls(family, sport, dport, seq, ack, bits & 0x1FF, length=total - data, ecn=ecn,
                   options=packet[header + 20 : data], window=window)

    def packet(self):
        """The IP packet, from the far end to here."""
        here, far = (socket.inet_pton(self.family, a) for a in ADDRESSES[self.family])
        options = self.options + b"\1" * (-len(self.options) % 4)
        size = 20 + len(options) + self.length
        tcp = struct.pack("!HHIIHHHH", self.sport, self.dport, self.seq & 0xFFFFFFFF,
                          self.ack & 0xFFFFFFFF, (5 + len(options) // 4) << 12 | self.flags,
                          self.window, 0, 0) + options + b"x" * self.length
        pseudo = far + here + struct.pack("!II", size, socket.IPPROTO_TCP)
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        if self.family == socket.AF_INET6:
            head = struct.pack("!IHBB", 6 << 28 | self.ecn << 20, size, socket.IPPROTO_TCP, 64)
            return head + far + here + tcp
        head = struct.pack("!BBHHHBBH", 0x45, self.ecn, 20 + size, 0, 0, 64, socket.IPPROTO_TCP, 0)
        head += far + here
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + tcp


class Info:
    """struct tcp_info, as far as it is asked."""

    def __init__(self, raw):
        self.ca_state = raw[1]
        words = struct.unpack_from("21I", raw, 8)
        self.unacked, self.sacked, self.lost, self.retrans = words[4:8]
        self.rtt_us, self.ssthresh, self.cwnd = words[15], words[17], words[18]
        self.pacing_rate = struct.unpack_from("Q", raw, 104)[0]


class Dctcp:
    """struct tcp_dctcp_info."""

    def __init__(self, raw):
        enabled, ce_state, self.alpha, self.ab_ecn, self.ab_tot = struct.unpack_from("HHIII", raw)
        self.enabled, self.ce_state = bool(enabled), bool(ce_state)


class Connection:
    """One connection between a socket of the kernel and a peer that does what the test says.

    `ecn` is what the peer can: none, rfc3168 or accecn; `syn_ecn` what the IP header of its SYN or
    SYN-ACK says.
    """

    MSS = 1000

    def __init__(self, net, cc, *, family=socket.AF_INET, passive=False, ecn="rfc3168",
                 deaf=0, rtt=0, syn_ecn=NOT_ECT, options=(), protocol=socket.IPPROTO_TCP):
        self.net, self.cc, self.family, self.passive, self.ecn = net, cc, family, passive, ecn
        self.port, self.far_port = net.port(), 80
        self.inbox = net.queues[family, self.port] = []
        self.seq, self.irs, self.una = 1000, 0, 0
        self.handshake, self.marks = [], 0
        here, _ = ADDRESSES[family]
        with net.inside():
            first = socket.socket(family, socket.SOCK_STREAM, protocol)
        first.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)
        if cc:
            first.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        for level, name, value in options:
            first.setsockopt(level, name, value)
        first.setblocking(False)
        first.bind((here, self.port))
        self.first, self.sock, self.deaf, self.rtt = first, None, deaf, rtt
        self.syn_ecn = syn_ecn
        self.open()

    def open(self):
        """Begins the handshake."""
        if self.passive:
            self.first.listen(1)
            self.inject(SYN | self._ecn_setup(), options=self._syn_options(), window=65535,
                        ecn=self.syn_ecn)
        else:
            with contextlib.suppress(BlockingIOError):
                self.first.connect((ADDRESSES[self.family][1], 80))

    def _ecn_setup(self):
        return {"none": 0, "rfc3168": ECE | CWR, "accecn": ECE | CWR | AE}[self.ecn]

    def _syn_options(self):
        return struct.pack("!BBHBBBBBB", 2, 4, self.MSS, 1, 1, 4, 2, 1, 1)

    def establish(self):
        """Goes through the handshake, which takes `rtt` seconds; `deaf` SYNs or SYN-ACKs are not
        answered first."""
        for _ in range(self.deaf):
            self._expect_syn()
        syn = self._expect_syn()
        self.irs, self.una, self.handshake = syn.seq, syn.seq + 1, [syn]
        time.sleep(self.rtt)
        if self.passive:
            self.seq += 1
            accurate = self.ecn == "accecn" and syn.ace not in (0, 1, 7)
            # AccECN's third packet tells what the SYN-ACK's IP header said.
            bits = {NOT_ECT: CWR, ECT1: CWR | ECE, ECT0: AE, CE: AE | CWR}[syn.ecn]
            self.inject(ACK | (bits if accurate else 0))
            self.sock = self.first.accept()[0]
            self.first.close()
        else:
            wanted = syn.ace
            bits = 0
            if self.ecn == "accecn" and wanted == 7:
                bits = {NOT_ECT: CWR, ECT1: CWR | ECE, ECT0: AE, CE: AE | CWR}[syn.ecn]
            elif self.ecn != "none" and wanted in (3, 7):
                bits = ECE
            accurate = bits not in (0, ECE)
            self.inject(SYN | ACK | bits, options=self._syn_options(), ecn=self.syn_ecn)
            self.seq += 1
            self.sock = self.first
            self.now()
        self.accurate, self.sent = accurate, self.una
        self.sock.setblocking(False)
        return self

    def _expect_syn(self):
        segment = self.next(8)
        if segment is None or not segment.flags & SYN:
            raise AssertionError("no SYN came")
        return segment

    def inject(self, flags, **more):
        """Sends a segment to the kernel."""
        seq = more.pop("seq", self.seq)
        ack = more.pop("ack", self.una)
        os.write(self.net.tun, Segment(self.family, self.far_port, self.port, seq, ack, flags,
                                       **more).packet())

    def next(self, timeout):
        """The next segment from the kernel; None after `timeout` seconds without one."""
        end = time.monotonic() + timeout
        while not self.inbox:
            if not self.net.pump(max(0, end - time.monotonic())) and time.monotonic() >= end:
                return None
        return self.inbox.pop(0)

    def now(self):
        """What the kernel has sent by now."""
        while self.net.pump(0):
            pass
        seen, self.inbox[:] = list(self.inbox), []
        return seen

    def wait(self, timeout=5):
        """The segments of the next thing that the kernel does, a timer's work included."""
        first = self.next(timeout)
        return [] if first is None else [first, *self.now()]

    def write(self, length, flags=0):
        """The application writes; returns what left at once."""
        if self.sock.send(b"y" * length, flags) != length:
            raise AssertionError("the socket took a part only")
        return self.now()

    def at(self, packet):
        """The sequence number where packet number `packet` of full ones begins, from 0."""
        return (self.irs + 1 + packet * self.MSS) & 0xFFFFFFFF

    def _ace(self):
        """Accurate ECN's counter of packets that arrived with CE, which begins at 5, as flags."""
        counter = 5 + self.marks
        return sum(flag for bit, flag in ((1, ECE), (2, CWR), (4, AE)) if counter & bit)

    def ack(self, packets=None, *, sacks=(), flags=0, to=None, marks=0, **more):
        """The peer acknowledges the first `packets` packets and, selectively, `sacks`; with Accurate
        ECN, it has seen `marks` more of them with CE."""
        if to is not None:
            self.una = to
        elif packets is not None:
            self.una = self.at(packets)
        options = b""
        if sacks:
            options = struct.pack("!BBBB", 1, 1, 5, 2 + 8 * len(sacks))
            for first, last in sacks:
                options += struct.pack("!II", self.at(first), self.at(last))
        self.marks += marks
        if self.accurate and not flags:
            flags = self._ace()
        self.inject(ACK | flags, options=options, **more)
        return self.now()

    def data(self, length, ecn=ECT0, flags=0):
        """The peer sends data; returns what the kernel answers at once."""
        if self.accurate:
            flags |= self._ace()
        self.inject(ACK | PSH | flags, length=length, ecn=ecn)
        self.seq += length
        return self.now()

    def info(self):
        """TCP_INFO."""
        return Info(self.sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256))

    def dctcp(self):
        """What `ss -i` would show of DCTCP."""
        return Dctcp(self.sock.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 20))

    def choose(self, algorithm):
        """Another TCP_CONGESTION, whatever the connection is doing."""
        sock = self.sock or self.first
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, algorithm.encode())

    def algorithm(self):
        """TCP_CONGESTION."""
        return self.sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()

    def unsent(self):
        """Bytes that the application wrote and TCP holds back."""
        answer = ctypes.c_int()
        fcntl.ioctl(self.sock, SIOCOUTQNSD, answer)
        return answer.value

    def close(self):
        """Both ends forget the connection."""
        if self.sock is not None:
            # An RST from the peer, so that nothing lingers in any queue.
            self.inject(RST | ACK)
            self.sock.close()
        self.first.close()
        self.net.pump(0)
        del self.net.queues[self.family, self.port]

    def __enter__(self):
        return self.establish()

    def __exit__(self, *_):
        self.close()
