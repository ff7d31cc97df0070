#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Where stock dctcp's window is 2 packets or more, dctcp_floor's is the same to the packet: both play
# the same script of losses and marks, and after each step window, threshold, alpha, congestion state
# and what was sent are compared.
#
# Only what is decided by packets is in the scripts, nothing that a timer decides. A script in which
# stock falls under 2 is compared up to that step; and with pacing below the floor, up to the step in
# which stock's threshold is clamped to 2, since less may be wanted there, or in which the window has
# grown above it where more than a quarter is marked, since the next start then leaves that out.

import random

import ktap
import modules
from farend import ECE, Connection, Net

STOCK, FLOOR = "dctcp", "dctcp_floor"
SCRIPTS = 16
ROUNDS = 8
ATTEMPTS = 4

suite = ktap.Suite()


def state(c, sent):
    """What must be the same."""
    info = c.info()
    alpha = c.dctcp().alpha
    packets = [((s.seq - c.irs - 1) & 0xFFFFFFFF) // c.MSS for s in sent if s.length]
    return {"cwnd": info.cwnd, "ssthresh": info.ssthresh, "state": info.ca_state, "alpha": alpha,
            "sent": packets}


class Far:
    """A receiver with a memory, which loses the packets that the script says."""

    def __init__(self, c, dice, ecn):
        self.c, self.dice, self.ecn = c, dice, ecn
        self.have, self.end, self.lossy = set(), 0, 0.0
        self.trace = []

    def arrive(self, sent, marked):
        """Each packet is lost or acknowledged, and its ACK may make more packets leave."""
        todo = [((s.seq - self.c.irs - 1) & 0xFFFFFFFF) // self.c.MSS for s in sent if s.length]
        while todo:
            packet = todo.pop(0)
            # A retransmission always arrives, and so does the last packet of a write.
            if packet not in self.lost_once and packet != self.end - 1 and \
                    self.dice.random() < self.lossy:
                self.lost_once.add(packet)
                continue
            self.have.add(packet)
            una = next(i for i in range(self.end + 1) if i not in self.have)
            above = [p for p in self.have if p > una]
            sacks = [(packet, packet + 1)] if packet > una else []
            if above and not sacks:
                sacks = [(min(above), min(above) + 1)]
            flags = ECE if self.ecn and self.dice.random() < marked else 0
            more = self.c.ack(una, sacks=sacks, flags=flags)
            self.trace.append(state(self.c, more))
            todo += [((s.seq - self.c.irs - 1) & 0xFFFFFFFF) // self.c.MSS for s in more if s.length]

    def play(self):
        """Rounds of writes; the next begins when all of the last has arrived."""
        self.lost_once = set()
        for _ in range(ROUNDS):
            count = self.dice.choice([4, 8, 8, 16, 30])
            self.lossy = self.dice.choice([0, 0, 0.15])
            marked = self.dice.choice([0, 0, 0.3, 1])
            self.end += count
            sent = self.c.write(count * self.c.MSS)
            self.trace.append(state(self.c, sent))
            self.arrive(sent, marked)
            if len(self.have) != self.end:
                break


def play(net, algorithm, seed):
    """The trace of one script."""
    dice = random.Random(seed)
    ecn = dice.random() < 0.8
    how = {"ecn": "rfc3168" if ecn else "none", "passive": dice.random() < 0.5}
    with Connection(net, algorithm, **how) as c:
        far = Far(c, dice, ecn)
        far.play()
        return far.trace


def engaged(step, paced):
    """Whether the floor, or pacing below it, may have made a difference from this step on."""
    grown = step["cwnd"] > step["ssthresh"] and step["alpha"] > 256
    return step["cwnd"] < 2 or (paced and (step["ssthresh"] <= 2 or grown))


def agree(net, seed, paced):
    """Stock's trace of a script and how many steps of it are to be compared; fails when they differ.

    RACK compares times, so stock does not always play a script twice the same way. A difference
    that is chance's does not come again every time.
    """
    for _ in range(ATTEMPTS):
        stock, floor = (play(net, a, seed) for a in (STOCK, FLOOR))
        low = next((i for i, s in enumerate(stock) if engaged(s, paced)), len(stock))
        if stock[:low] == floor[:low]:
            return stock, low
    step = next(i for i in range(low) if i >= len(floor) or stock[i] != floor[i])
    raise AssertionError(f"script {seed}, step {step}: stock {stock[step - 1:step + 1]}, "
                         f"floor {floor[step - 1:step + 1]}")


def main():
    """Plays all scripts with both algorithms."""
    modules.need_root("ip")
    modules.need_stock_dctcp()
    modules.load("tcp_dctcp_floor")
    net = Net()
    net.sysctl("net.ipv4.tcp_ecn", 1)
    # No clock decides: segments go one by one, not by TSO's deferral, and the first SACK above a
    # hole tells a loss, not a quarter of an RTT.
    net.run("ip", "link", "set", "tun0", "gso_max_segs", "1")
    net.sysctl("net.ipv4.tcp_reordering", 1)

    def compare(paced):
        steps = reduced = recovered = 0
        # Paced, they end sooner.
        for seed in range(2 * SCRIPTS if paced else SCRIPTS):
            stock, low = agree(net, seed, paced)
            steps += low
            reduced += any(s["state"] == 2 for s in stock[:low])
            recovered += any(s["state"] == 3 for s in stock[:low])
        ktap.note(f"{steps} steps compared; {reduced} scripts with CWR, {recovered} with Recovery")
        if steps < 50 * SCRIPTS or reduced < 4 or recovered < 4:
            raise ktap.Void("too little happened")

    @suite.case(f"{SCRIPTS} scripts of {ROUNDS} writes, step by step")
    def _scripts():
        with modules.Parameter("tcp_dctcp_floor", "pace_below_floor", "N"):
            compare(paced=False)

    @suite.case("the same scripts with pacing below the floor, until it may make a difference")
    def _paced():
        with modules.Parameter("tcp_dctcp_floor", "pace_below_floor", "Y"):
            compare(paced=True)

    @suite.case("rto_floor=N: the same, where no timer fires")
    def _without_timers():
        with (modules.Parameter("tcp_dctcp_floor", "rto_floor", "N"),
              modules.Parameter("tcp_dctcp_floor", "pace_below_floor", "N")):
            steps = sum(agree(net, seed, paced=False)[1] for seed in range(SCRIPTS // 4))
        ktap.note(f"{steps} steps compared")
        if steps < 50 * (SCRIPTS // 4):
            raise ktap.Void("too little happened")

    suite.run()


main()
