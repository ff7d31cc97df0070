#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# What an operator sees of dctcp_floor: the counters of /proc/net/tcp_dctcp_floor, exact and of each
# network namespace its own, and the tracepoints, as tracefs, bpftrace and trace-cmd show them.
#
# Known plays against a scripted peer: what each counts is known too. The tracepoint in the kernel's own
# trace has to tell of as many raised windows as are counted.

import os
import re
import shutil
import subprocess
import threading
import time

import ktap
import modules
from farend import ECE, LOSS, RECOVERY, Connection, Net
from watch import TRACING, write

FLOOR, STOCK = "dctcp_floor", "dctcp"
MODULE = "tcp_dctcp_floor"
COUNTERS = ["connections", "fallbacks", "floor_open", "floor_disorder", "floor_cwr", "floor_recovery",
            "floor_loss", "paced", "held_back"]

suite = ktap.Suite()


def seen(net):
    """The counters of a namespace."""
    with net.inside(), open("/proc/thread-self/net/tcp_dctcp_floor", encoding="ascii") as file:
        return {name: int(n) for name, n in map(str.split, file)}


def moved(net, before):
    """Those that moved, and how far."""
    return {name: n - before[name] for name, n in seen(net).items() if n != before[name]}


def inum(net):
    """The number of a namespace."""
    with net.inside():
        return os.stat("/proc/thread-self/ns/net").st_ino


class Trace:
    """The module's tracepoints in a trace instance of their own."""

    PLACE = "instances/lowtail_seen"

    def __enter__(self):
        if not os.path.exists(f"{TRACING}/instances"):
            subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=False)
        os.mkdir(f"{TRACING}/{self.PLACE}")
        write(f"{self.PLACE}/events/{MODULE}/enable", "1")
        return self

    def events(self, name):
        """The fields of each event so far, as text."""
        with open(f"{TRACING}/{self.PLACE}/trace", encoding="ascii") as file:
            return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in file if f" {name}: " in line]

    def __exit__(self, *_):
        write(f"{self.PLACE}/events/{MODULE}/enable", "0")
        os.rmdir(f"{TRACING}/{self.PLACE}")


def two_timeouts(c):
    """Both packets are lost, and the retransmission timer fires, twice."""
    c.write(2000)
    for _ in range(2):
        ktap.equal([s.seq for s in c.wait()[:1]], [c.at(0)], "the first retransmission")
        ktap.equal(c.info().ca_state, LOSS, "CA state")
    c.ack(2)


def third_sack(c):
    """The first of four packets is lost; the third SACK tells."""
    c.write(4000)
    time.sleep(0.1)
    for i in (2, 3, 4):
        sent = c.ack(0, sacks=[(1, i)])
    ktap.equal([s.seq for s in sent[:1]], [c.at(0)], "the first retransmission")
    ktap.equal(c.info().ca_state, RECOVERY, "CA state")
    c.ack(4)


def ordinary(c):
    """Twenty packets, each acknowledged."""
    c.write(20000)
    for i in range(1, 21):
        c.ack(i)


def marked(c):
    """Every packet is marked, as an RTT later."""
    waiting = len(c.write(40 * c.MSS))
    for i in range(1, 31):
        time.sleep(c.rtt)
        waiting += 0 if waiting else len(c.wait())
        ktap.equal(waiting > 0, True, "a packet came out")
        waiting += len(c.ack(i, flags=ECE)) - 1


def lost_below(c):
    """The same, then the first of the two packets that are out is lost."""
    marked(c)
    first = 30
    sent = c.ack(first, sacks=[(first + 1, first + 2)], flags=ECE)
    while c.at(first) not in [s.seq for s in sent]:
        more = c.wait()
        ktap.equal(len(more) > 0, True, "a retransmission came")
        sent += more
    time.sleep(c.rtt)
    c.ack(first + 2, flags=ECE)


# name, what happens, how the connection is opened, what it counts beside the connection.
PLAYS = [
    ("an ordinary connection", ordinary, {}, {}),
    ("an ordinary connection, passive open", ordinary, {"passive": True}, {}),
    ("two timeouts", two_timeouts, {}, {"floor_loss": 2}),
    ("two timeouts, passive open", two_timeouts, {"passive": True}, {"floor_loss": 2}),
    ("Recovery", third_sack, {"rtt": 0.1}, {"floor_recovery": 1}),
    # The third SYN does without ECN. Its timeouts are RTOs of a connection, those of a SYN-ACK are not.
    ("a SYN sent three times", ordinary, {"deaf": 2}, {"fallbacks": 1, "floor_open": 1, "floor_loss": 2}),
    ("a SYN-ACK sent three times", ordinary, {"deaf": 2, "passive": True}, {"floor_open": 1}),
    ("no ECN", ordinary, {"ecn": "none"}, {"fallbacks": 1}),
    ("no ECN, two timeouts", two_timeouts, {"ecn": "none"}, {"fallbacks": 1, "floor_loss": 2}),
    ("marks without pacing", marked, {}, {}),
]


def add_plays(net, trace):
    """A case for each play."""
    for name, act, how, wanted in PLAYS:

        def case(act=act, how=how, wanted=wanted):
            net.least_rto("300ms" if act is two_timeouts else "10s")
            before, told = seen(net), len(trace.events("dctcp_floor_raised"))
            with Connection(net, FLOOR, **how) as c:
                act(c)
                port = str(c.port)
            counted = moved(net, before)
            ktap.note(f"counted {counted}")
            ktap.equal(counted, {"connections": 1} | wanted, "counters that moved")
            events = trace.events("dctcp_floor_raised")[told:]
            raised = sum(n for what, n in counted.items() if what.startswith("floor_"))
            ktap.equal(len(events), raised, "events of the tracepoint")
            for event in events:
                ktap.equal(event["src"].rsplit(":", 1)[1], port, "port")
                ktap.equal(event["netns"], str(inum(net)), "namespace")
                ktap.equal((int(event["prior_cwnd"]) < 2, event["snd_cwnd"]), (True, "2"), "windows")
                ktap.equal(counted.get(f"floor_{event['ca_state'].lower()}", 0) > 0, True,
                           f"state {event['ca_state']} is one that was counted")

        suite.cases.append((f"{name}: counters, and as many events", case))


def add_others(net, trace):
    """The other cases."""

    @suite.case("paced below the floor: counted once, traced with the rate that is set")
    def _paced():
        net.least_rto("10s")
        with modules.Parameter(MODULE, "pace_below_floor", "Y"):
            before = seen(net)
            with Connection(net, FLOOR, rtt=0.02) as c:
                lost_below(c)
                counted, rate = moved(net, before), c.info().pacing_rate
            events = trace.events("dctcp_floor_paced")
            ktap.note(f"counted {counted}; {len(events)} events, the last {events[-1:]}")
            ktap.equal(counted.get("paced"), 1, "times that pacing began")
            ktap.equal(events[-1]["pacing_rate"], str(rate), "the rate, as TCP_INFO has it")
            window = int(events[-1]["window"].split("/")[0])
            share = c.MSS * window / 65536 / (int(events[-1]["rtt_us"]) / 1e6)
            ktap.equal(abs(share - rate) <= 1, True, f"{rate} is a window of {window}/65536 an RTT")

    @suite.case("dctcp in our place counts and tells nothing")
    def _stock():
        net.least_rto("300ms")
        before, told = seen(net), len(trace.events("dctcp_floor_raised"))
        with Connection(net, STOCK) as c:
            two_timeouts(c)
        ktap.equal(moved(net, before), {}, "counters that moved")
        ktap.equal(len(trace.events("dctcp_floor_raised")), told, "events of the tracepoint")

    @suite.case("a namespace in which nothing happened stays at 0, one that is made later too")
    def _others():
        other = Net()
        ktap.equal(list(seen(other)), COUNTERS, "names")
        ktap.equal(set(seen(other).values()), {0}, "counters")
        before = seen(net)
        with Connection(other, FLOOR) as c:
            ordinary(c)
        ktap.equal(seen(other)["connections"], 1, "connections there")
        ktap.equal(moved(net, before), {}, "counters that moved here")
        other.close()

    @suite.case("a namespace ends under connections that still retransmit")
    def _ends():
        dying = Net()
        dying.sysctl("net.ipv4.tcp_ecn", 1)
        dying.least_rto("300ms")
        dying.sysctl("net.ipv4.tcp_orphan_retries", 1)
        connections = [Connection(dying, FLOOR).establish() for _ in range(5)]
        for c in connections:
            c.write(2000)
        for c in connections:
            c.sock.close()
        dying.close()
        time.sleep(1)
        with Connection(net, FLOOR) as c:
            ordinary(c)

    add_tools(net)


def listen(command, ready, net, lines=0):
    """What a tool prints of a connection with two timeouts. `ready` waits until it listens, and it has half a minute
    for that many lines that begin with the connection's port: a tool reads its buffer now and then, and what is in it when
    it is ended is not printed."""
    net.least_rto("300ms")
    said = []

    def read():
        for line in tool.stdout:
            said.append(line)

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tool:
        reader = threading.Thread(target=read)
        reader.start()
        try:
            ready(tool, said)
            port = timed_out(net)
            end = time.monotonic() + 30
            while sum(line.startswith(f"{port} ") for line in said) < lines and time.monotonic() < end:
                time.sleep(0.1)
            tool.terminate()
            reader.join(60)
            return "".join(said), port
        finally:
            tool.kill()
            reader.join()


def timed_out(net):
    """A connection that has two timeouts: its port."""
    with Connection(net, FLOOR) as c:
        two_timeouts(c)
        return c.port


def until_seen(net):
    """Waits until the tool prints what it is told of a connection, and makes some: bpftrace says that it attaches before
    it does, and takes half a minute for it in TCG."""
    end = time.monotonic() + 150

    def ready(tool, said):
        while time.monotonic() < end:
            if tool.poll() is not None:
                raise AssertionError(f"the tool ended with {tool.returncode}: {''.join(said).strip()}")
            if not any("Attach" in line for line in said):
                time.sleep(0.1)
                continue
            port = timed_out(net)
            time.sleep(0.5)
            # Who saw one line of that connection's sees all of the next one's.
            if any(line.startswith(f"{port} ") for line in said):
                return
        raise ktap.Void(f"the tool did not begin to listen: {''.join(said).strip()}")

    return ready


def add_tools(net):
    """The lines of README, as they stand there but for where they listen."""

    @suite.case("bpftrace reads the tracepoint")
    def _bpftrace():
        if not shutil.which("bpftrace"):
            raise ktap.Skip("bpftrace is not installed")
        program = ('tracepoint:tcp_dctcp_floor:dctcp_floor_raised { printf("%d %d: %d to %d\\n", '
                   'args.sport, args.ca_state, args.prior_cwnd, args.snd_cwnd); }')
        said, port = listen(["bpftrace", "-e", program], until_seen(net), net, lines=2)
        ktap.note(said.strip().replace("\n", "; "))
        ktap.equal(said.count(f"{port} {LOSS}: 1 to 2"), 2, "lines that bpftrace prints")

    @suite.case("trace-cmd reads the tracepoint")
    def _trace_cmd():
        if not shutil.which("trace-cmd"):
            raise ktap.Skip("trace-cmd is not installed")
        os.chdir("/tmp")
        record = ["trace-cmd", "record", "-q", "-e", "tcp_dctcp_floor"]

        def ready(*_):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with open(f"{TRACING}/events/{MODULE}/dctcp_floor_raised/enable", encoding="ascii") as file:
                    if file.read().startswith("1"):
                        return
                time.sleep(0.1)
            raise ktap.Void("trace-cmd did not begin to listen")

        _, port = listen(record, ready, net)
        said = subprocess.run(["trace-cmd", "report"], capture_output=True, text=True, check=True).stdout
        lines = [line for line in said.splitlines() if "dctcp_floor_raised" in line]
        ktap.note("; ".join(lines)[:300])
        ktap.equal(len([line for line in lines if f":{port} " in line and "ca_state=Loss" in line
                        and "prior_cwnd=1 snd_cwnd=2" in line]), 2, "lines that trace-cmd prints")


def main():
    """All cases; then the file goes with the module."""
    modules.need_root("ip")
    modules.need_stock_dctcp()
    modules.load(MODULE)
    net = Net()
    net.sysctl("net.ipv4.tcp_ecn", 1)
    with Trace() as trace:
        add_plays(net, trace)
        add_others(net, trace)

        @suite.case("file and tracepoints go with the module")
        def _gone():
            net.close()
            trace.__exit__()
            # Sockets that were closed hold it until they are through.
            end = time.monotonic() + 30
            while modules.loaded(MODULE):
                rmmod = subprocess.run(["rmmod", MODULE], capture_output=True, text=True, check=False)
                ktap.equal(time.monotonic() < end, True, f"rmmod in time: {rmmod.stderr.strip()}")
                time.sleep(0.2)
            ktap.equal(os.path.exists("/proc/net/tcp_dctcp_floor"), False, "/proc/net/tcp_dctcp_floor")
            ktap.equal(os.path.exists(f"{TRACING}/events/{MODULE}"), False, "tracepoints")
            modules.load(MODULE)
            trace.__enter__()

        suite.run()


main()
