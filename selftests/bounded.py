#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# autocork_policy's policy `bounded`: autocorking holds what it holds in stock, but no write of a
# NODELAY socket longer than the deadline; and the timer that sees to it outlives nothing: no socket,
# no namespace, no module.
#
# The device is a TUN behind a plug, as in autocork.py: no completion comes until the plug is pulled.
# The peer acknowledges when it is told to, RTOs take 10 s and loss probes are off, so that what
# leaves a plugged socket was sent by the deadline. The control is the policy stock in the same boot.
#
# With lowtail_faults.ko the same without a plug: completions that come late, and wake-ups that are lost.
#
# BOUNDED_COUNT: how many sockets end under their timer, by each kind of end (40).

import atexit
import errno
import os
import socket
import struct
import time

import ktap
import modules
from farend import ACK, RST, Connection
from plugged import (IPPROTO_MPTCP, KINDS, MODULE, POLICY, TAIL, TCP_NODELAY, Plugged, need_plug, on,
                     outcome, wire, write_twice)

DEADLINE = "net.ipv4.tcp_autocork_deadline_us"
SHORTEST, LONGEST = 10, 40000
FAULTS = "lowtail_faults"
SO_MEMINFO, WMEM_ALLOC = 55, 2
#: A round in which the host stood still for so long says nothing about what came in time.
STALL = 0.8 * LONGEST / 1e6
COUNT = int(os.environ.get("BOUNDED_COUNT", "40"))
PACKETS = [[1000, 1000, 1000, TAIL], [], []]

suite = ktap.Suite()


def until(condition, seconds=5):
    """Waits for a condition, and says whether it came."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return condition()
        time.sleep(0.001)
    return True


def under(net, policy, deadline=LONGEST):
    """Chooses the policy and the deadline (µs)."""
    net.sysctl(POLICY, policy)
    net.sysctl(DEADLINE, deadline)


def connect(net, **how):
    """A connection with TCP_NODELAY."""
    # A case that failed leaves the plug in.
    net.pull()
    c = Connection(net, "reno", **how).establish()
    on(TCP_NODELAY)(c)
    return c


def hold(net, c, tails=1):
    """Three packets into the plug, and as many small writes that autocorking holds. Returns when the
    first of them was about to be written."""
    net.plug()
    c.write(3 * c.MSS)
    begin = time.monotonic()
    for _ in range(tails):
        c.write(TAIL)
    return begin


def drain(net, c, wanted):
    """Pulls the plug and acknowledges until so many bytes have left. Returns how many have."""
    net.pull()
    seen, segments = 0, c.now()
    while seen < wanted:
        if not segments:
            segments = c.wait()
            if not segments:
                break
        seen += sum(s.length for s in segments)
        c.sent = max([c.sent, *(s.end for s in segments)], key=lambda end: (end - c.una) & 0xFFFFFFFF)
        segments = c.ack(to=c.sent)
    return seen


def lengths(segments):
    """Of those that carry data."""
    return [s.length for s in segments if s.length]


def flushes(counters):
    """Timers that expired."""
    return counters.get("flushed_by_deadline", 0) + counters.get("flushed_in_time", 0)


def leaves_by(net, deadline, **how):
    """A held write leaves although the plug stays in. Returns after how long."""
    under(net, "bounded", deadline)
    c = connect(net, **how)
    before, corked = net.covered(), net.counter("TCPAutoCorking")
    begin = hold(net, c)
    mptcp = how.get("protocol") == IPPROTO_MPTCP

    def expired():
        return flushes(net.since(before)) == 1

    ktap.equal(until(expired if mptcp else lambda: c.unsent() == 0), True, "the write left")
    took = time.monotonic() - begin
    until(expired)
    counters = net.since(before)
    ktap.equal(net.counter("TCPAutoCorking") - corked, 1, "TCPAutoCorking")
    # Also where it expired before tcp_push() had noted that it holds.
    ktap.equal(counters, {"bounded": 2, "held": 1, "deadlines": 1, "flushed_by_deadline": 1},
               "counters")
    # Timers do not expire early, however fast or slow the machine.
    ktap.equal(took >= deadline / 1e6, True, f"not before the deadline ({took * 1e6:.0f} µs)")
    ktap.equal(wire(net, c, None), PACKETS, "packets")
    c.close()
    return took


def add_deadline(net):
    """Nothing comes in time."""

    @suite.case("control: under stock a held write stays, until the completion or an ACK")
    def _control():
        under(net, "stock", SHORTEST)
        for how in ("completion", "ACK"):
            c = connect(net)
            before = net.covered()
            hold(net, c)
            time.sleep(0.3)
            if c.unsent() != TAIL:
                raise ktap.Void(f"without a {how} {TAIL - c.unsent()} bytes left")
            if how == "ACK":
                c.ack(3)
            else:
                net.pull()
            ktap.equal(until(lambda c=c: c.unsent() == 0), True, f"left by the {how}")
            ktap.equal(net.since(before), {"left_stock": 2}, "counters")
            net.pull()
            c.close()

    for deadline in (SHORTEST, 250, LONGEST):

        def by_deadline(deadline=deadline):
            took = sorted(leaves_by(net, deadline) for _ in range(5))
            ktap.note("after " + ", ".join(f"{t * 1e3:.2f}" for t in took) + " ms")
            if deadline < LONGEST:
                ktap.equal(took[0] < LONGEST / 1e6, True, "sooner than by the longest deadline")

        suite.case(f"bounded: it leaves by a deadline of {deadline} µs, plugged as it is")(by_deadline)

    @suite.case("bounded: the same for IPv6 and for MPTCP sockets (the peer speaks TCP only)")
    def _families():
        for how in ({"family": socket.AF_INET6}, {"protocol": IPPROTO_MPTCP}):
            ktap.note(f"{how}: after {leaves_by(net, 5000, **how) * 1e3:.1f} ms")

    @suite.case("several writes are held under one deadline, and leave as one packet")
    def _one():
        under(net, "bounded", LONGEST)
        for _ in range(5):
            c = connect(net)
            before = net.covered()
            begin = hold(net, c, tails=4)
            stalled = time.monotonic() - begin > STALL
            ktap.equal(until(lambda c=c: c.unsent() == 0), True, "they left")
            counters, packets = net.since(before), wire(net, c, None)
            c.close()
            if not stalled:
                ktap.equal(packets, [[1000, 1000, 1000, 4 * TAIL], [], []], "packets")
                ktap.equal(counters, {"bounded": 5, "held": 1, "deadlines": 1,
                                      "flushed_by_deadline": 1}, "counters")
                return
        raise ktap.Void("the host stood still five times")

    @suite.case("deadlines of 10 and 40000 µs are taken, 9 and 40001 are EINVAL")
    def _range():
        for value in (SHORTEST, LONGEST, 250):
            net.sysctl(DEADLINE, value)
            ktap.equal(net.sysctl(DEADLINE), str(value), "deadline")
        for value in (SHORTEST - 1, LONGEST + 1, 0, -1, "x", "250 us"):
            try:
                net.sysctl(DEADLINE, value)
            except OSError as error:
                ktap.equal(error.errno, errno.EINVAL, f"errno of {value}")
            else:
                raise AssertionError(f"a deadline of {value} was taken")
            ktap.equal(net.sysctl(DEADLINE), "250", "the deadline afterwards")


def add_in_time(net):
    """Completions come in time."""

    @suite.case("completions in time: held as in stock, nothing is flushed by the deadline")
    def _in_time():
        under(net, "bounded", LONGEST)
        c = connect(net)
        seen = stalled = 0
        while seen < 20:
            before = net.covered()
            begin = hold(net, c)
            held = c.unsent()
            packets = wire(net, c, None)
            slow = time.monotonic() - begin > STALL
            until(lambda before=before: flushes(net.since(before)) == 1)
            if slow:
                stalled += 1
                if stalled > 20:
                    raise ktap.Void("the host stands still most of the time")
                continue
            ktap.equal(held, TAIL, "bytes held")
            ktap.equal(packets, PACKETS, "packets")
            ktap.equal(net.since(before), {"bounded": 2, "held": 1, "deadlines": 1,
                                           "flushed_in_time": 1}, "counters")
            seen += 1
        c.close()
        ktap.note(f"{seen} rounds, {stalled} not judged")

    @suite.case("holds that follow each other share deadlines, which are put off and never flush")
    def _stream():
        under(net, "bounded", LONGEST)
        c = connect(net)
        before, rounds = net.covered(), []
        for _ in range(40):
            begin = hold(net, c)
            wire(net, c, None)
            rounds.append(time.monotonic() - begin)
        last = net.since(before)
        until(lambda: flushes(net.since(before)) > flushes(last))
        counters = net.since(before)
        c.close()
        # A deadline is put off when half of it is over.
        slow = sum(r > 0.45 * LONGEST / 1e6 for r in rounds)
        ktap.note(f"{counters}, slowest round {max(rounds) * 1e3:.1f} ms, {slow} too slow to count")
        if slow > len(rounds) / 2:
            raise ktap.Void("the host stands still most of the time")
        ktap.equal(counters.get("flushed_by_deadline", 0) <= slow, True, "no hold cut short")
        ktap.equal(counters["held"], len(rounds), "held")
        ktap.equal(counters["deadlines"] < len(rounds), True, "fewer deadlines than holds")


def add_untouched(net):
    """What bounded is not about."""

    @suite.case("CORK, MSG_MORE and sockets without NODELAY: no timer, and stock's packets")
    def _kinds():
        under(net, "stock", SHORTEST)
        control = {kind: outcome(net, kind)[0] for kind in KINDS}
        under(net, "bounded", SHORTEST)
        for kind, (prepare, flags, release, counter) in KINDS.items():
            if kind == "NODELAY":
                continue
            with Connection(net, "reno") as c:
                prepare(c)
                held, corked, counters = write_twice(net, c, flags)
                time.sleep(0.02)
                ktap.equal((held, c.unsent(), corked), (TAIL, TAIL, 1), f"{kind}: held and corked")
                ktap.equal(counters, {counter: 2}, f"{kind}: counters")
                packets = wire(net, c, release)
                ktap.note(f"{kind}: {packets}")
                ktap.equal((held, corked, packets), control[kind], f"{kind}: what stock does")

    @suite.case("another policy holds from the next write on; a hold that is on keeps its deadline")
    def _switch():
        c = connect(net)
        for _ in range(3):
            under(net, "bounded", LONGEST)
            hold(net, c)
            net.sysctl(POLICY, "stock")
            ktap.equal(until(lambda: c.unsent() == 0), True, "what bounded held left")
            wire(net, c, None)
            before = net.covered()
            hold(net, c)
            time.sleep(0.1)
            ktap.equal(c.unsent(), TAIL, "bytes held under stock")
            ktap.equal(net.since(before), {"left_stock": 2}, "counters under stock")
            wire(net, c, None)
        c.close()


def sockets(net):
    """TCP sockets: of this namespace; orphans and all that are allocated, of every namespace."""
    with net.inside(), open("/proc/thread-self/net/sockstat", encoding="ascii") as file:
        words = next(line for line in file if line.startswith("TCP:")).split()
    figures = dict(zip(words[1::2], map(int, words[2::2])))
    return {k: figures[k] for k in ("inuse", "orphan", "alloc")}


def objects(cache):
    """Objects of a slab cache that are in use: a socket that something still refers to is one of
    them, though no list has it. None where the kernel does not tell."""
    try:
        with open(f"/sys/kernel/slab/{cache}/shrink", "w", encoding="ascii") as file:
            file.write("1")
        with open("/proc/slabinfo", encoding="ascii") as file:
            return next((int(l.split()[1]) for l in file if l.split()[0] == cache), None)
    except OSError:
        return None


class Leaks:
    """Nothing is left of what was made inside: sockets, and objects that only memory knows of."""

    def __init__(self, net, cache, many):
        self.net, self.cache, self.many = net, cache, many

    def __enter__(self):
        self.sockets, self.objects = sockets(self.net), objects(self.cache)

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        until(lambda: sockets(self.net) == self.sockets)
        ktap.equal(sockets(self.net), self.sockets, "sockets")
        if self.objects is None:
            ktap.note(f"this kernel does not tell how many objects {self.cache} has")
            return
        # Some of what was freed waits in lists that count as used; leaks would be as many as ends.
        until(lambda: objects(self.cache) - self.objects < self.many / 2, 10)
        left = objects(self.cache) - self.objects
        ktap.note(f"objects of {self.cache}: {self.objects}, {left:+} after {self.many}")
        ktap.equal(left < self.many / 2, True, "they are freed")


def refcount():
    """References to the module."""
    with open(f"/sys/module/{MODULE}/refcnt", encoding="ascii") as file:
        return int(file.read())


def abort(c):
    """close() without a FIN."""
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.sock.close()


#: How a socket may end.
ENDS = {
    "close()": lambda c: c.sock.close(),
    "close() with SO_LINGER 0": abort,
    "shutdown()": lambda c: c.sock.shutdown(socket.SHUT_RDWR),
    "RST by the peer": lambda c: c.inject(RST | ACK),
}


def add_safety(net):
    """The timer and everything that can happen under it."""

    @suite.case("control: sockets that are there are seen where leaks are looked for")
    def _seen():
        before = sockets(net), objects("TCP")
        several = [connect(net) for _ in range(COUNT)]
        after = sockets(net), objects("TCP")
        for c in several:
            c.close()
        ktap.note(f"{before}, with {COUNT} more: {after}")
        more = {k: after[0][k] - before[0][k] for k in after[0]}
        if more != {"inuse": COUNT, "orphan": 0, "alloc": COUNT}:
            raise ktap.Void(f"sockets in use: {more}")
        if before[1] is not None and after[1] - before[1] < COUNT:
            raise ktap.Void(f"objects: {after[1] - before[1]}")

    for name, end in ENDS.items():

        def ends(end=end):
            net.sysctl(POLICY, "bounded")
            before = net.covered()
            with Leaks(net, "TCP", COUNT):
                for i in range(COUNT):
                    # Long ones are pending at the end, short ones meet it.
                    net.sysctl(DEADLINE, (LONGEST, 2000, 200, SHORTEST)[i % 4])
                    c = connect(net)
                    hold(net, c)
                    end(c)
                    if i % 8 > 3:
                        time.sleep(0.005)
                    c.close()
                    net.pull()
            counters = net.since(before)
            ktap.note(counters)
            ktap.equal((counters["held"], counters["deadlines"]), (COUNT, COUNT), "held, deadlines")
            ktap.equal(refcount(), 0, "references to the module")

        suite.case(f"{name} under the timer, {COUNT} times: no socket is left")(ends)

    @suite.case("timers of 10 µs that meet a writer: every byte leaves, once")
    def _writer():
        under(net, "bounded", SHORTEST)
        before = net.covered()
        with Leaks(net, "TCP", COUNT):
            c = connect(net)
            for _ in range(COUNT):
                written = 3 * c.MSS + 20 * TAIL
                hold(net, c, tails=20)
                ktap.equal(drain(net, c, written), written, "bytes that left")
            ktap.equal(c.info().retrans, 0, "retransmissions")
            c.close()
        ktap.note(net.since(before))

    @suite.case("namespaces that end under the timer, 8 times")
    def _namespaces():
        Plugged().close()
        with Leaks(net, "net_namespace", 8):
            for i in range(8):
                other = Plugged()
                under(other, "bounded", LONGEST)
                c = connect(other)
                hold(other, c)
                # The device goes first, or the socket does.
                for step in (other.close, lambda c=c: abort(c))[:: 1 if i % 2 else -1]:
                    step()

    @suite.case("rmmod under the timer, 4 times: at once, and what is held leaves all the same")
    def _rmmod():
        try:
            rmmod()
        finally:
            modules.load(MODULE)

    def rmmod():
        for _ in range(4):
            under(net, "bounded", LONGEST)
            several = [connect(net) for _ in range(4)]
            for c in several:
                hold(net, c)
            ktap.equal(refcount(), 0, "references to the module")
            modules.unload(MODULE)
            ktap.equal(modules.loaded(MODULE), False, "loaded")
            ktap.equal(until(lambda s=several: not any(c.unsent() for c in s)), True, "all left")
            wire(net, several[0], None)
            hold(net, several[0])
            time.sleep(0.1)
            ktap.equal(several[0].unsent(), TAIL, "bytes held without the module")
            net.pull()
            for c in several:
                c.close()
            modules.load(MODULE)


def charged(c):
    """Bytes that the socket believes to be in the device (sk_wmem_alloc)."""
    return struct.unpack_from("=9I", c.sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36))[WMEM_ALLOC]


class Faults:
    """Faults of a namespace (selftests/faults/README.md), off again at the end."""

    def __init__(self, net, **plans):
        self.net, self.plans = net, plans

    def __enter__(self):
        for name, plan in self.plans.items():
            self.net.sysctl(f"net.lowtail_faults.{name}", plan)
        return self

    def __exit__(self, *_):
        for name in self.plans:
            self.net.sysctl(f"net.lowtail_faults.{name}", "off")

    def hit(self, name):
        """How often a fault struck."""
        with self.net.inside(), open("/proc/thread-self/net/lowtail_faults",
                                     encoding="ascii") as file:
            return next(int(l.split()[1]) for l in file if l.startswith(f"{name}_hit "))


def small_write(c, packets=3):
    """Some packets, which leave, and a small write. Returns how many bytes are held."""
    c.sent = c.write(packets * c.MSS)[-1].end
    c.write(TAIL)
    return c.unsent()


def leaves(c):
    """What is held leaves by a timer; what the far end sees of it."""
    until(lambda: c.unsent() == 0)
    return lengths(c.now())


def connect_slowly(net):
    """A connection whose SYN is completed: that would wake it up, too."""
    c = connect(net)
    until(lambda: not charged(c))
    return c


def settle(c):
    """All is acknowledged and completed."""
    c.ack(to=(c.sent + TAIL) & 0xFFFFFFFF)
    until(lambda: not charged(c))
    c.now()


def add_faults(net):
    """A device that is slow, and a wake-up that is lost, as they come."""
    rounds = 8

    @suite.case("completions 200 ms late: stock holds until they come, bounded for its deadline")
    def _late():
        with Leaks(net, "TCP", rounds), Faults(net, late="every 1 delay 200000") as faults:
            c = connect_slowly(net)
            policies, stalled = ["stock"] + ["bounded"] * rounds, 0
            while policies:
                under(net, policies[0], 2000)
                before, late = net.covered(), faults.hit("late")
                begin = time.monotonic()
                held = small_write(c)
                seen = leaves(c)
                took = time.monotonic() - begin
                left = charged(c)
                until(lambda b=before: policies[0] == "stock" or flushes(net.since(b)))
                counters = net.since(before)
                ktap.note(f"{policies[0]}: after {took * 1e3:.1f} ms, {counters}, "
                          f"{faults.hit('late') - late} completions late, {left} bytes charged")
                settle(c)
                if policies[0] == "stock":
                    if held != TAIL or took < 0.15:
                        raise ktap.Void(f"{held} bytes held, for {took * 1e3:.1f} ms")
                    ktap.equal(counters, {"left_stock": 2}, "counters")
                elif not left and took > 0.15 and stalled < rounds:
                    # The host stood still until the completions came.
                    stalled += 1
                    continue
                else:
                    ktap.equal(counters, {"bounded": 2, "held": 1, "deadlines": 1,
                                          "flushed_by_deadline": 1}, "counters")
                    ktap.equal(left > 0, True, "nothing was completed yet")
                ktap.equal(seen, [TAIL], "what left")
                policies.pop(0)
            ktap.equal(c.info().retrans, 0, "retransmissions")
            c.close()

    def lose(c, faults):
        """A packet, and a small write whose wake-up is lost: it is the only one, of the one packet.
        A host that stands still lets it come before the write, which then is not held."""
        for _ in range(10):
            before, lost = net.covered(), faults.hit("tsq")
            held = small_write(c, 1)
            until(lambda: not charged(c) or not c.unsent())
            if held and faults.hit("tsq") > lost:
                return before
            settle(c)
        raise ktap.Void("no wake-up was lost in ten writes")

    @suite.case("every wake-up is lost: stock holds until the ACK, bounded for its deadline")
    def _tsq():
        # The completion comes, and wakes nobody up, before the deadline is over.
        with Leaks(net, "TCP", rounds), Faults(net, late="every 1 delay 20000", tsq="every 1") as faults:
            c = connect_slowly(net)
            under(net, "stock", LONGEST)
            before = lose(c, faults)
            time.sleep(0.3)
            if c.unsent() != TAIL:
                raise ktap.Void(f"{c.unsent()} bytes held without a wake-up")
            ktap.equal(lengths(c.ack(to=c.sent)), [TAIL], "what leaves by the ACK")
            ktap.equal(net.since(before), {"left_stock": 2}, "counters")
            settle(c)
            for _ in range(rounds):
                under(net, "bounded", LONGEST)
                before = lose(c, faults)
                ktap.equal(leaves(c), [TAIL], "what left without an ACK")
                until(lambda b=before: flushes(net.since(b)))
                counters = net.since(before)
                # The fault takes away the flag by which the module tells; the real race leaves it.
                by = next(k for k in counters if k.startswith("flushed"))
                ktap.note(counters)
                ktap.equal(counters, {"bounded": 2, "held": 1, "deadlines": 1, by: 1}, "counters")
                settle(c)
            ktap.equal(c.info().retrans, 0, "retransmissions")
            c.close()

    for name, end in ENDS.items():

        def ends(end=end):
            net.pull()
            net.sysctl(POLICY, "bounded")
            with Leaks(net, "TCP", COUNT), Faults(net, late="every 1 delay 20000", tsq="every 2"):
                before = net.covered()
                for i in range(COUNT):
                    net.sysctl(DEADLINE, (LONGEST, 2000, 200, SHORTEST)[i % 4])
                    c = connect(net)
                    small_write(c)
                    end(c)
                    c.close()
                counters = net.since(before)
            ktap.note(counters)
            ktap.equal(counters["held"] > COUNT / 2, True, "most writes were held")
            ktap.equal(refcount(), 0, "references to the module")

        suite.case(f"{name} under late completions and the timer, {COUNT} times: no socket is left")(ends)


def main():
    """Everything happens in one namespace, but for those that end."""
    modules.need_root("ip")
    need_plug()
    was_loaded = modules.loaded(MODULE)
    modules.load(MODULE)
    if not was_loaded:
        atexit.register(modules.unload, MODULE)
    net = Plugged()
    for add in (add_deadline, add_in_time, add_untouched, add_safety):
        add(net)
    if modules.file_of(FAULTS):
        was_there = modules.loaded(FAULTS)
        modules.load(FAULTS)
        if not was_there:
            atexit.register(modules.unload, FAULTS)
        add_faults(net)
    else:
        ktap.note(f"{FAULTS}.ko is not built (selftests/faults/build.sh): its cases are not there")
    suite.run()


main()
