#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# sweep_table.py RECORDS.json...: the records of the sweeps, of one boot or of several
# (out/sweep/SEED/sweep*.json), as two tables in Markdown. The first has a row for each number of
# senders and algorithm: the mean over the boots, and where they differ the least and the greatest. The
# second says of each number of senders what the paced floor is beside stock dctcp. docs/pacing.md has both.

import json
import math
import statistics
import sys

COLUMNS = {
    "queue": ("queue_mean", "{:.1f}"),
    "p99": ("queue_p99", "{:.1f}"),
    "drops": ("drop_share", "{:.2f}"),
    "RTOs": ("timeouts", "{:.0f}"),
    "Mbit/s": ("throughput", "{:.0f}"),
    "Jain": ("fairness", "{:.2f}"),
    "FCT p50": ("p50", "{:.0f}"),
    "FCT p99": ("p99", "{:.0f}"),
    "FCT p99.9": ("p99.9", "{:.0f}"),
    "answers": ("replies", "{:.0f}"),
}
# What the two are compared by; True: more is better.
COMPARED = {"queue": False, "drops": False, "Mbit/s": True, "FCT p50": False, "FCT p99.9": False}
ORDER = ("cubic", "dctcp", "dctcp_floor", "paced")
# Means differ where they are further apart than this many standard errors of their difference (Welch).
ERRORS = 2


def runs_of(path):
    """(load, N, variant) and metrics of each run in a file of records; times in ms."""
    with open(path, encoding="utf-8") as file:
        records = json.load(file)
    runs = {}
    for record in records:
        if ":" in record["flow"]:
            runs.setdefault((record["flow"], record["variant"]), {})[record["metric"]] = record["value"]
    for (flow, variant), metrics in runs.items():
        load, senders = flow.split(":")
        for name in ("p50", "p99", "p99.9"):
            if name in metrics:
                metrics[name] /= 1000
        qdisc = " (fq)" if records[0]["scenario"] == "sweep-fq" else ""
        yield (load + qdisc, int(senders), variant), metrics


def cell(values, form):
    """The mean of some values, and their range where it can be seen."""
    if not values:
        return "–"
    least, mean, most = (form.format(v) for v in (min(values), statistics.fmean(values), max(values)))
    return mean if least == most else f"{mean} ({least}–{most})"


def verdict(ours, stocks, more_is_better):
    """What ours is beside stock's: `same` within ERRORS standard errors of the difference of the means."""
    difference = statistics.fmean(ours) - statistics.fmean(stocks)
    error = math.sqrt(sum(statistics.variance(v) / len(v) for v in (ours, stocks)))
    if abs(difference) <= ERRORS * error or difference == 0:
        return "same"
    return "better" if (difference > 0) == more_is_better else "worse"


def main():
    """Prints the tables."""
    if len(sys.argv) < 2:
        sys.exit("sweep_table.py: no records; give the files that `make sweep` wrote, out/sweep/*/sweep*.json")
    table = {}
    for path in sys.argv[1:]:
        for run, metrics in runs_of(path):
            for name, value in metrics.items():
                table.setdefault(run, {}).setdefault(name, []).append(value)

    def values(run, column):
        return table[run].get(COLUMNS[column][0], [])

    print("| load | N | variant | " + " | ".join(COLUMNS) + " |")
    print("|---|---|---|" + "---|" * len(COLUMNS))
    for run in sorted(table, key=lambda r: (r[0], r[1], ORDER.index(r[2]))):
        cells = (cell(values(run, name), form) for name, (_, form) in COLUMNS.items())
        print(f"| {run[0]} | {run[1]} | {run[2]} | " + " | ".join(cells) + " |")

    pairs = sorted(run[:2] for run in table if run[2] == "paced")
    boots = min(len(values((*pair, variant), "queue")) for pair in pairs for variant in ("paced", "dctcp"))
    if boots < 2:
        print("\nOne boot has no errors to compare by: no second table.")
        return
    print("\n| paced beside dctcp | N | " + " | ".join(COMPARED) + " |")
    print("|---|---|" + "---|" * len(COMPARED))
    for pair in pairs:
        cells = []
        for name, more_is_better in COMPARED.items():
            ours, stocks = (values((*pair, variant), name) for variant in ("paced", "dctcp"))
            form = COLUMNS[name][1]
            means = " / ".join(form.format(statistics.fmean(v)) for v in (ours, stocks))
            cells.append(f"{verdict(ours, stocks, more_is_better)}: {means}")
        print(f"| {pair[0]} | {pair[1]} | " + " | ".join(cells) + " |")


main()
