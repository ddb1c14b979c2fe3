#!/usr/bin/env bash
# Searches for faults that an ordinary test meets too rarely. Called by make, with a goal of its own
# for each search.
# In:  $1 the search:
#        interleavings  loom tries every order in which CPUs access shared words without a lock. It
#                       needs a build of its own, with loom's atomics.
#        lost-wakes     Shuttle tries a million random schedules of threads that wake, cancel, join
#                       and serve coroutines. The same scenarios with the seeds' order of steps must
#                       find a lost wake.
#        sanitize       runs the executor's tests under the address and the thread sanitizer, if the
#                       toolchain has them
#      environment: CARGO RUSTC WHERE (the host's);
#        LOOM_MAX_PREEMPTIONS=n of interleavings (all); AXCOOP_SCHEDULES of lost-wakes (1000000)
# Out: target/<search>/  its builds and logs
#      a line for each scenario or sanitizer, and the total; exit 0, or 1 and the failure
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:?}" "${RUSTC:?}" "${WHERE:?}"
search=$1 out=target/$1
mkdir -p "$out"

# try LOG OPTIONS...: runs these tests, and shows the end of the log if they fail
try() {
    local log=$out/$1
    shift
    # WHERE is several words.
    # shellcheck disable=SC2086
    RUST_BACKTRACE=0 "$CARGO" test $WHERE --quiet "$@" >"$log" 2>&1 && return
    tail -n 60 "$log" >&2
    echo "$search: found something (log: $log)" >&2
    exit 1
}
# total WORD UNIT: prints the lines that begin with WORD and end with a number of UNIT, and the sum.
# A line may begin with the dots of the scenarios before.
total() {
    sed -n "s/^\.*\($1: .* $2\)\$/\1/p" "$out/log" | awk -v search="$search" -v unit="$2" '
        { print; sum += $(NF - 1) }
        END { printf "%s: %d %s in %d scenarios, nothing found\n", search, sum, unit, NR; exit !NR }'
}

case $search in
    interleavings)
        RUSTFLAGS='--cfg loom' try log --package sched-smp --package axcoop --package delegated --lib \
            --test interleavings --target-dir "$out" -- interleavings:: --nocapture --test-threads=1
        total interleavings executions ;;
    lost-wakes)
        AXCOOP_SCHEDULES=${AXCOOP_SCHEDULES:-1000000} try log --profile soak --package axcoop \
            --test lost_wakes --test faulty_lost_wakes -- --nocapture
        total schedules schedules
        grep -q '^deadlock!' "$out/log"
        echo "lost-wakes: with the seeds' order of steps: $(grep -m 1 '^deadlock!' "$out/log" | cut -c 1-9), as it should" ;;
    sanitize)
        # The standard library is not instrumented. The thread sanitizer sees only its system calls,
        # and takes what std synchronises by its own atomics for races of the test.
        suppressions=$PWD/$out/suppressions
        printf '%s\n' 'race:std::' 'race:alloc::sync::' 'race:core::ptr::drop_in_place*Arc' >"$suppressions"
        host=$("$RUSTC" -vV | sed -n 's/^host: //p')
        for sanitizer in address thread; do
            RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer" \
                ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="suppressions=$suppressions" \
                try "$sanitizer.log" --target "$host" --target-dir "$out" --package axcoop --lib --test threads
            awk -v of="$sanitizer" '/^test result: ok/ { n += $4 }
                END { printf "sanitize: %s: %d tests, nothing found\n", of, n; exit !n }' "$out/$sanitizer.log"
        done ;;
esac
