# SPDX-License-Identifier: GPL-2.0
#
# Loading and unloading by the system calls themselves, allocation failures on the way, and what must be
# as it was afterwards: nothing registered, memory back.

import contextlib
import ctypes
import errno
import os
import platform
import re
import statistics
import time

import ktap
import modules

FINIT_MODULE, DELETE_MODULE = {"x86_64": (313, 176), "aarch64": (273, 106)}[platform.machine()]
FLOOR, HOOK = "tcp_dctcp_floor", "autocork_policy"
TRACING = "/sys/kernel/tracing"
PROC = {FLOOR: "tcp_dctcp_floor", HOOK: "tcp_autocork_policy"}
SYSCTLS = ("tcp_autocork_policy", "tcp_available_autocork_policy", "tcp_autocork_deadline_us",
           "tcp_splice_nodelay")
FAILSLAB = "/sys/kernel/debug/failslab"
PAGES = "/sys/kernel/debug/fail_page_alloc"
FAIL_NTH = "/proc/thread-self/fail-nth"
MANY = 1 << 20

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    """A system call."""
    if libc.syscall(number, *arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def load(name, parameters="", failing=contextlib.nullcontext()):
    """finit_module(2): OSError where the kernel refuses. The call alone is made within `failing`."""
    fd = os.open(modules.file_of(name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        with failing:
            call(FINIT_MODULE, fd, parameters.encode(), 0)
    finally:
        os.close(fd)


def unload(name):
    """delete_module(2), without waiting: OSError (EAGAIN) while it is in use."""
    call(DELETE_MODULE, name.encode(), os.O_NONBLOCK)


def unload_within(name, seconds):
    """Once its last user is gone: a socket that was closed may hold it until what it sent is settled."""
    until = time.monotonic() + seconds
    while True:
        try:
            return unload(name)
        except OSError as error:
            if error.errno != errno.EAGAIN or time.monotonic() > until:
                raise AssertionError(f"rmmod {name} after {seconds} s: {error}, refcnt {text(users(name))}") from error
        time.sleep(0.05)


def users(name):
    """The file that tells how many use it."""
    return f"/sys/module/{name}/refcnt"


def text(path):
    """What a file says."""
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, what):
    """Writes a file in one piece."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, str(what).encode())
    finally:
        os.close(fd)


def registered(name):
    """What a module has registered in the kernel now, as a list of names."""
    found = [p for p in (f"/sys/module/{name}",) if os.path.exists(p)]
    if re.search(f"^{name} ", text("/proc/modules"), re.M):
        found.append("/proc/modules")
    places = [f"/proc/thread-self/net/{PROC[name]}", f"{TRACING}/events/{name}"]
    if name == FLOOR:
        known = text("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
        found += [a for a in known if a.startswith("dctcp_floor") or a.startswith("dctcpfloor")]
    else:
        places += [f"/proc/sys/net/ipv4/{s}" for s in SYSCTLS]
        hooked = text(f"{TRACING}/enabled_functions")
        found += [line for line in hooked.splitlines() if line.split()[0] in ("tcp_push", "tcp_pace_kick")]
    return found + [p for p in places if os.path.exists(p)]


def nothing_registered(when):
    """Neither module has left anything."""
    found = registered(FLOOR) + registered(HOOK)
    if found:
        raise AssertionError(f"{when}: still there: {', '.join(found)}")


#: Of processes' address spaces: how many of those there are is no matter of a network module.
USER = ("vm_area_struct", "anon_vma", "anon_vma_chain", "maple_node", "vmap_area", "mm_struct", "names_cache",
        "pid", "task_struct", "filp", "page->ptl")


class Memory:
    """What the kernel has allocated, after it has given back what it can: the least and the most of some
    looks, because what waits for RCU, or lies on a CPU's own list, comes and goes and a leak stays.
    """

    def __init__(self, looks=4):
        self.least, self.most, self.sizes = {}, {}, {}
        for look in range(looks):
            if look:
                time.sleep(0.3)
            for name, count in self._look().items():
                self.least[name] = min(count, self.least.get(name, count))
                self.most[name] = max(count, self.most.get(name, count))

    def _look(self):
        write("/proc/sys/vm/drop_caches", 3)
        # SLUB counts what lies on a CPU's list as in use; shrinking empties the lists.
        for cache in {os.path.realpath(e.path) for e in os.scandir("/sys/kernel/slab")}:
            with contextlib.suppress(OSError):
                write(f"{cache}/shrink", 1)
        seen = {}
        for line in text("/proc/slabinfo").splitlines()[2:]:
            name, active, _, size = line.split()[:4]
            if name not in USER:
                seen[name], self.sizes[name] = int(active), f"objects of {size} bytes"
        for name, kilobytes in re.findall(r"^(Percpu|VmallocUsed): +(\d+) kB", text("/proc/meminfo"), re.M):
            seen[name], self.sizes[name] = int(kilobytes), "kB"
        return seen

    def grown(self, before, objects, kilobytes):
        """What has surely grown by more than so many objects, or kB."""
        more = []
        for name, least in self.least.items():
            growth = least - before.most.get(name, 0)
            if growth > (kilobytes if self.sizes[name] == "kB" else objects):
                more.append(f"{name} by {growth} {self.sizes[name]}")
        return more


def steady_growth(looks, each, kilobytes):
    """What grew by so many objects or kB from one look to the next, by the median of the steps and by their
    sum: SLUB's own sheaves come and go by a few dozen at a time, dentries go up and down, a leak in a loop
    adds the same at every step."""
    more = []
    for name in looks[-1].least:
        steps = [b.least.get(name, 0) - a.least.get(name, 0) for a, b in zip(looks, looks[1:])]
        least = kilobytes if looks[-1].sizes[name] == "kB" else each
        if statistics.median(steps) >= least and sum(steps) >= least * len(steps):
            more.append(f"{name} by {steps} {looks[-1].sizes[name]}")
    return more


def cycle():
    """Both modules come and go; between them, what one leaves would be seen."""
    load(FLOOR)
    load(HOOK)
    unload(FLOOR)
    unload(HOOK)


def cycles(times):
    """The same many times."""
    for _ in range(times):
        cycle()
    nothing_registered(f"after {times} loads and unloads")


@contextlib.contextmanager
def failslab():
    """Allocations by number, in this thread alone, can be made to fail while it lasts: those that may sleep too, and
    single pages. Then every setting is what it was."""
    if not os.path.exists(FAILSLAB) and not os.path.ismount("/sys/kernel/debug"):
        os.system("mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null")
    if not (os.path.exists(FAILSLAB) and os.path.exists(FAIL_NTH)):
        raise ktap.Skip("this kernel has no failslab (CONFIG_FAILSLAB, CONFIG_FAULT_INJECTION_DEBUG_FS)")
    # Each failure counts down `times`.
    wanted = {f"{place}/{name}": value for place in (FAILSLAB, PAGES) for name, value in
              (("ignore-gfp-wait", "N"), ("ignore-gfp-highmem", "N"), ("min-order", 0), ("times", -1))}
    wanted |= {f"/sys/kernel/debug/{place}/verbose": 0 for place in os.listdir("/sys/kernel/debug")
               if place.startswith("fail")}
    before = {path: text(path).strip() for path in wanted if os.path.exists(path)}
    for path in before:
        write(path, wanted[path])
    try:
        yield
    finally:
        for path, value in before.items():
            write(path, value)


class Failing:
    """The nth allocation of this thread fails while it lasts."""

    def __init__(self, nth):
        self.nth, self.left = nth, None

    def __enter__(self):
        self.fd = os.open(FAIL_NTH, os.O_RDWR)
        os.write(self.fd, str(self.nth).encode())
        return self

    def __exit__(self, *_):
        # 0: it was met.
        self.left = int(os.pread(self.fd, 32, 0))
        os.pwrite(self.fd, b"0", 0)
        os.close(self.fd)


def allocations(what):
    """How many allocations that can fail `what` makes within the context that it is given."""
    failing = Failing(MANY)
    what(failing)
    return MANY - failing.left


def load_failing(name, nth):
    """Loads a module while its nth allocation fails. True: it was loaded all the same."""
    try:
        load(name, failing=Failing(nth))
    except OSError as error:
        if registered(name):
            raise AssertionError(f"allocation {nth} of loading {name} failed ({error.strerror}), and left: "
                                 f"{', '.join(registered(name))}") from error
        return False
    unload(name)
    return True


def new_namespace(failing=contextlib.nullcontext()):
    """A network namespace, made within `failing`, and back; it goes with its last user."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        with failing:
            os.unshare(os.CLONE_NEWNET)
        if os.path.isdir(f"/sys/module/{HOOK}") and not os.path.exists("/proc/thread-self/net/tcp_autocork_policy"):
            raise AssertionError("a new namespace without /proc/net/tcp_autocork_policy")
    finally:
        os.setns(home, os.CLONE_NEWNET)
        os.close(home)


def held_namespace():
    """A network namespace that lives until its descriptor is closed."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        os.unshare(os.CLONE_NEWNET)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    finally:
        os.setns(home, os.CLONE_NEWNET)
        os.close(home)


def namespace_failing(nth):
    """Makes a namespace while an allocation fails. True: it was made all the same."""
    try:
        new_namespace(Failing(nth))
    except OSError:
        return False
    return True


def chosen_of(generator, total, most, first=1):
    """So many numbers from `first` to `total`: all where there are no more, else by choice of the generator."""
    return sorted(generator.sample(range(first, total + 1), min(most, total + 1 - first)))


def failures_at_load(name, generator, most):
    """Loads it with one allocation failing at a time, at most `most` of them: each failed load leaves
    nothing, and the next one works. How many failed, of how many."""
    total = allocations(lambda failing: load(name, failing=failing))
    unload(name)
    chosen = chosen_of(generator, total, most)
    failed = sum(not load_failing(name, nth) for nth in chosen)
    load(name)
    unload(name)
    nothing_registered(f"after {failed} failed loads of {name}")
    return failed, len(chosen), total


def failures_at_namespaces(generator, most):
    """The same for making a namespace while autocork_policy is loaded: what it allocates there comes
    last, so those are the ones chosen."""
    new_namespace()
    without = allocations(new_namespace)
    load(HOOK)
    try:
        total = allocations(new_namespace)
        chosen = chosen_of(generator, total, most, first=max(1, min(without, total - 60)))
        failed = sum(not namespace_failing(nth) for nth in chosen)
        new_namespace()
    finally:
        unload(HOOK)
    nothing_registered(f"after {failed} namespaces that were not made")
    return failed, len(chosen), total
