#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# net.ipv4.tcp_splice_nodelay: data that is spliced into a socket does not wait, by Nagle's algorithm,
# for the ACK of a small segment before it, where the setting covers the socket's route; what the
# forwarder says by MSG_MORE and TCP_CORK holds, and large transfers keep their full segments.
#
# The peer is spoken by hand and acknowledges when it is told to (farend.py); on loopback, whose
# packets wait in a plug, ACKs wait with them. The control is the setting 0, in the same boot.

import atexit
import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
import tempfile

import ktap
import modules
from farend import SIOCOUTQNSD, Connection
from plugged import MODULE, POLICY, TCP_CORK, TCP_NODELAY, Plugged, need_plug, on

SPLICE = "net.ipv4.tcp_splice_nodelay"
FIRST, SECOND = 5, 7
TCP_ULP, SOL_TLS, TLS_TX = 31, 282, 1
#: Header, explicit nonce and tag of a TLS 1.2 record under AES-GCM.
RECORD = 5 + 8 + 16

suite = ktap.Suite()


def splice(sock, length, flags=0):
    """A forwarder: bytes that are in a pipe go into the socket."""
    out, into = os.pipe()
    try:
        os.write(into, b"z" * length)
        ktap.equal(os.splice(out, sock.fileno(), length, flags=flags), length, "bytes spliced")
    finally:
        os.close(out)
        os.close(into)


def sendfile(sock, length, flags=0):
    """The same by sendfile(2), which knows no flags."""
    del flags
    with tempfile.TemporaryFile() as file:
        file.write(b"z" * length)
        file.flush()
        ktap.equal(os.sendfile(sock.fileno(), file.fileno(), 0, length), length, "bytes sent")


def lengths(segments):
    """Of those that carry data."""
    return [s.length for s in segments if s.length]


def rest(c, segments=()):
    """What leaves while the peer acknowledges all that has left before."""
    seen = []
    segments = [*segments, *c.now()]
    while lengths(segments):
        seen += lengths(segments)
        c.sent = [s for s in segments if s.length][-1].end
        segments = c.ack(to=c.sent)
    return seen


def behind(net, setting, how, *, options=(), flags=0, family=socket.AF_INET):
    """A small write that is not acknowledged, and spliced data after it. Returns how many bytes of
    that wait, the packets until the ACK, those after it, and pushes counted as spliced."""
    net.sysctl(SPLICE, setting)
    before = net.covered()["spliced"]
    with Connection(net, "reno", family=family) as c:
        first = c.write(FIRST)
        on(*options)(c)
        how(c.sock, SECOND, flags)
        waits = c.unsent()
        second = c.now()
        counted = net.covered()["spliced"] - before
        ktap.equal(c.sock.getsockopt(socket.IPPROTO_TCP, TCP_NODELAY), int(TCP_NODELAY in options),
                   "TCP_NODELAY afterwards")
        later = rest(c, c.ack(to=first[-1].end))
    return waits, lengths(first), lengths(second), later, counted


HELD = (SECOND, [FIRST], [], [SECOND], 0)
AT_ONCE = (0, [FIRST], [SECOND], [], 1)


@contextlib.contextmanager
def on_loopback(net, family):
    """A connection over the plugged loopback: the sender and the receiver."""
    address = "127.0.0.1" if family == socket.AF_INET else "::1"
    net.pull()
    with net.inside(), socket.socket(family) as listener:
        listener.bind((address, 0))
        listener.listen(1)
        near = socket.create_connection(listener.getsockname()[:2])
        far = listener.accept()[0]
    with near, far:
        yield near, far
        net.pull()


def unsent(sock):
    """Bytes that TCP holds back."""
    answer = ctypes.c_int()
    fcntl.ioctl(sock, SIOCOUTQNSD, answer)
    return answer.value


def receive(sock, length):
    """So many bytes."""
    sock.settimeout(10)
    data = b""
    while len(data) < length:
        data += sock.recv(length - len(data))
    return data


def behind_on_loopback(net, setting, how, family):
    """The same on loopback. Returns the bytes that wait, and what was counted."""
    net.sysctl(SPLICE, setting)
    before = net.covered()["spliced"]
    with on_loopback(net, family) as (near, far):
        net.plug()
        near.send(b"y" * FIRST)
        how(near, SECOND)
        waits = unsent(near)
        ktap.equal(near.getsockopt(socket.IPPROTO_TCP, TCP_NODELAY), 0, "TCP_NODELAY afterwards")
        net.pull()
        ktap.equal(receive(far, FIRST + SECOND), b"y" * FIRST + b"z" * SECOND, "what arrives")
    return waits, net.covered()["spliced"] - before


def check(what, seen, wanted, control=None, void=None):
    """An outcome, which says nothing when the control did not show the fault."""
    ktap.note(f"{what}: {seen}")
    if control is not None and control != void:
        raise ktap.Void(f"the setting 0 did not hold it: {control}")
    ktap.equal(seen, wanted, what)


def add_routes(net, loop):
    """Which sockets are covered."""

    @suite.case("1 in a new namespace; 0, 1 and 2 are taken, everything else is EINVAL")
    def _values():
        ktap.equal(net.sysctl(SPLICE), "1", "the setting at first")
        for value in ("3", "-1", "x", "1 1"):
            try:
                net.sysctl(SPLICE, value)
            except OSError as error:
                ktap.equal(error.errno, errno.EINVAL, f"errno of {value}")
            else:
                raise AssertionError(f"{value} was taken")
            ktap.equal(net.sysctl(SPLICE), "1", "the setting afterwards")

    for family, name in ((socket.AF_INET, "IPv4"), (socket.AF_INET6, "IPv6")):

        def other(family=family):
            for how in (splice, sendfile):
                control = behind(net, 0, how, family=family)
                for setting, wanted in ((0, HELD), (1, HELD), (2, AT_ONCE)):
                    check(f"{how.__name__} under {setting}", behind(net, setting, how, family=family),
                          wanted, control, HELD)

        def loopback(family=family):
            for how in (splice, sendfile):
                control = behind_on_loopback(loop, 0, how, family)
                for setting, wanted in ((0, (SECOND, 0)), (1, (0, 1)), (2, (0, 1))):
                    check(f"{how.__name__} under {setting}",
                          behind_on_loopback(loop, setting, how, family), wanted, control, (SECOND, 0))

        suite.case(f"another route, {name}: held under 0 and 1, at once under 2")(other)
        suite.case(f"loopback, {name}: held under 0, at once under 1 and 2")(loopback)

    @suite.case("another policy makes no difference to it")
    def _policies():
        for policy in ("stock", "bounded", "nonagle", "nodelay"):
            net.sysctl(POLICY, policy)
            check(f"under {policy}", behind(net, 2, splice), AT_ONCE, behind(net, 0, splice), HELD)

    @suite.case("what the application writes itself is not covered, nor what follows a splice")
    def _written():
        net.sysctl(SPLICE, 2)
        before = net.covered()["spliced"]
        with Connection(net, "reno") as c:
            c.write(FIRST)
            ktap.equal(lengths(c.write(SECOND)), [], "a write")
            splice(c.sock, SECOND)
            # All of it is one segment now.
            ktap.equal(lengths(c.now()), [2 * SECOND], "with the spliced data")
            ktap.equal(lengths(c.write(SECOND)), [], "a write after it")
        ktap.equal(net.covered()["spliced"] - before, 1, "spliced")


def add_meaning(net):
    """What forwarders say otherwise."""

    @suite.case("SPLICE_F_MORE: held under every setting, and sent with what follows")
    def _more():
        for setting in (0, 1, 2):
            net.sysctl(SPLICE, setting)
            before = net.covered()["spliced"]
            with Connection(net, "reno") as c:
                splice(c.sock, FIRST, os.SPLICE_F_MORE)
                ktap.equal((lengths(c.now()), c.unsent()), ([], FIRST), f"after MORE under {setting}")
                splice(c.sock, SECOND)
                ktap.equal(lengths(c.now()), [FIRST + SECOND], f"without MORE under {setting}")
            ktap.equal(net.covered()["spliced"] - before, int(setting == 2), f"spliced under {setting}")

    @suite.case("TCP_CORK: held under every setting until it is taken away")
    def _cork():
        for setting in (0, 2):
            net.sysctl(SPLICE, setting)
            before = net.covered()
            with Connection(net, "reno") as c:
                on(TCP_CORK)(c)
                splice(c.sock, FIRST)
                splice(c.sock, SECOND)
                ktap.equal((lengths(c.now()), c.unsent()), ([], FIRST + SECOND), f"under {setting}")
                c.sock.setsockopt(socket.IPPROTO_TCP, TCP_CORK, 0)
                ktap.equal(lengths(c.now()), [FIRST + SECOND], f"uncorked under {setting}")
            ktap.equal(net.since(before), {"left_cork": 2}, f"counters under {setting}")

    @suite.case("TCP_NODELAY: sent at once under every setting, and not counted as spliced")
    def _nodelay():
        for setting in (0, 2):
            check(f"under {setting}", behind(net, setting, splice, options=(TCP_NODELAY,)),
                  (0, [FIRST], [SECOND], [], 0))

    @suite.case("sendfile of 150 packets and a bit: the segments that stock sends")
    def _large():
        seen = {}
        for setting in (0, 2):
            net.sysctl(SPLICE, setting)
            with Connection(net, "reno") as c:
                sendfile(c.sock, 150 * c.MSS + 300)
                seen[setting] = rest(c)
                ktap.equal(c.unsent(), 0, "bytes left")
        ktap.note(f"under 0: {len(seen[0])} segments, {seen[0].count(1000)} of them full")
        ktap.note(f"under 2: {len(seen[2])} segments, {seen[2].count(1000)} of them full")
        if (len(seen[0]), sum(seen[0])) != (151, 150300):
            raise ktap.Void(f"stock sends {seen[0]}")
        ktap.equal(seen[2], seen[0], "segments under 2")

    @suite.case("a splice in pieces of a file: each full packet is full")
    def _pieces():
        seen = {}
        for setting in (0, 2):
            net.sysctl(SPLICE, setting)
            with Connection(net, "reno") as c:
                for _ in range(5):
                    splice(c.sock, 4 * c.MSS)
                    ktap.equal(c.info().retrans, 0, "retransmissions")
                seen[setting] = rest(c)
        ktap.equal(seen[2], seen[0], "segments under 2")
        ktap.equal(seen[0], [1000] * 20, "segments under 0")


def tls(sock):
    """The socket sends TLS 1.2 records from now on."""
    keys = struct.pack("=HH8s16s4s8s", 0x0303, 51, b"i" * 8, b"k" * 16, b"salt", b"\0" * 8)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
    sock.setsockopt(SOL_TLS, TLS_TX, keys)


def knows_tls(net):
    """The kernel has kTLS."""
    subprocess.run(["modprobe", "-q", "tls"], check=False)
    with Connection(net, "reno") as c:
        try:
            tls(c.sock)
        except OSError as error:
            ktap.note(f"no kTLS (CONFIG_TLS), so its cases are not there: {error}")
            return False
    return True


def add_tls(net, loop):
    """kTLS hands its records to TCP as spliced pages, whoever wrote them; but who makes records is no
    forwarder: they wait as they do in stock."""

    @suite.case("kTLS: a second record waits for the ACK under every setting, as in stock")
    def _tls():
        ways = (("write", lambda sock, length: sock.send(b"y" * length)), ("splice", splice),
                ("sendfile", sendfile))
        for family in (socket.AF_INET, socket.AF_INET6):
            for setting in (0, 1, 2):
                net.sysctl(SPLICE, setting)
                for way, how in ways:
                    before = net.covered()
                    with Connection(net, "reno", family=family) as c:
                        tls(c.sock)
                        c.sock.send(b"y" * FIRST)
                        how(c.sock, SECOND)
                        waits = c.unsent()
                        seen = rest(c)
                    counters = net.since(before)
                    ktap.note(f"{way} under {setting}: {waits} bytes waited, packets {seen}, "
                              f"{counters}")
                    ktap.equal(seen, [FIRST + RECORD, SECOND + RECORD], "packets of two records")
                    ktap.equal((waits, counters), (SECOND + RECORD, {"left_nagle": 2}),
                               "bytes that waited, counters")
                # Beside it, on the same route: who forwards does not wait.
                check("spliced without kTLS", behind(net, setting, splice, family=family),
                      AT_ONCE if setting == 2 else HELD)

    @suite.case("kTLS on loopback: the same, where a splice into the socket beside it is sent at once")
    def _loopback():
        for setting in (0, 1):
            loop.sysctl(SPLICE, setting)
            before = loop.covered()
            with on_loopback(loop, socket.AF_INET) as (near, far):
                tls(near)
                loop.plug()
                near.send(b"y" * FIRST)
                splice(near, SECOND)
                waits = unsent(near)
                loop.pull()
                receive(far, FIRST + SECOND + 2 * RECORD)
            ktap.equal((waits, loop.since(before)), (SECOND + RECORD, {"left_nagle": 2}),
                       f"bytes that waited, counters under {setting}")
            check("spliced without kTLS", behind_on_loopback(loop, setting, splice, socket.AF_INET),
                  (0, 1) if setting else (SECOND, 0))

    @suite.case("kTLS with TCP_NODELAY: at once, and not counted as spliced")
    def _nodelay():
        for setting in (0, 2):
            net.sysctl(SPLICE, setting)
            before = net.covered()
            with Connection(net, "reno") as c:
                tls(c.sock)
                on(TCP_NODELAY)(c)
                c.sock.send(b"y" * FIRST)
                splice(c.sock, SECOND)
                ktap.equal(c.unsent(), 0, "bytes that wait")
                rest(c)
            counters = net.since(before)
            ktap.equal((counters.get("covered", 0) >= 2, counters.get("spliced", 0)), (True, 0),
                       "covered, spliced")


def main():
    """One namespace with a far end, one with a plugged loopback."""
    modules.need_root("ip")
    need_plug()
    was_loaded = modules.loaded(MODULE)
    modules.load(MODULE)
    if not was_loaded:
        atexit.register(modules.unload, MODULE)
    net, loop = Plugged(), Plugged("lo")
    add_routes(net, loop)
    add_meaning(net)
    if knows_tls(net):
        add_tls(net, loop)
    suite.run()


main()
