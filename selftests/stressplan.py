# SPDX-License-Identifier: GPL-2.0
#
# What stress.py does in one round, as a list made beforehand from a seed alone: the same seed gives the
# same actions in the same order, whatever the machine's speed. An action is a tuple, its kind first.

import random

ALGORITHMS = ("dctcp_floor", "dctcp_floor", "dctcp_floor", "dctcp", "cubic", "reno")
KINDS = ("bulk", "bulk", "rpc", "rpc", "more", "cork", "splice", "sendfile", "tls", "mptcp", "mptcp-rpc")
POLICIES = ("stock", "nodelay", "bounded", "nonagle")

#: What netem does to the packets that one side sends.
NETEM = {
    "clean": "delay 1ms",
    "long": "delay 20ms",
    "loss": "delay 2ms loss 3%",
    "much loss": "delay 2ms loss 20%",
    "bursts": "delay 2ms loss gemodel 3% 40%",
    "reordering": "delay 5ms reorder 75% 50%",
    "jitter": "delay 5ms 4ms",
    "marks": "delay 2ms loss 20% ecn",
    "all marked": "delay 2ms loss 100% ecn",
    "duplicates": "delay 2ms duplicate 5%",
    "corruption": "delay 2ms corrupt 2%",
    "shallow": "limit 5 delay 1ms rate 20mbit",
}
BLACKOUT = "delay 1ms loss 100%"
MTUS = (1500, 1280, 1400, 4000, 9000)

#: Of lowtail_faults: in one namespace, for what it sends.
FAULTS = (
    ("ce", "random 5"), ("ce", "every 1"), ("lone", "random 10"), ("rexmit", "random 4"),
    ("late", "every 1 delay 2000"), ("late", "random 3 delay 300"), ("tsq", "random 50"),
    ("ce", "off"), ("lone", "off"), ("rexmit", "off"), ("late", "off"), ("tsq", "off"),
)

#: (name, values that are taken, values that are not), of tcp_dctcp_floor. rto_floor is the round's.
PARAMETERS = (
    ("dctcp_shift_g", ("0", "1", "4", "10"), ("11", "-1", "x", "", "18446744073709551616")),
    ("dctcp_alpha_on_init", ("0", "1", "512", "1024"), ("1025", "-1", "1 2", "4294967296")),
    ("pace_below_floor", ("Y", "N"), ("maybe", "2")),
    ("rto_floor", (), ("maybe", "2", "")),
)
#: The same of autocork_policy's sysctls.
SYSCTLS = (
    ("tcp_autocork_policy", POLICIES, ("Stock", "", "stock nodelay", "x" * 5000)),
    ("tcp_autocork_deadline_us", ("10", "250", "40000"), ("9", "40001", "x", "4294967306")),
    ("tcp_splice_nodelay", ("0", "1", "2"), ("3", "-1", "1 1")),
)


class Plan:
    """The actions of a round, tick by tick."""

    def __init__(self, seed, ticks=60):
        self.random = random.Random(seed)
        self.seed, self.flows = seed, 0
        #: With N a window of 1 after an RTO is right: such a round's windows are not judged.
        self.rto_floor = "N" if self.random.random() < 0.2 else "Y"
        self.listeners = [self.random.choice(ALGORITHMS) for _ in range(8)]
        #: Of a packet on its way to the device; some faults strike only where there is one.
        self.segments = self.random.choice((1, 1, 4, 65535))
        self.hook, self.tracers = True, set()
        self.later = {}
        self.ticks = [self._tick(t, ticks) for t in range(ticks)]

    def __iter__(self):
        return iter(self.ticks)

    def _tick(self, now, ticks):
        choose, chance = self.random.choice, self.random.random
        actions = self.later.pop(now, [])
        if now < ticks * 3 // 4:
            actions += [self._open() for _ in range(self.random.randint(2, 5))]
        one_of = (self._switch, self._switch, self._switch, self._netem, self._netem, self._mtu, self._fault,
                  self._parameter, self._parameter, self._sysctl, self._sysctl, self._pause, self._pause,
                  self._abort, self._namespaces, self._tracer, self._hook, self._floor)
        for _ in range(self.random.randint(2, 4)):
            actions += choose(one_of)(now) or []
        if chance() < 0.04:
            side = choose("LR")
            # Some RTOs long.
            actions.append(("netem", side, BLACKOUT))
            self.later.setdefault(now + self.random.randint(4, 12), []).append(("netem", side, NETEM["clean"]))
        return actions

    def _open(self):
        choose, kind = self.random.choice, self.random.choice(KINDS)
        big = 60_000 if kind in ("bulk", "splice", "sendfile", "tls", "mptcp") else 12_000
        self.flows += 1
        return ("open", self.flows - 1, choose("LR"), choose((4, 6)), kind, choose(ALGORITHMS),
                self.random.randrange(1, big), self.random.randrange(0, big),
                choose((None, None, None, 4096, 16384)), choose((True, True, False)))

    def _some(self):
        """A flow, one of the last opened more often than not, and one of its ends."""
        return max(0, self.flows - 1 - int(self.random.expovariate(1 / 20))), self.random.choice((0, 1))

    def _switch(self, _):
        return [("switch", *self._some(), self.random.choice(ALGORITHMS)) for _ in range(5)]

    def _netem(self, _):
        return [("netem", self.random.choice("LR"), self.random.choice(list(NETEM.values())))]

    def _mtu(self, _):
        return [("mtu", self.random.choice(MTUS))]

    def _fault(self, _):
        return [("fault", self.random.choice("LR"), *self.random.choice(FAULTS))]

    def _value(self, table):
        name, good, bad = self.random.choice(table)
        taken = bool(good) and self.random.random() < 0.6
        return name, self.random.choice(good if taken else bad), taken

    def _parameter(self, _):
        return [("parameter", *self._value(PARAMETERS))]

    def _sysctl(self, _):
        return [("sysctl", self.random.choice("LR"), *self._value(SYSCTLS))] if self.hook else []

    def _pause(self, now):
        flow, end = self._some()
        self.later.setdefault(now + self.random.randint(2, 15), []).append(("resume", flow, end))
        return [("pause", flow, end)]

    def _abort(self, _):
        return [("abort", *self._some())]

    def _namespaces(self, _):
        return [("namespaces", self.random.randint(1, 3))]

    def _tracer(self, _):
        what = self.random.choice(("function", "kprobe", "tracepoint"))
        self.tracers ^= {what}
        return [("tracer", what, what in self.tracers)]

    def _hook(self, _):
        """autocork_policy goes, or comes, or both."""
        if self.random.random() < 0.5:
            self.hook = not self.hook
            return [("hook", self.hook)]
        return [("hook", False), ("hook", True)] if self.hook else []

    def _floor(self, _):
        """tcp_dctcp_floor is asked to go, which a single socket of it prevents."""
        return [("rmmod floor",)]
