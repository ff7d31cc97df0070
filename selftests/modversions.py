#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# The modules on a kernel with CONFIG_MODVERSIONS: they carry the checksum of every symbol that they take, of C's and of
# Rust's, and where the kernel's is another the load is refused by that symbol's name. Skipped on a kernel without
# (make kselftest KERNEL=modversions has it). KTAP.

import os
import re
import struct
import subprocess
import tempfile

import ktap
import modules

FLOOR, HOOK = "tcp_dctcp_floor", "autocork_policy"
#: Where modpost writes names too long for the older table (kernel/module/version.c).
NAMES, CHECKSUMS = "__version_ext_names", "__version_ext_crcs"
#: The kernel's build tree: where a distribution links it, or in the lab's guest, which has no such link (bpftrace would
#: take the headers there, and a KDIR has not all).
TREES = (f"/lib/modules/{os.uname().release}/build", f"/usr/src/lowtail/kdir-{os.uname().release}")
suite = ktap.Suite()


def output(*command):
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def section(path, name):
    """The bytes of a section."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["objcopy", "--dump-section", f"{name}={file.name}", path, "/dev/null"], check=True)
        return file.read()


def versions(path):
    """The checksum of each symbol that a module takes, in the module's order."""
    names = section(path, NAMES).split(b"\0")
    checksums = struct.iter_unpack("=I", section(path, CHECKSUMS))
    return {name.decode(): checksum for name, (checksum,) in zip(names, checksums)}


def taken(path):
    """The symbols that are not the module's own."""
    return {line.split()[-1] for line in output("nm", "--undefined-only", path).splitlines()}


def exported():
    """The checksum of each symbol that the kernel has for modules."""
    path = next(path for path in (f"{tree}/Module.symvers" for tree in TREES) if os.path.exists(path))
    with open(path, encoding="ascii") as file:
        return {name: int(checksum, 16) for checksum, name, *_ in (line.split("\t") for line in file)}


def is_rust(name):
    """A symbol whose name rustc mangled."""
    return name.startswith("_R")


def with_checksums(path, checksums, copy):
    """A copy of the module that has these checksums."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(struct.pack(f"={len(checksums)}I", *checksums.values()))
        file.flush()
        subprocess.run(["objcopy", "--update-section", f"{CHECKSUMS}={file.name}", path, copy], check=True)


def insmod(name, checksums):
    """Loads a copy with these checksums, and unloads it: the error, or None, and what the kernel said."""
    modules.unload(name)
    with tempfile.TemporaryDirectory() as directory:
        copy = f"{directory}/{name}.ko"
        with_checksums(modules.file_of(name), checksums, copy)
        before = len(ktap.kernel_log())
        run = subprocess.run(["insmod", copy], capture_output=True, text=True, check=False)
        said = ktap.kernel_log()[before:]
    modules.unload(name)
    return run.stderr.strip() if run.returncode else None, said


def checked(name):
    """A case: a checksum for each symbol, and it is the kernel's."""
    path = modules.file_of(name)
    found, kernel = versions(path), exported()
    # The layout of struct module is no symbol of the module's: it is checked in the place of a version.
    ktap.equal(set(found), taken(path) | {"module_layout"}, "symbols with a checksum")
    ktap.equal(found, {symbol: kernel[symbol] for symbol in found}, "checksums")
    rust = sum(map(is_rust, found))
    ktap.note(f"{len(found)} symbols, {rust} of them Rust's")
    if not 0 < rust < len(found):
        raise ktap.Void("it does not take both C's and Rust's symbols")


def refused(name, rust):
    """A case: as it is it loads; with another checksum for one symbol it does not."""
    as_it_is = versions(modules.file_of(name))
    error, said = insmod(name, as_it_is)
    if error:
        raise ktap.Void(f"the copy with nothing changed does not load: {error} {said}")
    symbol = next(s for s in as_it_is if is_rust(s) == rust and s != "module_layout")
    error, said = insmod(name, {**as_it_is, symbol: as_it_is[symbol] ^ 1})
    if not error:
        raise AssertionError(f"another checksum for {symbol} was not refused")
    ktap.note(error)
    wanted = f"{name}: disagrees about version of symbol {symbol}"
    if not any(re.search(f"{re.escape(wanted)}$", line) for line in said):
        raise AssertionError(f"the kernel did not say '{wanted}', but {said}")


for module in (FLOOR, HOOK):
    suite.case(f"{module}: every symbol's checksum is the kernel's")(lambda name=module: checked(name))
    suite.case(f"{module}: a C symbol with another checksum is refused")(lambda name=module: refused(name, rust=False))
    suite.case(f"{module}: a Rust symbol with another checksum is refused")(lambda name=module: refused(name, rust=True))


modules.need_root("objcopy", "nm", "insmod", "modinfo")
for module in (FLOOR, HOOK):
    if not modules.file_of(module):
        ktap.skip_all(f"{module}.ko is not built here (make modules)")
# The kernel loads no module that says otherwise than it does itself (kernel/module/main.c, same_magic()).
if "modversions" not in output("modinfo", "--field", "vermagic", modules.file_of(FLOOR)).split():
    ktap.skip_all("this kernel has no CONFIG_MODVERSIONS (make kselftest KERNEL=modversions)")
suite.run()
