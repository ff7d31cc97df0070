# SPDX-License-Identifier: GPL-2.0
#
# A BPF program on a cgroup that sets options of each connection when its handshake is over, as fleets
# do it: a dozen instructions, put together here, so that no compiler is needed in a guest.
#
# It touches the cgroup that it makes; this process goes in, and back out.

import atexit
import ctypes
import os
import platform
import struct
import subprocess
import tempfile

import ktap

SYS_BPF = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, PROG_ATTACH, PROG_DETACH = 5, 8, 9
PROG_TYPE_SOCK_OPS, CGROUP_SOCK_OPS = 13, 3
ACTIVE_ESTABLISHED, PASSIVE_ESTABLISHED = 4, 5
CALL_SETSOCKOPT = 49
IPPROTO_TCP = 6

TCP_CONGESTION = 13
TCP_BPF_IW, TCP_BPF_SNDCWND_CLAMP = 1001, 1002

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    """bpf(2)."""
    raw = ctypes.create_string_buffer(attributes, 128)
    answer = libc.syscall(SYS_BPF[platform.machine()], command, raw, len(raw))
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf({command}): {os.strerror(error)}")
    return answer


def instruction(code, to=0, source=0, offset=0, value=0):
    """struct bpf_insn."""
    return struct.pack("<BBhi", code, to | source << 4, offset, value)


def program(options):
    """For the two callbacks after a handshake: setsockopt(IPPROTO_TCP, option, value) of each."""
    body = b""
    for option, value in options:
        value = value.encode().ljust(16, b"\0") if isinstance(value, str) else struct.pack("<i", value)
        for i, word in enumerate(struct.unpack(f"<{len(value) // 4}i", value)):
            body += instruction(0x62, to=10, offset=4 * i - 16, value=word)  # *(u32 *)(r10 + …) = word
        body += instruction(0xBF, to=1, source=6)  # r1 = r6
        body += instruction(0xB7, to=2, value=IPPROTO_TCP)
        body += instruction(0xB7, to=3, value=option)
        body += instruction(0xBF, to=4, source=10) + instruction(0x07, to=4, value=-16)
        body += instruction(0xB7, to=5, value=len(value))
        body += instruction(0x85, value=CALL_SETSOCKOPT)
    return (
        instruction(0xBF, to=6, source=1)  # r6 = the context
        + instruction(0x61, to=7, source=6)  # r7 = its op
        + instruction(0x15, to=7, offset=1, value=ACTIVE_ESTABLISHED)
        + instruction(0x55, to=7, offset=len(body) // 8, value=PASSIVE_ESTABLISHED)
        + body
        + instruction(0xB7, to=0, value=1)
        + instruction(0x95)
    )


class SockOps:
    """The program is on for the connections that are made within."""

    cgroup = None

    def __init__(self, *options):
        self.code = program(options)
        if SockOps.cgroup is None:
            SockOps.cgroup = self._own_cgroup()

    @staticmethod
    def _own_cgroup():
        where = tempfile.mkdtemp()
        subprocess.run(["mount", "-t", "cgroup2", "cgroup2", where], check=True)
        with open("/proc/self/cgroup", encoding="ascii") as file:
            home = where + next(line[3:].strip() for line in file if line.startswith("0::"))
        own = f"{where}/lowtail-{os.getpid()}"
        os.mkdir(own)

        def move(place):
            with open(f"{place}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))

        def back():
            move(home)
            os.rmdir(own)
            subprocess.run(["umount", where], check=True)
            os.rmdir(where)

        move(own)
        atexit.register(back)
        return own

    def __enter__(self):
        code, licence = ctypes.create_string_buffer(self.code), ctypes.create_string_buffer(b"GPL")
        log = ctypes.create_string_buffer(1 << 16)
        try:
            self.fd = bpf(PROG_LOAD, struct.pack(
                "<IIQQIIQ", PROG_TYPE_SOCK_OPS, len(self.code) // 8, ctypes.addressof(code),
                ctypes.addressof(licence), 1, len(log), ctypes.addressof(log)))
        except OSError as error:
            ktap.note(log.value.decode(errors="replace")[-500:].replace("\n", "\n# "))
            raise AssertionError(f"the BPF program was not loaded: {error}") from error
        self.group = os.open(SockOps.cgroup, os.O_RDONLY)
        bpf(PROG_ATTACH, struct.pack("<IIII", self.group, self.fd, CGROUP_SOCK_OPS, 0))
        return self

    def __exit__(self, *_):
        bpf(PROG_DETACH, struct.pack("<IIII", self.group, self.fd, CGROUP_SOCK_OPS, 0))
        os.close(self.group)
        os.close(self.fd)
