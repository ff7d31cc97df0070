# SPDX-License-Identifier: GPL-2.0
#
# The flows of stress.py: two namespaces joined by a veth, and any number of connections between them,
# all driven by one thread. What arrives is compared with what was sent, byte by byte.

import contextlib
import os
import random
import selectors
import socket
import struct
import subprocess
import tempfile
import time

TCP_ULP, SOL_TLS, TLS_TX, TLS_RX = 31, 282, 1, 2
TLS_KEYS = struct.pack("=HH8s16s4s8s", 0x0303, 51, b"i" * 8, b"k" * 16, b"salt", b"\0" * 8)
IPPROTO_MPTCP = 262
PATTERN = random.Random(1).randbytes(1 << 18)
TWICE = memoryview(PATTERN + PATTERN)
ADDRESS = {("L", 4): "10.7.0.1", ("R", 4): "10.7.0.2", ("L", 6): "fd07::1", ("R", 6): "fd07::2"}
OTHER = {"L": "R", "R": "L"}


def run(*command, **more):
    """A command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Space:
    """A network namespace."""

    def __init__(self, name):
        self.name = name
        run("ip", "netns", "add", name)
        self.fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
        # A socket that was closed, and whose peer has gone, holds its algorithm for minutes otherwise.
        self.write("net.ipv4.tcp_orphan_retries", 1)

    @contextlib.contextmanager
    def inside(self):
        """This thread is in it."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        os.setns(self.fd, os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(home, os.CLONE_NEWNET)
            os.close(home)

    def write(self, name, value):
        """Writes a sysctl in one piece."""
        with self.inside():
            fd = os.open("/proc/sys/" + name.replace(".", "/"), os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(fd, f"{value}\n".encode())
        finally:
            os.close(fd)

    def read(self, name):
        """Reads one."""
        with self.inside(), open("/proc/sys/" + name.replace(".", "/"), encoding="ascii") as file:
            return file.read().strip()

    def close(self):
        """Takes it away; the kernel does so a little later."""
        os.close(self.fd)
        run("ip", "netns", "del", self.name)


class End:
    """One side of a flow."""

    def __init__(self, flow, which, sock, length, wanted):
        self.flow, self.which, self.sock = flow, which, sock
        self.length, self.wanted = length, wanted
        self.sent = self.got = 0
        self.paused = self.shut = self.ended = self.waits = False

    def part(self, direction, at, length):
        """What one direction of the flow carries from a byte on."""
        start = (self.flow.number * 7919 + direction * 104729 + at) % len(PATTERN)
        return TWICE[start : start + length]

    def read(self):
        """Takes what has arrived, and compares it."""
        for _ in range(4):
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                return
            if not data:
                if self.got != self.wanted:
                    raise AssertionError(f"{self.flow}: ended after {self.got} of {self.wanted} bytes")
                self.ended = True
                return
            if data != self.part(1 - self.which, self.got, len(data)) or self.got + len(data) > self.wanted:
                raise AssertionError(f"{self.flow}: other bytes than were sent, from {self.got} on")
            self.got += len(data)

    def write(self):
        """Writes once, as the flow's kind does it, and shuts down behind the last byte."""
        kind = self.flow.kind
        small = kind in ("rpc", "mptcp-rpc", "more", "cork")
        with contextlib.suppress(BlockingIOError):
            for size in (1500, 5) if small else (16384,):
                data = self.part(self.which, self.sent, min(size, self.length - self.sent))
                if not data:
                    break
                if kind in ("splice", "sendfile"):
                    self.sent += self._spliced(kind, data)
                else:
                    flags = socket.MSG_MORE if kind == "more" and size > 5 else 0
                    self.sent += self.sock.send(data, flags)
            if kind == "cork":
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, self.sent // 1505 % 2)
            if self.sent == self.length and not self.shut:
                self.shut = True
                self.sock.shutdown(socket.SHUT_WR)

    def _spliced(self, kind, data):
        if kind == "sendfile":
            with tempfile.TemporaryFile() as file:
                file.write(data)
                file.flush()
                return os.sendfile(self.sock.fileno(), file.fileno(), 0, len(data))
        out, into = os.pipe()
        try:
            os.write(into, data)
            return os.splice(out, self.sock.fileno(), len(data), flags=os.SPLICE_F_NONBLOCK)
        finally:
            os.close(out)
            os.close(into)


class Flow:
    """A connection, and what was asked of it."""

    def __init__(self, action):
        (_, self.number, self.side, self.version, self.kind, self.algorithm, self.there, self.back,
         self.buffer, self.nodelay) = action
        self.ends, self.aborted, self.over = [None, None], False, False

    def __str__(self):
        have = [f"{e.sent}/{e.length} sent {e.got}/{e.wanted} got" if e else "no socket" for e in self.ends]
        return (f"flow {self.number} ({self.kind}, IPv{self.version}, from {self.side}, opened with "
                f"{self.algorithm}: {'; '.join(have)})")


class Flows:
    """The two namespaces and all flows between them."""

    def __init__(self, listeners, segments, tls):
        self.spaces = {"L": Space("stressL"), "R": Space("stressR")}
        self.flows, self.by_port, self.tls = {}, {}, tls
        self.selector = selectors.EpollSelector()
        self.opened = self.finished = self.aborted = self.bytes = 0
        run("ip", "link", "add", "v", "netns", "stressL", "type", "veth", "peer", "name", "v", "netns", "stressR")
        for name, space in self.spaces.items():
            space.write("net.ipv4.tcp_ecn", 1)
            space.write("net.ipv4.tcp_no_metrics_save", 1)
            run("ip", "-n", space.name, "-batch", "-", input="\n".join((
                "link set lo up", f"addr add {ADDRESS[name, 4]}/24 dev v",
                f"addr add {ADDRESS[name, 6]}/64 dev v nodad",
                f"link set v gso_max_segs {segments} up")))
        algorithms = iter(listeners)
        self.listening = {(s, v, p): self._listen(s, v, p, next(algorithms))
                          for s in "LR" for v in (4, 6) for p in (0, IPPROTO_MPTCP)}

    def _socket(self, side, version, protocol, algorithm):
        with self.spaces[side].inside():
            sock = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_STREAM, protocol)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        return sock

    def _listen(self, side, version, protocol, algorithm):
        sock = self._socket(side, version, protocol, algorithm)
        sock.bind((ADDRESS[side, version], 0))
        sock.listen(512)
        self.selector.register(sock, selectors.EVENT_READ, (side, version, protocol))
        return sock

    def open(self, action):
        """Opens a flow."""
        flow = Flow(action)
        if flow.kind == "tls" and not self.tls:
            flow.kind = "bulk"
        protocol = IPPROTO_MPTCP if flow.kind.startswith("mptcp") else 0
        sock = self._socket(flow.side, flow.version, protocol, flow.algorithm)
        sock.bind((ADDRESS[flow.side, flow.version], 0))
        self._options(flow, sock)
        self.flows[flow.number] = flow
        self.by_port[OTHER[flow.side], flow.version, protocol, sock.getsockname()[1]] = flow
        flow.ends[0] = End(flow, 0, sock, flow.there, flow.back)
        self.opened += 1
        with contextlib.suppress(BlockingIOError):
            sock.connect(self.listening[OTHER[flow.side], flow.version, protocol].getsockname()[:2])
        self.selector.register(sock, selectors.EVENT_WRITE, flow.ends[0])

    @staticmethod
    def _options(flow, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, flow.nodelay)
        if flow.buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, flow.buffer)

    def _accept(self, where):
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, peer = self.listening[where].accept()
                sock.setblocking(False)
                flow = self.by_port.pop((*where, peer[1]))
                if flow.over:
                    sock.close()
                    continue
                self._options(flow, sock)
                flow.ends[1] = End(flow, 1, sock, flow.back, flow.there)
                if flow.kind == "tls":
                    # Both at once: neither side has sent yet, so neither can be beyond ESTABLISHED.
                    for end, way in zip(flow.ends, (TLS_TX, TLS_RX)):
                        end.sock.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
                        end.sock.setsockopt(SOL_TLS, way, TLS_KEYS)
                    self._interest(flow.ends[0])
                self.selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE, flow.ends[1])

    def turn(self, seconds):
        """Lets the flows go on for so long. Each end writes once, so that flows last for some turns."""
        until = time.monotonic() + seconds
        for flow in self.open_flows():
            for end in filter(None, flow.ends):
                if end.waits:
                    end.waits = False
                    self._interest(end)
        while True:
            for key, events in self.selector.select(max(0, until - time.monotonic())):
                if isinstance(key.data, End):
                    if not key.data.flow.over:
                        self._serve(key.data, events)
                else:
                    self._accept(key.data)
            if time.monotonic() >= until:
                return

    def _serve(self, end, events):
        flow = end.flow
        try:
            if flow.kind == "tls" and not flow.ends[1]:
                # Connected, and not accepted yet: its first byte is to be a record's.
                self.selector.unregister(end.sock)
                return
            if events & selectors.EVENT_READ and not end.paused and not end.ended:
                end.read()
            if events & selectors.EVENT_WRITE:
                end.write()
                end.waits = True
        except OSError as error:
            if flow.aborted:
                self._drop(flow)
                return
            raise AssertionError(f"{flow}: {error}") from error
        self._interest(end)
        if all(e and e.ended and e.shut for e in flow.ends):
            self.finished += 1
            self.bytes += flow.there + flow.back
            self._drop(flow)

    def _interest(self, end):
        wanted = 0 if end.paused or end.ended else selectors.EVENT_READ
        wanted |= 0 if end.shut or end.waits else selectors.EVENT_WRITE
        known = end.sock in self.selector.get_map()
        if not wanted and known:
            self.selector.unregister(end.sock)
        elif wanted and known:
            self.selector.modify(end.sock, wanted, end)
        elif wanted:
            self.selector.register(end.sock, wanted, end)

    def _drop(self, flow):
        flow.over = True
        for end in filter(None, flow.ends):
            if end.sock in self.selector.get_map():
                self.selector.unregister(end.sock)
            end.sock.close()

    def end(self, number, which):
        """An end of a flow that is not over, or None."""
        flow = self.flows.get(number)
        return flow.ends[which] if flow and not flow.over else None

    def pause(self, end, paused):
        """An end stops reading, so that its window shuts, or goes on."""
        end.paused = paused
        self._interest(end)

    def abort(self, end):
        """One end resets the connection."""
        end.flow.aborted = True
        self.aborted += 1
        end.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._drop(end.flow)

    def open_flows(self):
        """Those that are not over."""
        return [f for f in self.flows.values() if not f.over]

    def close(self):
        """Takes everything away."""
        for flow in self.open_flows():
            self._drop(flow)
        for sock in self.listening.values():
            sock.close()
        self.selector.close()
        for space in self.spaces.values():
            space.close()
