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
import socket
import time

import ktap
import modules
from farend import Connection
from plugged import (IPPROTO_MPTCP, KINDS, MODULE, POLICY, TAIL, TCP_CORK, TCP_NODELAY, Plugged,
                     need_plug, on, outcome, table, wire, write_twice)

suite = ktap.Suite()


#: Kinds that the literal rule of 2023 takes autocorking from besides NODELAY.
NONAGLE = {"NODELAY", "CORK", "CORK and NODELAY", "NODELAY and MSG_MORE"}


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
    need_plug()
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
