# shellcheck shell=bash disable=SC2034 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# repeat: a short run of everything that could differ from one run to the next: interrupts of the
# NIC pair, timers, netem, several connections, the hook with its deadline. virtme/repeat.sh
# compares the records of two runs; nothing is concluded from one.
#
# Control: none. Void: never. Public figures: none.

nic_pair
modprobe sch_netem
on right tc qdisc add dev nic root netem delay 300us limit 10000
rpc_server left
policies bounded >/dev/null
set_sysctl left net.ipv4.tcp_autocork_policy bounded
settle

variant=bounded
rpc right --connect 10.0.0.1 --name reply --conns 4 --rate 2000 --arrivals poisson \
	--duration 300ms --warmup 100ms --sample 1ms --request 100 --reply 3091+5 --nodelay
record reply TCPAutoCorking count "$(counter left TcpExtTCPAutoCorking)"
on left awk '$2 + 0 == $2 { print $1, $2 }' /proc/net/tcp_autocork_policy | while read -r name n; do
	record reply "$name" count "$n"
done
