#!/usr/bin/env bash
# Explores every order in which CPUs can access shared words without a lock: loom, on
# modules/sched-smp and modules/axcoop. It needs its own build, with loom's atomics.
# In:  environment: CARGO RUSTC WHERE (the host's), LOOM_MAX_PREEMPTIONS=n (of the scheduler's scenarios; all)
# Out: target/interleavings/  that build, and its log
#      a line for each scenario, with the number of executions, then the total;
#      exit 0, or 1 and the failure
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:?}" "${RUSTC:?}" "${WHERE:?}"
out=target/interleavings
mkdir -p "$out"
if ! RUSTFLAGS='--cfg loom' RUSTC="$RUSTC" RUST_BACKTRACE=0 "$CARGO" test $WHERE --quiet \
    --profile mutants --package sched-smp --package axcoop --lib --target-dir "$out" \
    -- interleavings:: --nocapture --test-threads=1 >"$out/log" 2>&1; then
    tail -n 40 "$out/log" >&2
    echo "interleavings: found something (log: $out/log)" >&2
    exit 1
fi
# A line may begin with the dots of the scenarios before.
sed -n 's/^\.*\(interleavings: .* executions\)$/\1/p' "$out/log" | awk '
    { print; executions += $(NF - 1) }
    END { printf "interleavings: %d executions in %d scenarios, nothing found\n", executions, NR; exit !NR }'
