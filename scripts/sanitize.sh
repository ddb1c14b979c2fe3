#!/usr/bin/env bash
# The executor's tests under the address and the thread sanitizer, where the toolchain has them.
# In:  environment: CARGO RUSTC WHERE (the host's)
# Out: target/sanitize/  the builds, and their logs
#      a line for each sanitizer; exit 0, or 1 and what was found
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:?}" "${RUSTC:?}" "${WHERE:?}"
out=target/sanitize
mkdir -p "$out"
host=$("$RUSTC" -vV | sed -n 's/^host: //p')
# The standard library is not built for it: of what it does the thread sanitizer sees the calls of
# the system only, so what std synchronises by its own atomics it takes for races of the test's.
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
