#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# autocork_policy: which small writes are held until a packet has left the device, by what the
# application asked for and by policy.
#
# The device is a TUN with a plug in front of it (sch_plug): a packet stays in the plug, and counts
# as not having left, until the test pulls it. Each kind of application writes three full packets
# and then five bytes. What is seen: how many bytes TCP still holds while the plug is in, whether
# TCPAutoCorking counted, the module's own counters, and the packets on the wire after the plug is
# out. The control is the kernel without the module, in the same boot.

import atexit
import os
import socket
import struct
import subprocess
import time

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

suite = ktap.Suite()


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
#: Kinds that the literal rule of 2023 takes autocorking from besides NODELAY.
NONAGLE = {"NODELAY", "CORK", "CORK and NODELAY", "NODELAY and MSG_MORE"}


class Plugged(Net):
    """A namespace whose packets wait in a plug."""

    ADD, CHANGE, BLOCK, RELEASE = 0x600, 0, 0, 2  # NLM_F_CREATE | NLM_F_EXCL; TCQ_PLUG_*

    def __init__(self):
        super().__init__()
        with self.inside():
            self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
            self.index = socket.if_nametoindex("tun0")
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
        counters = {k: v - counters[k] for k, v in net.covered().items() if v != counters[k]}
    return held, corked, counters


def wire(net, c, release):
    """The lengths of the packets that leave when the plug is pulled, when they are acknowledged, and
    when what was held may go."""
    net.pull()
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


def check(net, policy, control, **how):
    """The kinds of `control` under a policy, against the control."""
    net.sysctl(POLICY, policy)
    for kind, ((held, corked, packets), counters) in table(net, control, **how).items():
        stock_held, stock_corked, stock_packets = control[kind][0]
        ktap.note(f"{policy:7} {kind:20}: held {held} (stock {stock_held}), TCPAutoCorking "
                  f"{corked} (stock {stock_corked}), {counters}, packets {packets}")
        if (stock_held, stock_corked) != (TAIL if held is not None else None, 1):
            raise ktap.Void(f"without the module {kind} was not autocorked: {control[kind]}")
        changed = {"stock": set(), "nodelay": {"NODELAY"}, "nonagle": NONAGLE}[policy]
        ktap.equal(corked, 0 if kind in changed else 1, f"TCPAutoCorking of {kind}")
        if held is not None:
            wanted = 0 if kind == "NODELAY" and changed else TAIL
            ktap.equal(held, wanted, f"bytes held of {kind}")
        # The literal rule changes what leaves when: that is why it was reverted.
        if policy != "nonagle":
            ktap.equal(packets, stock_packets, f"packets of {kind}")
        counter = {"stock": "left_stock", "nodelay": KINDS[kind][3],
                   "nonagle": "covered" if kind in changed else "left_nagle"}[policy]
        ktap.equal(counters, {counter: 2}, f"counters of {kind}")


def again(net, c, policy):
    """One more write of both parts on a connection, under a policy: (held, corked)."""
    net.sysctl(POLICY, policy)
    held, corked, _ = write_twice(net, c)
    wire(net, c, None)
    return held, corked


def add_cases(net, control, control6, control_mptcp):
    """Every case, after the controls."""
    for policy in ("stock", "nodelay", "nonagle"):
        suite.cases.append((f"policy {policy}: {len(control)} kinds of application, IPv4",
                            lambda policy=policy: check(net, policy, control)))
    suite.cases.append(("policy nodelay, IPv6",
                        lambda: check(net, "nodelay", control6, family=socket.AF_INET6)))
    suite.cases.append(("policy nodelay, MPTCP sockets (the peer speaks TCP only)",
                        lambda: check(net, "nodelay", control_mptcp, protocol=IPPROTO_MPTCP)))

    @suite.case("another policy holds from the next write on, on a connection that exists")
    def _switch():
        with Connection(net, "reno") as c:
            on(TCP_NODELAY)(c)
            seen = [again(net, c, p) for p in ("stock", "nodelay", "stock", "nonagle")]
        ktap.equal(seen, [(TAIL, 1), (0, 0), (TAIL, 1), (0, 0)], "(held, corked)")

    @suite.case("turning NODELAY off holds from the next write on (C3)")
    def _off():
        net.sysctl(POLICY, "nodelay")
        seen = []
        with Connection(net, "reno") as c:
            for value in (1, 0, 1):
                c.sock.setsockopt(socket.IPPROTO_TCP, TCP_NODELAY, value)
                seen.append(again(net, c, "nodelay"))
        ktap.equal(seen, [(0, 0), (TAIL, 1), (0, 0)], "(held, corked)")

    @suite.case("TCP_CORK left on still waits its 200 ms (C7)")
    def _cork():
        net.sysctl(POLICY, "nodelay")
        net.least_rto("200ms")
        with Connection(net, "reno") as c:
            on(TCP_CORK, TCP_NODELAY)(c)
            c.write(c.MSS)
            c.ack(1)
            start = time.monotonic()
            ktap.equal(c.write(TAIL), [], "what leaves at once")
            ktap.equal([s.length for s in c.wait(5)], [TAIL], "what leaves by the timer")
            took = time.monotonic() - start
        net.least_rto("10s")
        ktap.note(f"{took * 1000:.0f} ms")
        # A lower bound only: no machine is too slow for it.
        ktap.equal(took > 0.15, True, "the tail waited")

    @suite.case("tcp_autocorking=0 stays what it is")
    def _sysctl():
        net.sysctl("net.ipv4.tcp_autocorking", 0)
        try:
            for policy in ("stock", "nodelay", "nonagle"):
                net.sysctl(POLICY, policy)
                held, corked, _ = outcome(net, "NODELAY")[0]
                ktap.equal((held, corked), (0, 0), f"(held, corked) of NODELAY under {policy}")
        finally:
            net.sysctl("net.ipv4.tcp_autocorking", 1)

    @suite.case("policy and counters are each namespace's own; a new one has nodelay")
    def _namespaces():
        other = Plugged()
        ktap.equal(other.sysctl(POLICY), "nodelay", "policy of a new namespace")
        ktap.equal(sum(other.covered().values()), 0, "counters of a new namespace")
        net.sysctl(POLICY, "stock")
        before = net.covered()
        ktap.equal(outcome(other, "NODELAY")[0][:2], (0, 0), "(held, corked) under nodelay")
        ktap.equal(net.covered(), before, "counters of the other namespace")
        ktap.equal(outcome(net, "NODELAY")[0][:2], (TAIL, 1), "(held, corked) under stock")
        ktap.equal(other.covered()["covered"], 2, "covered, where nodelay holds")
        other.close()


def main():
    """Controls without the module, then the module."""
    modules.need_root("ip")
    if subprocess.run(["modprobe", "sch_plug"], capture_output=True, check=False).returncode:
        ktap.skip_all("no plug qdisc (CONFIG_NET_SCH_PLUG)")
    was_loaded = modules.loaded(MODULE)
    modules.unload(MODULE)

    net = Plugged()
    control = table(net, KINDS)
    few = ("NODELAY", "plain", "CORK")
    control6 = table(net, few, family=socket.AF_INET6)
    control_mptcp = table(net, few, protocol=IPPROTO_MPTCP)

    modules.load(MODULE)
    if not was_loaded:
        atexit.register(modules.unload, MODULE)
    add_cases(net, control, control6, control_mptcp)
    suite.run()


main()
