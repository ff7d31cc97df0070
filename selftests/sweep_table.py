#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# sweep_table.py RECORDS.json...: the records of the sweeps (out/sweep*.json) as one table in
# Markdown, a row for each number of senders and algorithm. docs/pacing.md has it.

import json
import sys

COLUMNS = {
    "queue": ("queue_mean", "{:.1f}"),
    "p99": ("queue_p99", "{:.1f}"),
    "drops": ("drop_share", "{:.1f}"),
    "RTOs": ("timeouts", "{:.0f}"),
    "Mbit/s": ("throughput", "{:.0f}"),
    "Jain": ("fairness", "{:.2f}"),
    "FCT p50": ("p50", "{:.0f}"),
    "FCT p99": ("p99", "{:.0f}"),
    "FCT p99.9": ("p99.9", "{:.0f}"),
    "answers": ("replies", "{:.0f}"),
}


def rows(path):
    """(load, N, variant, metrics) of each run in a file of records; times in ms."""
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
        yield load + qdisc, int(senders), variant, metrics


def main():
    """Prints the table."""
    if len(sys.argv) < 2:
        sys.exit("sweep_table.py: no records; give the files that `make scenarios` wrote, out/sweep*.json")
    print("| load | N | variant | " + " | ".join(COLUMNS) + " |")
    print("|---|---|---|" + "---|" * len(COLUMNS))
    order = ("cubic", "dctcp", "dctcp_floor", "paced")
    table = [row for path in sys.argv[1:] for row in rows(path)]
    for load, senders, variant, metrics in sorted(table, key=lambda r: (r[0], r[1], order.index(r[2]))):
        cells = [form.format(metrics[name]) if name in metrics else "–" for name, form in COLUMNS.values()]
        print(f"| {load} | {senders} | {variant} | " + " | ".join(cells) + " |")


main()
