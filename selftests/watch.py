# SPDX-License-Identifier: GPL-2.0
#
# The congestion window at every transmission, not a sample of it: a kprobe event on the one function
# that every segment leaves through, in a trace instance of our own.
#
# bpftrace would read better, but takes half a minute to start where QEMU has no KVM. What it would
# do for us, finding a member of struct tcp_sock, is the first half of this file.
#
# Pure ACKs are seen too, with a length of 0: no window governs them, and they leave with what it is.

import os
import struct

import ktap

TRACING = "/sys/kernel/tracing"
NAME = "lowtail_watch"
KIND_STRUCT = 4
HERE = os.path.dirname(os.path.abspath(__file__))


def member_bits(struct_name, member_name):
    """Where a member lies in a struct of the running kernel, in bits, by its BTF, or by that which
    faults/build.sh makes for a kernel without."""
    places = ("/sys/kernel/btf/vmlinux", f"{HERE}/../out/kbuild/{os.uname().release}-layouts/types.btf")
    place = next(filter(os.path.exists, places), None)
    if not place:
        ktap.skip_all("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), and selftests/faults/build.sh made none")
    with open(place, "rb") as file:
        raw = file.read()
    head, type_off, type_len, str_off, str_len = struct.unpack_from("<4xIIIII", raw)
    types = raw[head + type_off : head + type_off + type_len]
    strings = raw[head + str_off : head + str_off + str_len]
    wanted = strings.index(b"\0" + struct_name.encode() + b"\0") + 1
    member = strings.index(b"\0" + member_name.encode() + b"\0") + 1
    at = -1
    # By search, not by a walk over all the types. A chance match has no such member.
    while (at := types.find(struct.pack("<I", wanted), at + 1)) >= 0:
        if at % 4 or at + 12 > len(types):
            continue
        info = struct.unpack_from("<I", types, at + 4)[0]
        count = info & 0xFFFF
        if info >> 24 & 0x1F != KIND_STRUCT or at + 12 + 12 * count > len(types):
            continue
        for i in range(count):
            name, _, offset = struct.unpack_from("<III", types, at + 12 + 12 * i)
            if name == member:
                return offset & 0xFFFFFF if info >> 31 else offset
    raise KeyError(f"{struct_name}.{member_name}")


def write(path, text, flags=os.O_TRUNC):
    """Writes a file of tracefs, in one piece and without the seek of open(…, os.O_APPEND)."""
    fd = os.open(f"{TRACING}/{path}", os.O_WRONLY | flags)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


class Watch:
    """Records the window of every transmission, by local port.

    A mark divides a connection's transmissions in those before it and those after it.
    """

    def __init__(self):
        if not os.path.exists(f"{TRACING}/kprobe_events"):
            os.system(f"mount -t tracefs tracefs {TRACING}")
        if not os.path.exists(f"{TRACING}/kprobe_events"):
            ktap.skip_all("no kprobe events (CONFIG_KPROBE_EVENTS)")
        self.seen = {}
        window = member_bits("tcp_sock", "snd_cwnd") // 8
        length = member_bits("sk_buff", "len") // 8
        self.remove()
        # The port is struct sock_common's skc_num, the half word behind the destination port.
        write("kprobe_events", f"p:{NAME}/xmit __tcp_transmit_skb port=+14($arg1):u16 "
                               f"cwnd=+{window}($arg1):u32 len=+{length}($arg2):u32\n", os.O_APPEND)
        os.mkdir(f"{TRACING}/instances/{NAME}")
        write(f"instances/{NAME}/buffer_size_kb", "4096")
        write(f"instances/{NAME}/events/{NAME}/xmit/enable", "1")

    @staticmethod
    def mark(port):
        """From here on, what a connection sends is `after` its mark; a second mark moves it."""
        write(f"instances/{NAME}/trace_marker", f"mark port={port}\n")

    @staticmethod
    def remove():
        """Takes instance and probe away."""
        if os.path.isdir(f"{TRACING}/instances/{NAME}"):
            write(f"instances/{NAME}/events/enable", "0")
            os.rmdir(f"{TRACING}/instances/{NAME}")
        if os.path.isdir(f"{TRACING}/events/{NAME}"):
            write("kprobe_events", f"-:{NAME}/xmit\n", os.O_APPEND)

    def stop(self):
        """Ends the recording; lost records are a failure, not a gap."""
        place = f"{TRACING}/instances/{NAME}"
        write(f"instances/{NAME}/events/{NAME}/xmit/enable", "0")
        for cpu in os.listdir(f"{place}/per_cpu"):
            with open(f"{place}/per_cpu/{cpu}/stats", encoding="ascii") as file:
                stats = dict(line.split(": ") for line in file if ": " in line)
            if int(stats["overrun"]) or int(stats["dropped events"]):
                raise AssertionError("the trace lost records")
        with open(f"{place}/trace", encoding="ascii") as file:
            for line in file:
                if not line.startswith("#"):
                    fields = dict(f.split("=") for f in line.split() if f.count("=") == 1)
                    sent = self.seen.setdefault(int(fields["port"]), [])
                    # A mark has a port, and no window.
                    sent.append((int(fields["cwnd"]), int(fields["len"])) if "cwnd" in fields else None)
        self.remove()

    def windows(self, port, *, after=False, data=False):
        """The windows of all transmissions of a connection, or of those after its mark, or of those
        that carried data."""
        sent = self.seen[port]
        if after:
            sent = sent[len(sent) - sent[::-1].index(None) :]
        return [cwnd for cwnd, length in filter(None, sent) if length or not data]
