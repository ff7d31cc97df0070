#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Beside our hook on tcp_push(): a livepatch of the same function, put there before and after it, and
# taken away before and after it (C26). The livepatch (beside/lowtail_livepatch.c) does what the
# kernel's function does, and counts its calls.
#
# In each state NODELAY writes go into a plug, as in autocork.py: the hook acts when they are not held
# under nodelay, and held under stock; the livepatch when its count has grown. The control is the
# kernel without either, in the same boot.

import atexit
import os
import time

import ktap
import modules
from plugged import MODULE, POLICY, TAIL, Plugged, need_plug, outcome

PATCH = "lowtail_livepatch"
SYSFS = f"/sys/kernel/livepatch/{PATCH}"
#: Tasks are moved to and from the livepatch one by one, and looked at again every second.
TRANSITION = 60

suite = ktap.Suite()


def addresses(*names):
    """Where the kernel's functions are."""
    with open("/proc/kallsyms", encoding="ascii") as file:
        lines = [line.split() for line in file]
    return [next(int(l[0], 16) for l in lines if l[2] == name and len(l) == 3) for name in names]


def wait_for(condition, what):
    """Waits for the end of a transition."""
    end = time.monotonic() + TRANSITION
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {TRANSITION} s")
        time.sleep(0.05)


def read(path):
    """A file of sysfs, without its newline."""
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def patch_on():
    """Loads the livepatch and waits until every task uses it."""
    push, frames = addresses("tcp_mark_push", "__tcp_push_pending_frames")
    modules.load(PATCH, f"mark_push={push:#x}", f"push_frames={frames:#x}")
    wait_for(lambda: read(f"{SYSFS}/transition") == "0", "the livepatch is on")


def patch_off():
    """Turns it off, waits until no task uses it, and unloads it."""
    if not modules.loaded(PATCH):
        return
    with open(f"{SYSFS}/enabled", "w", encoding="ascii") as file:
        file.write("0")
    wait_for(lambda: not os.path.exists(SYSFS), "the livepatch is off")
    modules.unload(PATCH)


def calls():
    """How often the livepatch's function has run."""
    return int(read(f"/sys/module/{PATCH}/parameters/calls"))


ON = {"hook": lambda: modules.load(MODULE), "livepatch": patch_on}
OFF = {"hook": lambda: modules.unload(MODULE), "livepatch": patch_off}


def acts(net, control, *present):
    """What is there acts, what is not does not, and every packet is the kernel's."""
    ktap.equal((modules.loaded(MODULE), modules.loaded(PATCH)),
               ("hook" in present, "livepatch" in present), "hook and livepatch loaded")
    for policy in ("stock", "nodelay") if "hook" in present else (None,):
        if policy:
            net.sysctl(POLICY, policy)
        before = calls() if "livepatch" in present else 0
        (held, corked, packets), counters = outcome(net, "NODELAY")
        ran = calls() - before if "livepatch" in present else 0
        ktap.note(f"{' and '.join(present) or 'neither'}, {policy or 'no policy'}: held {held}, "
                  f"TCPAutoCorking {corked}, {counters}, the livepatch ran {ran} times")
        free = policy == "nodelay"
        ktap.equal((held, corked), (0, 0) if free else (TAIL, 1), "(held, corked)")
        ktap.equal(packets, control[2], "packets")
        wanted = {"nodelay": {"covered": 2}, "stock": {"left_stock": 2}, None: {}}[policy]
        ktap.equal(counters, wanted, "the hook's counters")
        # Other sockets of the machine may push meanwhile.
        if "livepatch" in present:
            ktap.equal(ran >= 2, True, "the livepatch's function ran")


def add_orders(net, control):
    """Every order of coming and going."""
    for first, second in (("livepatch", "hook"), ("hook", "livepatch")):
        for gone, left in ((first, second), (second, first)):

            def order(first=first, second=second, gone=gone, left=left):
                # What a case before this one left, when it failed.
                for off in OFF.values():
                    off()
                ON[first]()
                acts(net, control, first)
                ON[second]()
                acts(net, control, first, second)
                OFF[gone]()
                acts(net, control, left)
                ON[gone]()
                acts(net, control, first, second)
                OFF[left]()
                acts(net, control, gone)
                OFF[gone]()
                acts(net, control)

            suite.case(f"{first}, then {second}; {gone} goes first and comes again")(order)


def main():
    """The control without either, then every order."""
    modules.need_root("ip")
    need_plug()
    if not os.path.isdir("/sys/kernel/livepatch"):
        ktap.skip_all("no livepatching (CONFIG_LIVEPATCH)")
    if not modules.file_of(PATCH):
        ktap.skip_all(f"{PATCH}.ko is not built (selftests/faults/build.sh)")
    if modules.loaded(MODULE):
        modules.unload(MODULE)
        atexit.register(modules.load, MODULE)
    else:
        atexit.register(modules.unload, MODULE)
    atexit.register(patch_off)
    net = Plugged()
    control = outcome(net, "NODELAY")[0]

    @suite.case("control: without either a NODELAY write is held")
    def _control():
        if control[:2] != (TAIL, 1):
            raise ktap.Void(f"(held, corked): {control[:2]}")

    add_orders(net, control)
    suite.run()


main()
