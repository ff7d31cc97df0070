# SPDX-License-Identifier: GPL-2.0
#
# A device whose packets do not leave until the test says so (sch_plug), and writes into it that
# autocorking holds: three full packets, then a few bytes, by each kind of application.
#
# It touches the namespace that it makes, and nothing else.

import os
import socket
import struct
import subprocess

import ktap
import modules
from farend import Connection, Net

MODULE = "autocork_policy"
POLICY = "net.ipv4.tcp_autocork_policy"
TCP_CORK = socket.TCP_CORK
TCP_NODELAY = socket.TCP_NODELAY
MORE = socket.MSG_MORE
IPPROTO_MPTCP = 262
TAIL = 5


def need_plug():
    """Without the plug qdisc there is no test."""
    if subprocess.run(["modprobe", "sch_plug"], capture_output=True, check=False).returncode:
        ktap.skip_all("no plug qdisc (CONFIG_NET_SCH_PLUG)")


def on(*names):
    """Sets options."""

    def prepare(c):
        for name in names:
            c.sock.setsockopt(socket.IPPROTO_TCP, name, 1)

    return prepare


def off_again(c):
    """TCP_NODELAY was set and is turned off (C3)."""
    on(TCP_NODELAY)(c)
    c.sock.setsockopt(socket.IPPROTO_TCP, TCP_NODELAY, 0)


#: kind -> (what is set, flags of both writes, what must be done to let the tail go, counter).
KINDS = {
    "NODELAY": (on(TCP_NODELAY), 0, None, "covered"),
    "plain": (on(), 0, None, "left_nagle"),
    "NODELAY off again": (off_again, 0, None, "left_nagle"),
    "CORK": (on(TCP_CORK), 0, "uncork", "left_cork"),
    "CORK and NODELAY": (on(TCP_NODELAY, TCP_CORK), 0, "uncork", "left_cork"),
    "MSG_MORE": (on(), MORE, "end", "left_more"),
    "NODELAY and MSG_MORE": (on(TCP_NODELAY), MORE, "end", "left_more"),
}


class Plugged(Net):
    """A namespace in which the packets of a device wait in a plug."""

    ADD, CHANGE, BLOCK, RELEASE = 0x600, 0, 0, 2  # NLM_F_CREATE | NLM_F_EXCL; TCQ_PLUG_*

    def __init__(self, device="tun0"):
        super().__init__()
        with self.inside():
            self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
            self.index = socket.if_nametoindex(device)
        self._qdisc(self.ADD, struct.pack("iI", 0, 1 << 20))
        self.pull()
        # The first write is one buffer whatever the pacing rate, or TSQ would hold the second.
        self.sysctl("net.ipv4.tcp_min_tso_segs", 16)

    def _qdisc(self, flags, options):
        """What tc would do, without the time that starting it takes (RTM_NEWQDISC)."""
        attributes = struct.pack("=HH8sHH", 12, 1, b"plug", 4 + len(options), 2) + options
        body = struct.pack("=BxxxiIII", 0, self.index, 0, 0xFFFFFFFF, 0) + attributes
        self.netlink.send(struct.pack("=IHHII", 16 + len(body), 36, 5 | flags, 1, 0) + body)
        error = struct.unpack_from("=i", self.netlink.recv(4096), 16)[0]
        if error:
            raise OSError(-error, os.strerror(-error))

    def plug(self):
        """Packets stay."""
        self._qdisc(self.CHANGE, struct.pack("iI", self.BLOCK, 0))

    def pull(self):
        """Packets leave."""
        self._qdisc(self.CHANGE, struct.pack("iI", self.RELEASE, 0))

    def covered(self):
        """The module's counters."""
        with self.inside(), open("/proc/thread-self/net/tcp_autocork_policy",
                                 encoding="ascii") as file:
            lines = dict(line.split() for line in file)
        return {k: int(v) for k, v in lines.items() if v.isdigit()}

    def since(self, before):
        """The module's counters that moved, and how far."""
        return {k: v - before[k] for k, v in self.covered().items() if v != before[k]}

    def close(self):
        """A socket that is open would keep the namespace."""
        self.netlink.close()
        super().close()


def write_twice(net, c, flags=0):
    """Three packets and a tail into the plug. Returns (held bytes, corked, counters)."""
    counters = net.covered() if modules.loaded(MODULE) else {}
    corked = net.counter("TCPAutoCorking")
    net.plug()
    c.write(3 * c.MSS, flags)
    c.write(TAIL, flags)
    # An MPTCP socket counts otherwise.
    held = c.unsent() if c.sock.proto != IPPROTO_MPTCP else None
    corked = net.counter("TCPAutoCorking") - corked
    if counters:
        counters = net.since(counters)
    return held, corked, counters


def wire(net, c, release):
    """The lengths of the packets that leave when the plug is pulled, when they are acknowledged, and
    when what was held may go."""
    net.pull()
    # What a completion sends, it may send from ksoftirqd.
    while net.pump(0.005):
        pass
    seen = []
    for step in (lambda: None, lambda: c.ack(to=c.sent), lambda: let_go(c, release)):
        segments = [s for s in (step() or []) + c.now() if s.length]
        seen.append([s.length for s in segments])
        c.sent = segments[-1].end if segments else c.sent
    c.ack(to=c.sent)
    return seen


def let_go(c, release):
    """The application ends what held the tail."""
    if release == "uncork":
        c.sock.setsockopt(socket.IPPROTO_TCP, TCP_CORK, 0)
    elif release == "end":
        c.sock.setsockopt(socket.IPPROTO_TCP, TCP_NODELAY, 1)


def outcome(net, kind, family=socket.AF_INET, protocol=socket.IPPROTO_TCP):
    """One connection of a kind: (held, corked, packets on the wire), and the module's counters."""
    prepare, flags, release, _ = KINDS[kind]
    with Connection(net, "reno", family=family, protocol=protocol) as c:
        prepare(c)
        held, corked, counters = write_twice(net, c, flags)
        return (held, corked, wire(net, c, release)), counters


def table(net, kinds, **how):
    """Outcomes of several kinds."""
    return {kind: outcome(net, kind, **how) for kind in kinds}
