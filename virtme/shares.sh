#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# shares.sh PORT COUNT: whose instructions they were. Prints records, one a line, from what a guest
# sent (PORT: records, and `sym ADDRESS NAME [MODULE]` lines from its kallsyms) and what count.c
# counted (COUNT). For each variant and flow that has a record `part`:
#
#   own         instructions of its congestion control's module (the variant's name, less what follows
#               a dash), for each of the flow's `units`
#   own:NAME    those of one function of it; of a Rust callback NAME is the callback's
#   tcp         instructions of the module and of functions whose name begins with tcp_ or __tcp_
#   all         all instructions, the application's included
#
# and a note that sets those of `dctcp_floor` beside those of `dctcp`. Touches nothing.

set -euo pipefail

port=${1:?shares.sh: no PORT}
count=${2:?shares.sh: no COUNT}

records() {
	sed -n 's/.*"variant":"\([^"]*\)","flow":"\([^"]*\)","metric":"'"$1"'",.*"value":\([0-9.]*\)}$/'"$1"' \3 \1 \2/p' "$port"
}

# In the order of addresses each block follows the symbol that it belongs to. Addresses of the kernel
# have 16 digits; what is shorter is the application's.
in_order() {
	{
		sed -n 's/^sym \([0-9a-f]*\) /\1 0 /p' "$port"
		awk 'length($2) == 16 { print $2, 1, $1, $3; next } { print "0", 1, $1, $3 }' "$count"
	} | LC_ALL=C sort -k1,2
}

{
	records part
	records units
	in_order
} | awk -v scenario="$(sed -n 's/^{"scenario":"\([^"]*\)".*/\1/p;T;q' "$port")" '
	$1 == "part" { variant[$2] = $3; flow[$2] = $4; parts[++n] = $2; next }
	$1 == "units" { units[$3 " " $4] = $2; next }
	$2 == 0 { name = $3; module = $4; next }
	$3 in variant {
		part = $3
		all[part] += $4
		algorithm = variant[part]
		sub(/-.*/, "", algorithm)
		if (module == "[tcp_" algorithm "]") {
			own[part] += $4
			short = name
			if (match(name, /E[0-9]+[a-z_]+B[0-9a-zA-Z]*_$/)) {
				short = substr(name, RSTART + 1)
				gsub(/^[0-9]+|B[0-9a-zA-Z]*_$/, "", short)
			}
			of[part, short] += $4
			functions[short]
		}
		if ($1 != 0 && (module == "[tcp_" algorithm "]" || name ~ /^(__)?tcp_/))
			tcp[part] += $4
	}
	function record(part, metric, insns) {
		printf "{\"scenario\":\"%s\",\"variant\":\"%s\",\"flow\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\",\"value\":%.1f}\n",
			scenario, variant[part], flow[part], metric, metric ~ /:/ ? "instructions" : "count", each(part, insns)
	}
	function each(part, insns) { return insns / units[variant[part] " " flow[part]] }
	# Its functions of at least one instruction a unit, largest first.
	function largest(part,    text, short, best) {
		while (1) {
			best = ""
			for (short in functions)
				if (!((part, short) in told) && each(part, of[part, short]) >= 1 && (best == "" || of[part, short] > of[part, best]))
					best = short
			if (best == "")
				return text
			told[part, best]
			text = text (text == "" ? "" : ", ") best " " sprintf("%.0f", each(part, of[part, best]))
		}
	}
	END {
		for (i = 1; i <= n; i++)
			part_of[variant[parts[i]], flow[parts[i]]] = parts[i]
		for (i = 1; i <= n; i++) {
			part = parts[i]
			if (variant[part] != "dctcp_floor")
				continue
			stock = part_of["dctcp", flow[part]]
			text = text sprintf("%s%s %.0f (dctcp %.0f) of %.0f in TCP and %.0f in all", text == "" ? "" : "; ", flow[part],
				each(part, own[part]), each(stock, own[stock]), each(part, tcp[part]), each(part, all[part]))
			if (flow[part] ~ /^rpc/ && functions_of == "")
				functions_of = sprintf(" In %s: %s; dctcp: %s.", flow[part], largest(part), largest(stock))
		}
		if (text != "")
			printf "{\"scenario\":\"%s\",\"variant\":\"-\",\"flow\":\"-\",\"metric\":\"note\",\"unit\":\"text\",\"value\":\"%s\"}\n",
				scenario, "counted one by one, the own instructions of dctcp_floor, for a segment or an RPC: " text "." functions_of
		for (i = 1; i <= n; i++) {
			part = parts[i]
			record(part, "all", all[part])
			record(part, "tcp", tcp[part])
			record(part, "own", own[part])
			for (short in functions)
				if (of[part, short] >= units[variant[part] " " flow[part]] / 10)
					record(part, "own:" short, of[part, short])
		}
	}' | LC_ALL=C sort
