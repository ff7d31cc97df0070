#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# With and without ECN (C13): every value of tcp_ecn, against peers that know no ECN, RFC 3168 or
# AccECN, from both sides of the handshake, IPv4 and IPv6, as a table of outcomes that must be stock
# dctcp's.
#
# Without ECN the connection goes on as Reno: no ECT on its packets, `ss` still answers. That the
# floor holds there is floor.py's to show.

import socket

import ktap
import modules
from farend import ECT0, ECT1, NOT_ECT, Connection, Net

STOCK, FLOOR = "dctcp", "dctcp_floor"
ECN_NAMES = {NOT_ECT: "-", ECT0: "ECT(0)", ECT1: "ECT(1)", 3: "CE"}

suite = ktap.Suite()


def outcome(net, algorithm, **how):
    """(flags of the SYN or SYN-ACK and its ECT, DCTCP in use, ECT on data, alpha, name)."""
    with Connection(net, algorithm, **how) as c:
        first = c.handshake[0]
        sent = c.write(100)
        dctcp = c.dctcp()
        return {
            "syn": (first.ace, first.ecn),
            "dctcp": dctcp.enabled,
            "ect": sent[0].ecn,
            "alpha": dctcp.alpha,
            "name": c.algorithm(),
        }


def compare(net, value, peer, passive, family=socket.AF_INET):
    """One row: both algorithms must have the same outcome. Returns stock's."""
    net.sysctl("net.ipv4.tcp_ecn", value)
    how = {"ecn": peer, "passive": passive, "family": family}
    stock, floor = (outcome(net, a, **how) for a in (STOCK, FLOOR))
    ktap.note(f"tcp_ecn {value} {'passive' if passive else 'active '} peer {peer:8}: "
              f"{'DCTCP' if floor['dctcp'] else 'Reno '} ACE {floor['syn'][0]:03b} data "
              f"{ECN_NAMES[floor['ect']]:6} {floor['name']}; stock "
              f"{'DCTCP' if stock['dctcp'] else 'Reno '} {ECN_NAMES[stock['ect']]}")
    names = [o.pop("name") for o in (stock, floor)]
    ktap.equal(floor, stock, "outcome")
    ktap.equal(names, [STOCK, FLOOR] if stock["dctcp"] else ["dctcp-reno", "dctcpfloor-reno"],
               "names")
    return stock


def add_rows(net):
    """A case for each peer and side, over all values of tcp_ecn."""
    for family in (socket.AF_INET, socket.AF_INET6):
        for passive in (False, True):
            for peer in ("none", "rfc3168", "accecn"):
                side = "passive" if passive else "active"
                version = "IPv4" if family == socket.AF_INET else "IPv6"

                def row(peer=peer, passive=passive, family=family):
                    seen = [compare(net, v, peer, passive, family) for v in range(6)]
                    if peer == "none":
                        ktap.equal(any(s["dctcp"] or s["ect"] for s in seen), False,
                                   "ECN without a peer that knows it")
                    elif not any(s["dctcp"] and s["ect"] for s in seen):
                        raise ktap.Void("stock dctcp never used ECN with this peer")

                suite.cases.append((f"{version} {side} open, peer {peer}, tcp_ecn 0 to 5", row))


def add_ss(net):
    """`ss -ti` shows both kinds."""

    @suite.case("ss shows DCTCP with ECN, and its fallback without")
    def _ss():
        net.sysctl("net.ipv4.tcp_ecn", 2)
        for peer, wanted in (("rfc3168", "alpha:1024"), ("none", "fallback_mode")):
            for algorithm in (STOCK, FLOOR):
                with Connection(net, algorithm, ecn=peer) as c:
                    line = net.run("ss", "-tinH", f"sport = {c.port}")
                    shown = " ".join(line.split()[5:10])
                    ktap.note(f"{peer}: {shown}")
                    ktap.equal(wanted in line, True, f"{wanted} in what ss shows of {algorithm}")


def add_bpf(net):
    """What the kernel's DCTCP in BPF does instead, for docs/features.md."""

    @suite.case("bpf_dctcp without ECN: no fallback, ECT all the same; ss shows no alpha of it")
    def _bpf():
        if not modules.register_bpf_dctcp():
            raise ktap.Skip("bpf_dctcp was not built, or not taken (selftests/bpf_dctcp.sh)")
        net.sysctl("net.ipv4.tcp_ecn", 2)
        with Connection(net, "bpf_dctcp", ecn="none") as c:
            ktap.equal((c.algorithm(), c.write(100)[0].ecn), ("bpf_dctcp", ECT0), "algorithm and ECT")
        with Connection(net, "bpf_dctcp", ecn="rfc3168") as c:
            line = net.run("ss", "-tinH", f"sport = {c.port}")
            ktap.equal(("bpf_dctcp" in line, "alpha" in line), (True, False), "what ss shows")


def main():
    """Makes the cases and runs them."""
    modules.need_root("ip", "ss")
    modules.need_stock_dctcp()
    modules.load("tcp_dctcp_floor")
    net = Net()
    add_rows(net)
    add_ss(net)
    add_bpf(net)
    suite.run()


main()
