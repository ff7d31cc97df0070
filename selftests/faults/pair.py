# SPDX-License-Identifier: GPL-2.0
#
# Two network namespaces joined by veth, a connection between them, and what really went over the
# wire, for the tests of the faults. One thread holds both ends, so nothing here waits for another
# process.

import os
import re
import socket
import struct
import subprocess
import time

CE = 3
PSH = 0x08
PORT = 9000

TCP_INFO_FIELDS = {"snd_cwnd": 80, "total_retrans": 100}
SO_MEMINFO, WMEM_ALLOC = 55, 2
ETH_P_IP, SO_RCVBUFFORCE = 0x0800, 33


def run(*command):
    """Runs a command, which must succeed."""
    subprocess.run(command, check=True, capture_output=True)


def info(sock, field):
    """A member of the connection's tcp_info."""
    data = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("=I", data, TCP_INFO_FIELDS[field])[0]


def charged(sock):
    """Bytes that the socket believes to be in the device (sk_wmem_alloc)."""
    return struct.unpack_from("=9I", sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36))[WMEM_ALLOC]


class Side:
    """A namespace: sockets, sysctls and counters of it."""

    def __init__(self, name):
        self.name = name
        run("ip", "netns", "add", name)
        self.fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
        run("ip", "-n", name, "link", "set", "lo", "up")

    def enter(self):
        """This thread is in the namespace from now on."""
        os.setns(self.fd, os.CLONE_NEWNET)

    def sysctl(self, name, value=None):
        """Reads a sysctl of the namespace, or writes it: OSError where the kernel refuses."""
        self.enter()
        path = "/proc/sys/" + name.replace(".", "/")
        if value is None:
            with open(path, encoding="ascii") as file:
                return file.read().strip()
        fd = os.open(path, os.O_WRONLY)
        try:
            return os.write(fd, value.encode())
        finally:
            os.close(fd)

    def fault(self, name, plan):
        """Switches a fault of this namespace."""
        self.sysctl(f"net.lowtail_faults.{name}", plan)

    def counts(self, name):
        """(seen, hit, skipped) of a fault."""
        self.enter()
        with open("/proc/net/lowtail_faults", encoding="ascii") as file:
            found = dict(re.findall(r"^(\w+) (\d+)$", file.read(), re.M))
        return tuple(int(found[f"{name}_{what}"]) for what in ("seen", "hit", "skipped"))

    def corked(self):
        """TCPAutoCorking."""
        self.enter()
        with open("/proc/net/netstat", encoding="ascii") as file:
            names, values = [line.split() for line in file if line.startswith("TcpExt:")]
        return int(values[names.index("TCPAutoCorking")])

    def close(self):
        """Takes the namespace away."""
        os.close(self.fd)
        run("ip", "netns", "del", self.name)


class Pair:
    """`left` and `right`; every packet that reaches `right` is kept."""

    def __init__(self):
        self.left, self.right = Side("faultsl"), Side("faultsr")
        run("ip", "link", "add", "nic", "netns", "faultsl", "type", "veth",
            "peer", "name", "nic", "netns", "faultsr")
        for number, side in enumerate((self.left, self.right), 1):
            name = side.name
            run("ip", "-n", name, "addr", "add", f"10.9.0.{number}/24", "dev", "nic")
            run("ip", "-n", name, "link", "set", "nic", "up")
            side.sysctl("net.ipv4.tcp_ecn", "1")
            side.sysctl("net.ipv4.tcp_no_metrics_save", "1")
            # A loss probe comes after milliseconds, which a busy host takes for a packet.
            side.sysctl("net.ipv4.tcp_early_retrans", "0")
        self.segments(1)
        self.right.enter()
        self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        self.wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
        self.wire.bind(("nic", ETH_P_IP))
        self.wire.setblocking(False)

    def segments(self, most):
        """How many packets a device may make of one of TCP's."""
        for side in (self.left, self.right):
            run("ip", "-n", side.name, "link", "set", "nic", "gso_max_segs", str(most))

    def delay(self, usecs):
        """How much later right's packets, and so the ACKs, arrive."""
        run("tc", "-n", "faultsr", "qdisc", "replace", "dev", "nic", "root", "netem",
            "delay", f"{usecs}us", "limit", "10000")

    def connect(self, algorithm="cubic", port=PORT):
        """(client in left, its peer in right), both NODELAY."""
        self.right.enter()
        listener = socket.create_server(("10.9.0.2", port))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        self.left.enter()
        client = socket.socket()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        client.connect(("10.9.0.2", port))
        server, _ = listener.accept()
        listener.close()
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.arrived()
        return client, server

    def arrived(self):
        """Data packets from left that reached right since the last call: (seq, bytes, ECN, PSH)."""
        packets = []
        while True:
            try:
                packet, (_, _, kind, *_) = self.wire.recvfrom(1 << 16)
            except BlockingIOError:
                return packets
            headers = (packet[0] & 15) * 4
            data = struct.unpack_from("!H", packet, 2)[0] - headers - (packet[headers + 12] >> 4) * 4
            if kind == socket.PACKET_HOST and packet[9] == socket.IPPROTO_TCP and data > 0:
                seq = struct.unpack_from("!I", packet, headers + 4)[0]
                packets.append((seq, data, packet[1] & 3, bool(packet[headers + 13] & PSH)))

    def close(self):
        """Takes both namespaces away."""
        self.wire.close()
        self.left.close()
        self.right.close()


def receive(sock, size):
    """Reads `size` bytes."""
    while size:
        got = len(sock.recv(size))
        assert got, "the connection was closed"
        size -= got


def exchange(client, server, request=100, reply=(100,)):
    """One request and its reply, written in parts; how long it took, in s."""
    begin = time.monotonic()
    client.sendall(b"q" * request)
    receive(server, request)
    for part in reply:
        server.sendall(b"r" * part)
    receive(client, sum(reply))
    return time.monotonic() - begin
