#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Stress: hundreds of flows between two namespaces under losses, reordering, marks, changes of MTU, RTOs
# and shut windows, while algorithms are changed in mid-connection, settings are written, namespaces,
# tracers and the modules themselves come and go. Then: every flow has ended with the bytes that were
# sent, no transmission had a window below 2, memory is back, nothing is registered, no complaint.
#
#   stress.py                 two rounds, as KTAP; SEED= the first one's seed, else one of the clock
#   stress.py --minutes N     a soak: rounds with new seeds until the time is over, then a summary
#
# A seed gives the same actions in the same order (stressplan.py), not the same timing.

import atexit
import collections
import contextlib
import errno
import os
import random
import subprocess
import sys
import time

import churn
import ktap
import modules
from stressflows import Flows
from stressplan import Plan
from watch import TRACING, member_bits, write

#: Seconds that a round's flows have after the network is well again. An RTO timer that runs then is
#: never longer than all the time before it, a round; the rest is for a busy host.
GRACE = 60
#: Of each module, per round.
CYCLES = int(os.environ.get("CYCLES", 25))
#: What may have grown from one round to another, in objects of a cache and kB. Measured with nothing done
#: in between: up to 80 objects, 40 kB. A round has 150 flows, and 20 namespaces of hundreds of objects.
ROUND_OBJECTS, ROUND_KILOBYTES = 100, 256
NAME = "lowtail_stress"
OURS = ("dctcp_floor", "dctcpfloor-reno")

tally = collections.Counter()
lowest = {}
recent = collections.deque(maxlen=15)


class Windows:
    """Every transmission with data, counted in the kernel by algorithm and window: a hist trigger, which
    loses nothing. Those of ours below 2 are recorded one by one as well."""

    def __init__(self):
        ca_ops, cwnd = member_bits("inet_connection_sock", "icsk_ca_ops") // 8, member_bits("tcp_sock", "snd_cwnd") // 8
        name, length = member_bits("tcp_congestion_ops", "name") // 8, member_bits("sk_buff", "len") // 8
        self.remove()
        write("kprobe_events", f"p:{NAME}/data __tcp_transmit_skb port=+14($arg1):u16 cwnd=+{cwnd}($arg1):u32 "
                               f"len=+{length}($arg2):u32 ca=+{name}(+{ca_ops}($arg1)):string\n", os.O_APPEND)
        self.place = f"instances/{NAME}/events/{NAME}/data"
        os.mkdir(f"{TRACING}/instances/{NAME}")
        self.histogram = "hist:keys=ca,cwnd:size=16384 if len > 0"
        write(f"{self.place}/filter", 'len > 0 && cwnd < 2 && ca ~ "dctcp*floor*"')
        write(f"{self.place}/trigger", self.histogram)
        write(f"{self.place}/enable", "1")

    @staticmethod
    def remove():
        """Takes probe and instance away."""
        place = f"{TRACING}/instances/{NAME}"
        if os.path.isdir(place):
            with contextlib.suppress(OSError):
                write(f"instances/{NAME}/events/{NAME}/data/enable", "0")
                write(f"instances/{NAME}/events/{NAME}/data/trigger", "!hist:keys=ca,cwnd:size=16384 if len > 0")
            os.rmdir(place)
        if os.path.isdir(f"{TRACING}/events/{NAME}"):
            write("kprobe_events", f"-:{NAME}/data\n", os.O_APPEND)

    def stop(self):
        """{(algorithm, window): packets}, and the records of ours below 2."""
        write(f"{self.place}/enable", "0")
        seen = collections.Counter()
        for line in churn.text(f"{TRACING}/{self.place}/hist").splitlines():
            if line.startswith("{"):
                words = line.replace("{", " ").replace("}", " ").replace(",", " ").split()
                seen[words[words.index("ca:") + 1], int(words[words.index("cwnd:") + 1])] += int(words[-1])
            elif line.strip().startswith("Dropped:") and int(line.split()[1]):
                raise AssertionError("the histogram lost transmissions")
        records = [line.split(": ", 1)[1] for line in churn.text(f"{TRACING}/instances/{NAME}/trace").splitlines()
                   if not line.startswith("#")]
        self.remove()
        return seen, records


class Log:
    """The kernel's log from here on."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def look(self):
        """Fails on a complaint, and on what was overwritten before it could be read."""
        lines, complaints = [], []
        while True:
            try:
                lines.append(os.read(self.fd, 8192).decode(errors="replace").split("\n", 1)[0].split(";", 1)[-1])
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EPIPE:
                    raise
                complaints.append("the log was overwritten unread")
        if lines:
            complaints += ktap.complaints(lines)
        tally["complaints"] += len(complaints)
        if complaints:
            raise AssertionError(f"the kernel complained: {'; '.join(complaints[:5])}")


class Round:
    """One plan, carried out."""

    def __init__(self, plan, tls):
        self.plan = plan
        churn.load(churn.FLOOR, f"rto_floor={plan.rto_floor}")
        churn.load(churn.HOOK)
        modules.load("lowtail_faults")
        self.flows = Flows(plan.listeners, plan.segments, tls)
        self.windows, self.log = Windows(), Log()

    def act(self, action):
        """One action."""
        recent.append(action)
        kind, *rest = action
        tally["actions"] += 1
        getattr(self, f"do_{kind.split()[0]}")(action, *rest)

    def do_open(self, action, *_):
        """A flow begins."""
        self.flows.open(action)

    def do_switch(self, _, number, which, algorithm):
        """Another algorithm in mid-connection."""
        end = self.flows.end(number, which)
        if end:
            end.sock.setsockopt(6, 13, algorithm.encode())
            tally["switches"] += 1

    def do_netem(self, _, side, what):
        """The path changes."""
        subprocess.run(["tc", "-n", f"stress{side}", "qdisc", "replace", "dev", "v", "root", "netem",
                        *(() if "limit" in what else ("limit", "2000")), *what.split()], check=True)

    def do_mtu(self, _, mtu):
        """The MTU of both sides changes."""
        for side in "LR":
            subprocess.run(["ip", "-n", f"stress{side}", "link", "set", "v", "mtu", str(mtu)], check=True)

    def do_fault(self, _, side, fault, plan):
        """A plan of lowtail_faults."""
        self.flows.spaces[side].write(f"net.lowtail_faults.{fault}", plan)

    def do_parameter(self, _, name, value, taken):
        """A parameter of tcp_dctcp_floor is written."""
        path = f"/sys/module/{churn.FLOOR}/parameters/{name}"
        self._written(name, value, taken, lambda: churn.write(path, f"{value}\n"), lambda: churn.text(path).strip())

    def do_sysctl(self, _, side, name, value, taken):
        """A sysctl of autocork_policy is written."""
        space, name = self.flows.spaces[side], f"net.ipv4.{name}"
        self._written(name, value, taken, lambda: space.write(name, value), lambda: space.read(name))

    @staticmethod
    def _written(name, value, taken, put, get):
        before = get()
        try:
            put()
        except OSError as error:
            if taken or error.errno not in (errno.EINVAL, errno.ERANGE):
                raise AssertionError(f"{name}={value[:20]}: {error}") from error
            ktap.equal(get(), before, f"{name} after {value[:20]!r} was refused")
        else:
            ktap.equal((taken, get()), (True, value), f"{name}={value[:20]} taken, and its value")
        tally["settings written"] += 1

    def do_pause(self, _, number, which):
        """An end stops reading."""
        end = self.flows.end(number, which)
        if end:
            self.flows.pause(end, True)
            tally["pauses"] += 1

    def do_resume(self, _, number, which):
        """It goes on."""
        end = self.flows.end(number, which)
        if end:
            self.flows.pause(end, False)

    def do_abort(self, _, number, which):
        """A reset."""
        end = self.flows.end(number, which)
        if end:
            self.flows.abort(end)

    def do_namespaces(self, _, count):
        """Namespaces come, and go."""
        for _ in range(count):
            churn.new_namespace()
            tally["namespaces"] += 1

    def do_tracer(self, _, what, on):
        """Somebody else's hooks come or go."""
        tracer(what, on)

    def do_hook(self, _, there):
        """autocork_policy is loaded, or unloaded under the traffic."""
        if there:
            churn.load(churn.HOOK)
        else:
            churn.unload(churn.HOOK)
            tally["loads and unloads"] += 1

    def do_rmmod(self, _):
        """tcp_dctcp_floor goes only if nobody uses it; then it comes again."""
        try:
            churn.unload(churn.FLOOR)
        except OSError as error:
            ktap.equal(error.errno, errno.EAGAIN, "errno of rmmod in use")
            tally["rmmod refused"] += 1
        else:
            churn.load(churn.FLOOR, f"rto_floor={self.plan.rto_floor}")
            tally["loads and unloads"] += 1

    def heal(self):
        """Nothing stands in the way of a flow any more."""
        for side, space in self.flows.spaces.items():
            self.do_netem(None, side, "delay 1ms")
            for fault in ("tsq", "late", "ce", "lone", "rexmit"):
                space.write(f"net.lowtail_faults.{fault}", "off")
        self.do_mtu(None, 1500)
        for flow in self.flows.open_flows():
            for end in filter(None, flow.ends):
                self.flows.pause(end, False)

    def run(self):
        """All of it; every AssertionError tells of the first thing that was wrong."""
        began = time.monotonic()
        for actions in self.plan:
            for action in actions:
                self.act(action)
            tally["most at once"] = max(tally["most at once"], len(self.flows.open_flows()))
            self.flows.turn(0.1)
            self.log.look()
        self.heal()
        until = time.monotonic() + GRACE + (time.monotonic() - began)
        while self.flows.open_flows():
            if time.monotonic() > until:
                raise AssertionError(f"{len(self.flows.open_flows())} flows stall: {self.stalled()}")
            self.flows.turn(0.1)
        self.log.look()
        ktap.note(f"{len(self.plan.ticks)} turns and the rest of the flows: {time.monotonic() - began:.1f} s")
        self.judge()

    def stalled(self):
        """The first of the flows that did not end, as ss sees it."""
        flow = self.flows.open_flows()[0]
        port = flow.ends[0].sock.getsockname()[1]
        seen = subprocess.run(["ip", "netns", "exec", f"stress{flow.side}", "ss", "-tinmo", "sport", str(port)],
                              capture_output=True, text=True, check=False).stdout
        return f"{flow}\n{seen}"

    def judge(self):
        """The windows of this round."""
        seen, records = self.windows.stop()
        self.windows = None
        tally["flows"] += self.flows.opened
        tally["flows with all their bytes"] += self.flows.finished
        tally["flows reset"] += self.flows.aborted
        tally["bytes"] += self.flows.bytes
        tally["packets"] += sum(seen.values())
        tally["packets of ours"] += sum(n for (ca, _), n in seen.items() if ca in OURS)
        for (ca, cwnd), _ in seen.items():
            name = f"{ca} (rto_floor=N)" if ca in OURS and self.plan.rto_floor == "N" else ca
            lowest[name] = min(lowest.get(name, cwnd), cwnd)
        below = sum(n for (ca, cwnd), n in seen.items() if ca in OURS and cwnd < 2)
        ktap.equal(self.flows.finished + self.flows.aborted, self.flows.opened, "flows that ended, of those opened")
        if not any(ca in OURS for ca, _ in seen):
            raise ktap.Void("dctcp_floor sent nothing")
        if below and self.plan.rto_floor == "Y":
            raise AssertionError(f"{below} transmissions of ours with a window below 2: {'; '.join(records[:5])}")

    def close(self):
        """Takes everything away, whatever happened."""
        for what in ("function", "kprobe", "tracepoint"):
            tracer(what, False)
        if self.windows:
            Windows.remove()
        self.flows.close()
        os.close(self.log.fd)
        if modules.loaded(churn.HOOK):
            churn.unload(churn.HOOK)
        churn.unload_within(churn.FLOOR, 30)
        churn.unload_within("lowtail_faults", 30)


def tracer(what, on):
    """A function tracer, a kprobe, or a listener at autocork_policy's tracepoints, in an instance of its
    own."""
    name = f"{NAME}_{what}"
    place = f"instances/{name}"
    if on:
        os.makedirs(f"{TRACING}/{place}", exist_ok=True)
        write(f"{place}/buffer_size_kb", "64")
    elif not os.path.isdir(f"{TRACING}/{place}"):
        return
    if what == "function":
        if on:
            write(f"{place}/set_ftrace_filter", "tcp_push tcp_pace_kick __tcp_transmit_skb tcp_ack")
        write(f"{place}/current_tracer", "function" if on else "nop")
    elif what == "kprobe" and on:
        write("kprobe_events", f"p:{name}/push tcp_push\n", os.O_APPEND)
        write(f"{place}/events/{name}/enable", "1")
    elif what == "kprobe":
        write(f"{place}/events/{name}/enable", "0")
    elif os.path.isdir(f"{TRACING}/{place}/events/autocork_policy"):
        write(f"{place}/events/autocork_policy/enable", "1" if on else "0")
    if not on:
        os.rmdir(f"{TRACING}/{place}")
        if what == "kprobe":
            write("kprobe_events", f"-:{name}/push\n", os.O_APPEND)


def one_round(seed, tls):
    """A round, and what is left after it."""
    recent.clear()
    plan = Plan(seed)
    ktap.note(f"seed {seed}: {plan.flows} flows, {sum(map(len, plan))} actions, rto_floor={plan.rto_floor}")
    tally["rounds"] += 1
    try:
        the_round = Round(plan, tls)
        try:
            the_round.run()
        finally:
            the_round.close()
        churn.nothing_registered("after the round")
    except Exception:
        ktap.note(f"SEED={seed}; the last actions:")
        for action in recent:
            ktap.note(f"  {action}")
        raise


def load_cycles(times):
    """Loads and unloads in five batches, and what each of them left: a leak of one object at each load, or
    of a page, is seen as a step at each batch."""
    log, began = Log(), time.monotonic()
    churn.cycles(2)
    batch, looks = max(5, times // 5), [churn.Memory(2)]
    for _ in range(5):
        churn.cycles(batch)
        log.look()
        looks.append(churn.Memory(2))
    os.close(log.fd)
    tally["loads and unloads"] += 2 * (5 * batch + 2)
    ktap.note(f"{5 * batch} loads and unloads of both: {time.monotonic() - began:.1f} s")
    ktap.equal(churn.steady_growth(looks, batch * 4 / 5, 4 * batch * 4 / 5), [],
               f"what grew from batch to batch, each of {batch} loads and unloads")


def summary():
    """What was done, in a few lines."""
    for name, count in tally.items():
        ktap.note(f"{name}: {count}")
    for name, cwnd in sorted(lowest.items()):
        ktap.note(f"smallest cwnd of {name}: {cwnd}")


def allocation_failures(seed, most):
    """Allocations fail at load and where namespaces are made."""
    generator, log = random.Random(seed), Log()
    others = [churn.held_namespace() for _ in range(2)]
    try:
        with churn.failslab():
            for name in (churn.FLOOR, churn.HOOK):
                failed, tried, total = churn.failures_at_load(name, generator, most)
                ktap.note(f"{name}: {failed} of {tried} loads failed, by allocations out of {total}")
                tally["loads that failed"] += failed
                if not failed:
                    raise ktap.Void("no load failed")
            failed, tried, total = churn.failures_at_namespaces(generator, most)
            ktap.note(f"{failed} of {tried} namespaces were not made, by allocations out of {total}")
            tally["namespaces that failed"] += failed
            if not failed:
                raise ktap.Void("every namespace was made")
    finally:
        for fd in others:
            os.close(fd)
    log.look()
    os.close(log.fd)


def kmemleak():
    """What the kernel's own search for leaks finds."""
    path = "/sys/kernel/debug/kmemleak"
    if not os.path.exists(path):
        raise ktap.Skip("this kernel has no kmemleak (CONFIG_DEBUG_KMEMLEAK)")
    # An object is reported when two scans, some seconds apart, find nothing that points to it.
    for _ in range(2):
        time.sleep(6)
        churn.write(path, "scan")
    found = churn.text(path)
    if found:
        raise AssertionError(f"kmemleak: {found[:2000]}")


def as_test(seed, tls):
    """Two rounds and the rest, each as a case."""
    suite = ktap.Suite()
    memory = []

    def again(seed):
        one_round(seed, tls)
        time.sleep(1)
        memory.append(churn.Memory())

    suite.case(f"a round of seed {seed}")(lambda: again(seed))
    suite.case(f"a round of seed {seed + 1}")(lambda: again(seed + 1))

    @suite.case("memory is where it was after the first round")
    def _memory():
        ktap.equal(len(memory), 2, "rounds that ended")
        # A flow's socket that is not freed is one of some 150; a namespace drags along hundreds of objects.
        grown = memory[1].grown(memory[0], ROUND_OBJECTS, ROUND_KILOBYTES)
        ktap.equal(grown, [], "what grew")

    suite.case(f"both modules loaded and unloaded, {CYCLES} times: nothing left of each")(lambda: load_cycles(CYCLES))
    suite.case("allocation failures leave nothing registered, and the next load works")(
        lambda: allocation_failures(seed, 20))
    suite.case("kmemleak finds nothing")(kmemleak)
    atexit.register(summary)
    suite.run()


def soak(minutes, seed, tls):
    """Rounds until the time is over."""
    until = time.monotonic() + 60 * minutes
    told, first, log = time.monotonic(), None, Log()
    failed = None
    try:
        while time.monotonic() < until or not tally["rounds"]:
            one_round(seed + tally["rounds"], tls)
            load_cycles(CYCLES)
            with contextlib.suppress(ktap.Skip):
                allocation_failures(seed + tally["rounds"], 40)
            log.look()
            first = first or churn.Memory()
            if time.monotonic() - told >= 60:
                told = time.monotonic()
                ktap.note(f"{tally['rounds']} rounds, {tally['flows']} flows, {tally['packets']} packets, "
                          f"{tally['loads and unloads']} loads and unloads, {tally['complaints']} complaints")
        time.sleep(1)
        grown = churn.Memory().grown(first, ROUND_OBJECTS, ROUND_KILOBYTES)
        ktap.equal(grown, [], f"what grew in {tally['rounds'] - 1} rounds")
        with contextlib.suppress(ktap.Skip):
            kmemleak()
        log.look()
    except (AssertionError, OSError, ktap.Void) as error:
        failed = error
        ktap.note(f"FAILED in round {tally['rounds']}: {type(error).__name__}: {error}")
    summary()
    print("soak: failed" if failed else "soak: nothing was found")
    sys.exit(bool(failed))


def main():
    """As a test, or as a soak."""
    modules.need_root("ip", "tc", "ss")
    for name in (churn.FLOOR, churn.HOOK, "lowtail_faults"):
        if not modules.file_of(name):
            ktap.skip_all(f"{name}.ko is not built here (make modules, selftests/faults/build.sh)")
        modules.unload(name)
    modules.need_stock_dctcp()
    for name in ("sch_netem", "veth"):
        if subprocess.run(["modprobe", name], capture_output=True, check=False).returncode:
            ktap.skip_all(f"{name} is missing")
    if not os.path.exists(f"{TRACING}/kprobe_events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=False)
    seed = int(os.environ.get("SEED") or time.time())
    tls = subprocess.run(["modprobe", "-q", "tls"], check=False).returncode == 0
    if sys.argv[1:2] == ["--minutes"]:
        soak(float(sys.argv[2]), seed, tls)
    as_test(seed, tls)


if __name__ == "__main__":
    main()
