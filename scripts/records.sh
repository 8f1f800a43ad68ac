#!/bin/bash
# Measure all records that Temper's claims stand on, and write what they show.
#
#   scripts/records.sh FOLDER [SCALE]
#
# Can be interrupted and run again: what is recorded for the same plan, kernel, guest and scheduler is
# skipped. SCALE shortens the windows (0.1: a tenth), to try the way, not to measure.
# Costs and some ladders are measured beside the schedulers of others: 'make peers' first.
set -euo pipefail

if [ $# -lt 1 ]; then
	echo "usage: scripts/records.sh FOLDER [SCALE]" >&2
	exit 2
fi
readonly out=$1 scale=${2:-1} lab=$(dirname "$0")/../bin/temper-lab
readonly jobs=${JOBS:-2}

# An A/A study needs one arm twice. No scheduler is in its guest, so it outlives changes to it.
readonly stock=cpuidle,cpuidle all=eevdf,cpuidle,temper peers=temper,cpuidle,layered,lavd warm_up=3
readonly bursts=stock,burst,none,temper,temper-burst
readonly beclass=weight-1,weight-10,weight-100,weight-1000,weight-10000,sched-idle,cpuidle,fifo,eevdf,temper

# What to measure: host minutes on one CPU, about; folder; seeds; guest seconds of a window; the study's
# arguments. Each window holds ten requests or more beyond its p99.
plans() {
	echo "15 ladders 1-3 12 chain --cpus 2 --arms $all"
	echo "14 ladders 1-3 3 memcached --cpus 2 --load 0.5 --arms $all"
	echo "22 aa 1-10 6 chain --cpus 2 --arms $stock"
	echo "20 aa 1-10 2 memcached --cpus 2 --load 0.5 --arms $stock"
	for load in 0.2 0.8; do
		echo "14 ladders 1-3 3 memcached --cpus 2 --load $load --arms $all"
	done
	echo "16 ladders 1-3 6 chain --cpus 4 --arms $all"
	for load in 0.5 0.2 0.8; do
		echo "28 ladders 1-3 2 memcached --cpus 4 --load $load --arms $all"
	done
	echo "15 ladders 1 6 chain --cpus 8 --arms $all"
	for load in 0.5 0.8; do
		echo "20 ladders 1 2 memcached --cpus 8 --load $load --arms $all"
	done
	echo "20 peers 1 12 chain --cpus 2 --arms $peers"
	echo "20 peers 1 6 chain --cpus 4 --arms $peers"
	for load in 0.5 0.8; do
		echo "20 peers 1 3 memcached --cpus 2 --load $load --arms $peers"
		echo "25 peers 1 2 memcached --cpus 4 --load $load --arms $peers"
	done
	for load in 1 0.5; do
		echo "10 beclass 1 2 web --cpus 4 --load $load --warm-up 2 --arms $beclass"
	done
}

clock() { printf '%d:%02d h' $(($1 / 3600)) $(($1 % 3600 / 60)); }

scaled() { awk "BEGIN { print $1 * $scale }"; }

total=0 count=0
while read -r cost _; do
	total=$((total + cost)) count=$((count + 1))
done < <(plans)

n=0 measured=0 spent=0 # CPU minutes as estimated, real seconds as they were
left=$total
while read -r cost folder seeds window study; do
	n=$((n + 1))
	if [ "$measured" -gt 0 ]; then
		time_left=$((left * spent / measured))
	else
		time_left=$(awk "BEGIN { print int($left * 60 * $scale / $jobs) }")
	fi
	echo "plan $n of $count · about $(clock "$time_left") left · $study, seeds $seeds" >&2
	began=$SECONDS
	# shellcheck disable=SC2086 # a list of words
	"$lab" study --seeds "$seeds" --seconds "$(scaled "$window")" --warm-up "$(scaled "$warm_up")" --jobs "$jobs" --out "$out/$folder" $study </dev/null
	took=$((SECONDS - began))
	# A plan that was recorded earlier takes a blink, and says nothing about speed.
	if [ "$took" -gt 5 ]; then
		measured=$((measured + cost)) spent=$((spent + took))
	fi
	left=$((left - cost))
done < <(plans)

# What is counted, or seen from outside, has one record a plan.
record() { # FILE, then the arguments of 'temper-lab'
	[ ! -f "$out/$1" ] || return 0
	echo "$1 · temper-lab ${*:2}" >&2
	mkdir -p "$(dirname "$out/$1")"
	"$lab" "${@:2}" --json "$out/$1" </dev/null
}
record cost/2cpu-peers.json cost --cpus 2 --arms eevdf,temper,simple,layered,lavd
for cpus in 2 4 8 16; do
	record "cost/${cpus}cpu.json" cost --cpus "$cpus" --arms eevdf,temper
done
record observed/chain-2cpu.json observe chain --steps 1,2,4,8 --seconds "$(scaled 2)" --warm-up 2
record observed/memcached-2cpu-load50.json observe memcached --load 0.5 --steps 1,2,4,8 --seconds "$(scaled 1)" --warm-up 2
record observed/memcached-2cpu-load50-bursty.json observe memcached --load 0.5 --bursty --arms temper --steps 1,8 --seconds "$(scaled 1)" --warm-up 2
record ladders/memcached-2cpu-load50-bursty-seed1.json ladder memcached --load 0.5 --bursty --steps 0,1,8 --seconds "$(scaled 4)"
limits() { # NAME of the record, arms, steps, guest seconds of a window, then SERVICE and what else there is
	record "limits/$1.json" limits "${@:5}" --arms "$2" --steps "$3" --seconds "$(scaled "$4")" --warm-up 2
}
limits go "$bursts" 0,2,4,8 4 go
limits postgres stock,none,temper 0,4,8 4 postgres
for service in go postgres; do
	limits "$service-modes" stock,short,temper,temper-freeze 0 3 "$service"
done
limits mariadb "$bursts" 0,4,8 4 mariadb
limits jvm "$bursts" 0,8 4 jvm
limits jvm-modes stock,short,temper,temper-freeze 8 3 jvm
for service in postgres mariadb; do
	limits "$service-16" stock,temper 0,8 4 "$service" --clients 16
done

aa=$(printf '%s,' "$out"/aa/*.json)
# Renamed when complete, so that an interrupted report is not taken for one.
trap 'rm -f "$out/.bars.txt"' EXIT
"$lab" bench report "$out"/ladders/*.json "$out"/beclass/*.json --bars --aa "${aa%,}" --html "$out/report.html" >"$out/.bars.txt"
mv "$out/.bars.txt" "$out/bars.txt"
tail -n 1 "$out/bars.txt"
