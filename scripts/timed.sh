#!/bin/bash
# Runs tests of build/guest.test on the deterministic machine: timed.sh PATTERN
#
# Such a machine takes one CPU of the host, and no notice of what else it does: so two run at a time,
# each with every other test.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly pattern=${1:?usage: timed.sh PATTERN}
mapfile -t tests < <(build/guest.test -test.list "$pattern")
[ "${#tests[@]}" -ge 2 ] || {
	echo "timed: ${#tests[@]} tests match $pattern; two or more are expected" >&2
	exit 2
}

guest() { # TEST...
	local names
	names=$(IFS='|' && echo "$*")
	timeout 3600 bin/temper-lab exec --timeout 3500s --cpus 3 --deterministic --file /guest.test=build/guest.test -- \
		/guest.test -test.v -test.run "^($names)\$"
}

odd=() even=()
for i in "${!tests[@]}"; do
	if [ $((i % 2)) = 0 ]; then even+=("${tests[i]}"); else odd+=("${tests[i]}"); fi
done
guest "${odd[@]}" >build/timed.log 2>&1 &
other=$!
# An interrupt, or the first to fail, ends both.
trap 'kill "$other" 2>/dev/null || true' EXIT
guest "${even[@]}"
status=0
wait "$other" || status=$?
cat build/timed.log
exit "$status"
