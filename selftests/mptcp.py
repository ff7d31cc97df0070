#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# autocork_policy and MPTCP between two ends that both speak it: MPTCP sends through subflows, which
# are TCP sockets, and calls tcp_push() for them. The hook acts on the first one and on one that joined.
#
# Both ends are on a loopback device behind a plug: no completion and no ACK comes while the plug is
# in, and then all of what was written arrives. The control is the policy stock in the same boot.
# (Sockets of MPTCP whose peer speaks TCP only are in autocork.py and bounded.py.)

import atexit
import contextlib
import ctypes
import os
import socket
import struct
import time

import ktap
import modules
from plugged import IPPROTO_MPTCP, MODULE, POLICY, TAIL, TCP_NODELAY, Plugged, need_plug

SPLICE = "net.ipv4.tcp_splice_nodelay"
DEADLINE = "net.ipv4.tcp_autocork_deadline_us"
SOL_MPTCP, MPTCP_TCPINFO, MPTCP_SUBFLOW_ADDRS = 284, 2, 3
#: struct mptcp_subflow_data; struct tcp_info, where tcpi_notsent_bytes is; struct
#: mptcp_subflow_addrs, two addresses of 128 bytes.
HEAD, NOTSENT, ADDRESS = 16, 144, 128
TCP_ESTABLISHED = 1
FIRST = 3000
#: The near end and the far one. They differ where the near end's address is taken away.
ENDS = {socket.AF_INET: ("127.0.0.1", "127.0.0.3"), socket.AF_INET6: ("::1", "::1")}
JOINING = "127.0.0.2"

suite = ktap.Suite()
libc = ctypes.CDLL(None, use_errno=True)


def per_subflow(sock, option, size):
    """What MPTCP tells of each of a socket's subflows. An error when it fell back to TCP."""
    data = ctypes.create_string_buffer(HEAD + 8 * size)
    struct.pack_into("=IIII", data, 0, HEAD, 0, 0, size)
    length = ctypes.c_uint(len(data))
    if libc.getsockopt(sock.fileno(), SOL_MPTCP, option, data, ctypes.byref(length)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    count = struct.unpack_from("=I", data, 4)[0]
    return [data.raw[HEAD + i * size : HEAD + (i + 1) * size] for i in range(count)]


def unsent(sock):
    """Bytes that TCP holds back, by established subflow."""
    return [struct.unpack_from("=I", info, NOTSENT)[0]
            for info in per_subflow(sock, MPTCP_TCPINFO, NOTSENT + 4) if info[0] == TCP_ESTABLISHED]


def local_addresses(sock):
    """The near ends of established subflows, IPv4. (The first subflow stays on the list when closed.)"""
    states = [info[0] for info in per_subflow(sock, MPTCP_TCPINFO, NOTSENT + 4)]
    pairs = per_subflow(sock, MPTCP_SUBFLOW_ADDRS, 2 * ADDRESS)
    return [socket.inet_ntoa(pair[4:8])
            for state, pair in zip(states, pairs) if state == TCP_ESTABLISHED]


def until(condition, seconds=10):
    """Waits for a condition, and says whether it came."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return condition()
        time.sleep(0.001)
    return True


def receive(sock, length):
    """So many bytes."""
    sock.settimeout(10)
    data = b""
    while len(data) < length:
        data += sock.recv(length - len(data))
    return data


@contextlib.contextmanager
def connection(net, family, nodelay):
    """Two ends that speak MPTCP."""
    net.pull()
    with net.inside():
        listener, near = (socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP) for _ in "ab")
    # A subflow that joins needs the listener, too.
    with listener, near:
        here, far = ENDS[family]
        listener.bind((far, 0))
        listener.listen(2)
        near.bind((here, 0))
        near.setsockopt(socket.IPPROTO_TCP, TCP_NODELAY, int(nodelay))
        near.connect(listener.getsockname()[:2])
        far = listener.accept()[0]
        with far:
            # MPTCP is fully established when data has been acknowledged.
            near.send(b"a")
            far.send(receive(far, 1))
            receive(near, 1)
            yield near, far
            net.pull()


def write_twice(net, near, far):
    """A large and a small write into the plug: (bytes held by subflow, TCPAutoCorking), the counters."""
    before, corked = net.covered(), net.counter("TCPAutoCorking")
    net.plug()
    near.send(b"y" * FIRST)
    near.send(b"z" * TAIL)
    held = unsent(near)
    if net.sysctl(POLICY) == "bounded":
        ktap.equal(until(lambda: sum(unsent(near)) == 0), True, "left by the deadline")
        until(lambda: net.since(before).get("flushed_by_deadline"))
    corked = net.counter("TCPAutoCorking") - corked
    counters = net.since(before)
    net.pull()
    ktap.equal(receive(far, FIRST + TAIL), b"y" * FIRST + b"z" * TAIL, "what arrives")
    return (held, corked), counters


HELD, FREE = ([TAIL], 1), ([0], 0)
#: What is seen of a NODELAY socket, by policy.
WANTED = {
    "stock": (HELD, {"left_stock": 2}),
    "nodelay": (FREE, {"covered": 2}),
    "nonagle": (FREE, {"covered": 2}),
    "bounded": (HELD, {"bounded": 2, "held": 1, "deadlines": 1, "flushed_by_deadline": 1}),
}


def every_policy(net, near, far, what):
    """Each policy on a connection that has one subflow now."""
    net.sysctl(DEADLINE, 40000)
    for policy, wanted in WANTED.items():
        net.sysctl(POLICY, policy)
        seen = write_twice(net, near, far)
        ktap.note(f"{what}, {policy}: (held, TCPAutoCorking), counters: {seen}")
        if policy == "stock" and seen[0] != HELD:
            raise ktap.Void(f"stock does not hold it: {seen}")
        ktap.equal(seen, wanted, f"{what} under {policy}")


def add_cases(net):
    """First subflow, joined subflow, no NODELAY."""
    for family, name in ((socket.AF_INET, "IPv4"), (socket.AF_INET6, "IPv6")):

        @suite.case(f"the first subflow, {name}: every policy as for TCP")
        def _first(family=family, name=name):
            before = net.mptcp("MPCapableSYNACKRX")
            with connection(net, family, nodelay=True) as (near, far):
                ktap.equal(net.mptcp("MPCapableSYNACKRX") - before, 1, "handshakes with MPTCP")
                every_policy(net, near, far, name)

    @suite.case("a subflow that joined, when the first has gone: every policy as for TCP")
    def _joined():
        net.run("ip", "mptcp", "endpoint", "add", JOINING, "dev", "lo", "subflow")
        before = net.mptcp("MPJoinSynAckRx")
        try:
            with connection(net, socket.AF_INET, nodelay=True) as (near, far):
                ktap.equal(until(lambda: len(unsent(near)) == 2), True, "a second subflow")
                ktap.equal(net.mptcp("MPJoinSynAckRx") - before, 1, "handshakes of subflows")
                # 0 is the first subflow's address, by whatever name.
                net.run("ip", "mptcp", "endpoint", "delete", "id", "0", "127.0.0.1")
                ktap.equal(until(lambda: local_addresses(near) == [JOINING]), True,
                           f"the one that joined is left: {local_addresses(near)}")
                every_policy(net, near, far, "joined")
        finally:
            net.run("ip", "mptcp", "endpoint", "flush")

    @suite.case("without NODELAY nothing is changed")
    def _plain():
        for policy in ("nodelay", "bounded"):
            with connection(net, socket.AF_INET, nodelay=False) as (near, far):
                net.sysctl(POLICY, policy)
                before, corked = net.covered(), net.counter("TCPAutoCorking")
                net.plug()
                near.send(b"y" * FIRST)
                near.send(b"z" * TAIL)
                time.sleep(0.05)
                ktap.equal((unsent(near), net.counter("TCPAutoCorking") - corked), HELD,
                           f"(held, corked) under {policy}")
                ktap.equal(net.since(before), {"left_nagle": 2}, f"counters under {policy}")
                net.pull()
                receive(far, FIRST + TAIL)


    @suite.case("spliced data counts as written: MPTCP does not tell its subflows")
    def _spliced():
        net.sysctl(POLICY, "nodelay")
        net.sysctl(SPLICE, 2)
        with connection(net, socket.AF_INET, nodelay=False) as (near, far):
            before = net.covered()
            net.plug()
            near.send(b"y" * FIRST)
            out, into = os.pipe()
            os.write(into, b"z" * TAIL)
            ktap.equal(os.splice(out, near.fileno(), TAIL), TAIL, "bytes spliced")
            os.close(out)
            os.close(into)
            ktap.equal((unsent(near), net.since(before)), ([TAIL], {"left_nagle": 2}),
                       "bytes held, counters")
            net.pull()
            receive(far, FIRST + TAIL)


class Net(Plugged):
    """A plugged loopback on which MPTCP may open a second subflow."""

    def __init__(self):
        super().__init__("lo")
        # While the plug is in nothing is acknowledged, and nothing may be sent again for that.
        for route in ("127.0.0.0/8", "127.0.0.1"):
            self.run("ip", "route", "replace", "local", route, "dev", "lo", "table", "local",
                     "rto_min", "10s")
        self.run("ip", "route", "replace", "local", "::1", "dev", "lo", "table", "local", "rto_min",
                 "10s")
        self.run("ip", "mptcp", "limits", "set", "subflows", "1", "add_addr_accepted", "1")

    def mptcp(self, name):
        """A counter of MPTCP (MPTcpExt)."""
        return self.counter(name)


def main():
    """One namespace for all."""
    modules.need_root("ip")
    need_plug()
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as error:
        ktap.skip_all(f"no MPTCP (CONFIG_MPTCP): {error}")
    was_loaded = modules.loaded(MODULE)
    modules.load(MODULE)
    if not was_loaded:
        atexit.register(modules.unload, MODULE)
    net = Net()
    add_cases(net)
    suite.run()
    net.close()


main()
