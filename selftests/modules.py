# SPDX-License-Identifier: GPL-2.0
#
# Where the modules under test come from, loading and parameters, for the tests in Python. The same
# rules as in lib.sh: LOWTAIL_KO, the checkout (test-only modules, too), what is installed.

import atexit
import os
import shutil
import subprocess

import ktap

HERE = os.path.dirname(os.path.abspath(__file__))


def file_of(name):
    """The module's file, or None when only modprobe might know it."""
    built = f"{HERE}/../out/kbuild/{os.uname().release}"
    for place in (os.environ.get("LOWTAIL_KO"), f"{HERE}/..", built, f"{built}-faults",
                  f"{built}-beside"):
        if place and os.path.exists(f"{place}/{name}.ko"):
            return f"{place}/{name}.ko"
    return None


def loaded(name):
    """The module is loaded now."""
    return os.path.isdir(f"/sys/module/{name}")


def load(name, *parameters):
    """Loads a module under test; without one there is no test."""
    if loaded(name):
        return
    path = file_of(name)
    command = ["insmod", path] if path else ["modprobe", name]
    run = subprocess.run([*command, *parameters], capture_output=True, text=True, check=False)
    if run.returncode and not path:
        ktap.skip_all(f"{name}.ko is neither built here nor installed (make modules)")
    if run.returncode:
        ktap.bail_out(f"{path} cannot be loaded: {run.stderr.strip()}")


def unload(name):
    """Unloads a module, and fails where that is refused."""
    if loaded(name):
        subprocess.run(["rmmod", name], check=True)


def need_root(*programs):
    """Skips everything without root or without one of the programs."""
    if os.geteuid():
        ktap.skip_all("root is needed")
    for program in programs:
        if not any(os.access(f"{p}/{program}", os.X_OK) for p in os.environ["PATH"].split(":")):
            ktap.skip_all(f"{program} is not installed")


def need_stock_dctcp():
    """Every comparison here has stock dctcp as its control."""
    if subprocess.run(["modprobe", "tcp_dctcp"], capture_output=True, check=False).returncode:
        ktap.skip_all("tcp_dctcp is missing (CONFIG_TCP_CONG_DCTCP), and it is the control")


def register_bpf_dctcp():
    """Makes the kernel's DCTCP in BPF selectable until the end, where bpf_dctcp.sh has built it and this
    kernel takes it: True."""
    built = f"{HERE}/../out/bpf/{os.uname().release}/bpf_dctcp.o"
    # Beside the algorithm the object holds one that is there to be refused, so the exit status is 255.
    if os.path.exists(built) and shutil.which("bpftool"):
        subprocess.run(["bpftool", "struct_ops", "register", built], check=False, capture_output=True)
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
        there = "bpf_dctcp" in file.read().split()
    if there:
        atexit.register(subprocess.run, ["bpftool", "struct_ops", "unregister", "name", "dctcp"],
                        check=False, capture_output=True)
    return there


class Parameter:
    """A module parameter with another value for a while."""

    def __init__(self, module, name, value):
        self.path = f"/sys/module/{module}/parameters/{name}"
        self.value = value

    def __enter__(self):
        with open(self.path, encoding="ascii") as file:
            self.before = file.read().strip()
        self._set(self.value)

    def __exit__(self, *_):
        self._set(self.before)

    def _set(self, value):
        with open(self.path, "w", encoding="ascii") as file:
            file.write(str(value))
