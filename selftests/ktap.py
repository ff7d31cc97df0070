# SPDX-License-Identifier: GPL-2.0
#
# KTAP for the tests that are written in Python: cases in order, skips with their reason, voids that
# count as failures, and the kernel's own log as the last case.
#
# A case is a function. It passes by returning, fails by an exception, and is void (a failure that
# says why) when its control did not show the fault: then the comparison says nothing.

import os
import subprocess
import sys
import traceback

KSFT_SKIP = 4

# Knows what a kernel says when something broke: prints those lines of a log.
COMPLAINTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "complaints.sh")


class Void(Exception):
    """The control did not show the fault."""


class Skip(Exception):
    """What this case needs is not here."""


def skip_all(reason):
    """Ends the test before its first case."""
    print(f"TAP version 13\n1..0 # SKIP {reason}")
    sys.exit(KSFT_SKIP)


def bail_out(reason):
    """Ends the test as failed: what it is about is here, but cannot be tried."""
    print(f"TAP version 13\n1..1\nnot ok 1 {reason}")
    sys.exit(1)


def note(text):
    """A line of diagnosis."""
    print(f"# {text}", flush=True)


def equal(seen, wanted, what):
    """Fails unless both are the same, and says what was seen."""
    if seen != wanted:
        raise AssertionError(f"{what}: {seen}, should be {wanted}")


def kernel_log():
    """The lines of the kernel's log so far."""
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout.splitlines()


def mark_log(text):
    """Writes a line of our own into the kernel's log."""
    with open("/dev/kmsg", "w", encoding="ascii") as kmsg:
        kmsg.write(f"lowtail: {text}\n")


def complaints(lines):
    """Those of the log's lines that complain."""
    scan = subprocess.run([COMPLAINTS], input="".join(f"{line}\n" for line in lines), stdout=subprocess.PIPE,
                          text=True, check=False)
    if scan.returncode not in (0, 1):
        raise AssertionError(f"{COMPLAINTS} failed")
    return scan.stdout.splitlines()


def no_complaints(since):
    """The kernel complained about nothing after the mark."""
    lines = kernel_log()
    marks = [i for i, line in enumerate(lines) if since in line]
    # The mark can only be missing when the log has overflowed: then all of it is ours.
    new = lines[marks[-1] :] if marks else lines
    bad = complaints(new)
    if bad:
        raise AssertionError("; ".join(bad[:3]))


class Suite:
    """The cases of one test, and the end of it."""

    def __init__(self):
        self.cases = []

    def case(self, name):
        """Decorator: adds a case."""

        def add(function):
            self.cases.append((name, function))
            return function

        return add

    def run(self):
        """Runs every case and exits with the kselftest status."""
        me = os.path.basename(sys.argv[0])
        mark = f"{me} begins ({os.getpid()})"
        mark_log(mark)
        cases = [*self.cases, ("the kernel's log has no complaint", lambda: no_complaints(mark))]
        passed = skipped = 0
        print(f"TAP version 13\n1..{len(cases)}", flush=True)
        for number, (name, function) in enumerate(cases, 1):
            try:
                function()
            except Skip as reason:
                skipped += 1
                print(f"ok {number} {name} # SKIP {reason}", flush=True)
            except Void as void:
                print(f"not ok {number} {name}\n#   void: {void}", flush=True)
            except Exception as error:  # every failure of a case is the case's, not the test's
                print(f"not ok {number} {name}", flush=True)
                if not isinstance(error, AssertionError):
                    note(traceback.format_exc().replace("\n", "\n# "))
                note(f"  {error}")
            else:
                passed += 1
                print(f"ok {number} {name}", flush=True)
        print(
            f"# Totals: pass:{passed} fail:{len(cases) - passed - skipped} xfail:0 xpass:0 "
            f"skip:{skipped} error:0",
            flush=True,
        )
        sys.exit(0 if passed + skipped == len(cases) else 1)
