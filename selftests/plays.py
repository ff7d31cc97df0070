# SPDX-License-Identifier: GPL-2.0
#
# What is played first and judged later: connections under stock dctcp and under dctcp_floor, against
# the same peer, whose windows the watch records. Shared by the tests of the floor.

import ktap

STOCK, FLOOR = "dctcp", "dctcp_floor"
#: How stock compares: seen under 2 and ours not; not under 2, and ours the same; ours the same, 1 too.
FALLS, HOLDS, SAME = "falls", "holds", "same"


class Plays:
    """What was done: name -> {algorithm: port, (algorithm, what): value}."""

    def __init__(self):
        self.played = {}

    def run(self, name, act, algorithm, connection):
        """One connection from its handshake to its end; a failure is kept for the case's verdict."""
        entry = self.played.setdefault(name, {})
        entry[algorithm] = connection.port
        try:
            with connection as c:
                act(c)
                entry[algorithm, "cwnd after"] = c.info().cwnd
        except (AssertionError, OSError) as error:
            entry[algorithm, "error"] = str(error)

    def lowest(self, watch, name, algorithm, **which):
        """The least window of a play's transmissions."""
        return min(watch.windows(self.played[name][algorithm], **which))

    def stock_fails(self, watch, names):
        """With stock in our place each of these would be a failure: the verdict can tell."""
        for name, which in names:
            fake = Plays()
            entry = self.played[name]
            fake.played[name] = {STOCK: entry[STOCK], FLOOR: entry[STOCK]}
            try:
                fake.judge(watch, name, FALLS, quiet=True, **which)
            except AssertionError:
                continue
            raise AssertionError(f"stock in our place would pass: {name}")
        ktap.note(f"{len(names)} cases fail with {STOCK} in {FLOOR}'s place")

    def judge(self, watch, name, wanted, *, quiet=False, **which):
        """The verdict on one play; `which` of its transmissions count is the watch's to tell."""
        entry = self.played[name]
        errors = {a: entry.get((a, "error")) for a in (STOCK, FLOOR)}
        if errors[STOCK]:
            raise ktap.Void(f"{STOCK}: {errors[STOCK]}")
        ktap.equal(errors[FLOOR], None, f"what went wrong under {FLOOR}")
        lowest = {a: self.lowest(watch, name, a, **which) for a in (STOCK, FLOOR)}
        after = {a: entry.get((a, "cwnd after")) for a in (STOCK, FLOOR)}
        if not quiet:
            ktap.note(f"least window: {STOCK} {lowest[STOCK]}, {FLOOR} {lowest[FLOOR]} of "
                      f"{len(watch.windows(entry[FLOOR], **which))} transmissions; at the end {after}")
        if wanted == FALLS and lowest[STOCK] >= 2:
            raise ktap.Void(f"{STOCK} was not seen under 2")
        if wanted == HOLDS and lowest[STOCK] < 2:
            raise ktap.Void(f"{STOCK} was seen at {lowest[STOCK]}, which it is said never to be")
        if wanted != SAME:
            ktap.equal(lowest[FLOOR] >= 2, True, f"least window {lowest[FLOOR]} is 2 or more")
        if wanted == SAME or lowest[STOCK] >= 2:
            ktap.equal(lowest[FLOOR], lowest[STOCK], "least window, as stock's")
            ktap.equal(after[FLOOR], after[STOCK], "window at the end, as stock's")
