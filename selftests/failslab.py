#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Allocations that fail while a module is loaded, and while a namespace is made beside it: each load
# either works or leaves nothing behind, no algorithm, sysctl, file, tracepoint or hook, and the next one works.
# One allocation fails at a time, every one in turn (at most MOST=). Skipped on a kernel without failslab
# (make kselftest KERNEL=debug has it). KTAP.

import os
import random

import churn
import ktap
import modules

#: Of each kind. A load makes some hundred allocations.
MOST = int(os.environ.get("MOST", 400))
suite = ktap.Suite()


def tell(failed, tried, total, what):
    """What was done; a kernel on which nothing failed shows nothing."""
    ktap.note(f"{failed} of {tried} {what} failed, {total} allocations in each")
    if not failed:
        raise ktap.Void("none failed")


def load_fails(name):
    """A case: loading it, with two more namespaces there, so that what was done for one is undone for another."""
    others = [churn.held_namespace() for _ in range(2)]
    try:
        with churn.failslab():
            tell(*churn.failures_at_load(name, random.Random(1), MOST), "loads")
    finally:
        for fd in others:
            os.close(fd)


suite.case("tcp_dctcp_floor: a load that fails leaves nothing")(lambda: load_fails(churn.FLOOR))
suite.case("autocork_policy: a load that fails leaves nothing")(lambda: load_fails(churn.HOOK))


@suite.case("a namespace that could not be made leaves nothing")
def _namespaces():
    with churn.failslab():
        tell(*churn.failures_at_namespaces(random.Random(1), MOST), "namespaces")


@suite.case("every setting of failslab is what it was")
def _settings():
    before = settings()
    with churn.failslab():
        if settings() == before:
            raise ktap.Void("nothing was set")
    ktap.equal(settings(), before, "settings")


def settings():
    """All of failslab's, and those for pages."""
    return {f"{place}/{name}": churn.text(f"{place}/{name}") for place in (churn.FAILSLAB, churn.PAGES)
            if os.path.isdir(place) for name in sorted(os.listdir(place)) if os.path.isfile(f"{place}/{name}")}


def main():
    """All cases, or none where nothing can be made to fail."""
    modules.need_root()
    for name in (churn.FLOOR, churn.HOOK):
        if not modules.file_of(name):
            ktap.skip_all(f"{name}.ko is not built here (make modules)")
        modules.unload(name)
    try:
        with churn.failslab():
            pass
    except ktap.Skip as reason:
        ktap.skip_all(f"{reason}; make kselftest KERNEL=debug has it")
    if not os.path.exists(f"{churn.TRACING}/enabled_functions"):
        os.system(f"mount -t tracefs tracefs {churn.TRACING} 2>/dev/null")
    suite.run()


if __name__ == "__main__":
    main()
