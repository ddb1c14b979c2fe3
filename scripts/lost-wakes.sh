#!/usr/bin/env bash
# Tries a million random schedules of threads that wake, cancel, join and serve coroutines: Shuttle,
# on modules/axcoop. The same scenarios with the seeds' order of steps must find a lost wake.
# In:  environment: CARGO RUSTC WHERE (the host's), AXCOOP_SCHEDULES (1000000)
# Out: target/lost-wakes.log
#      a line for each scenario, with the number of schedules, then one for the faulty copy;
#      exit 0, or 1 and the schedule that failed
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:?}" "${RUSTC:?}" "${WHERE:?}"
log=target/lost-wakes.log
mkdir -p target
export AXCOOP_SCHEDULES=${AXCOOP_SCHEDULES:-1000000}
if ! RUST_BACKTRACE=0 "$CARGO" test $WHERE --quiet --profile soak --package axcoop \
    --test lost_wakes --test faulty_lost_wakes -- --nocapture >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "lost-wakes: found something (log: $log)" >&2
    exit 1
fi
sed -n 's/^\.*\(schedules: .* schedules\)$/\1/p' "$log" | awk '
    { print; schedules += $(NF - 1) }
    END { printf "lost-wakes: %d schedules in %d scenarios, nothing found\n", schedules, NR; exit !NR }'
grep -q '^deadlock!' "$log"
echo "lost-wakes: with the seeds' order of steps: $(grep -m 1 '^deadlock!' "$log" | cut -c 1-9), as it should"
