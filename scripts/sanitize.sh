#!/usr/bin/env bash
# Runs the executor's tests under the address and the thread sanitizer, if the toolchain has them.
# In:  environment: CARGO RUSTC WHERE (the host's)
# Out: target/sanitize/  the builds, and their logs
#      a line for each sanitizer; exit 0, or 1 and the failure
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:?}" "${RUSTC:?}" "${WHERE:?}"
out=target/sanitize
mkdir -p "$out"
host=$("$RUSTC" -vV | sed -n 's/^host: //p')
# The standard library is not instrumented: the thread sanitizer sees only its system calls, and takes
# what std synchronises by its own atomics for races of the test.
suppressions=$PWD/$out/suppressions
printf '%s\n' 'race:std::' 'race:alloc::sync::' 'race:core::ptr::drop_in_place*Arc' >"$suppressions"
for sanitizer in address thread; do
    log=$out/$sanitizer.log
    if ! RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0 \
        RUSTFLAGS="-Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer" \
        ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="suppressions=$suppressions" \
        "$CARGO" test $WHERE --quiet --target "$host" --target-dir "$out" --package axcoop \
        --lib --test threads >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        echo "sanitize: $sanitizer: found something (log: $log)" >&2
        exit 1
    fi
    awk -v of="$sanitizer" '/^test result: ok/ { n += $4 }
        END { printf "sanitize: %s: %d tests, nothing found\n", of, n; exit !n }' "$log"
done
