#!/usr/bin/env bash
# Fuzzes the only input from outside, the stored profile: libFuzzer on modules/axsched-ext/fuzz.
# The compiler's own coverage pass is switched on
# by hand, as cargo-fuzz would with a nightly compiler, so that this needs none.
# In:  $1: the limit in minutes; target/toolchain.mk, which `make setup` writes: the compiler
# Out: target/fuzz/corpus, inputs that reach new code, with which the next run continues;
#      exit 0 if every input was refused or valid, or 1, and the bytes in target/fuzz/found
set -euo pipefail
cd "$(dirname "$0")/.."
unset CARGO_TARGET_DIR # it says itself where
minutes=${1:-}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || {
    echo "fuzz: limit \"$minutes\": allowed is a whole number of minutes from 1 on, as scripts/fuzz.sh 60" >&2
    exit 1
}
scripts/setup.sh --quiet
tool() { sed -n "s/^$1 := //p" target/toolchain.mk; }
CARGO=$(tool HOST_CARGO) RUSTC=$(tool HOST_RUSTC)
crate=modules/axsched-ext/fuzz
host=$("$RUSTC" -vV | sed -n 's/^host: //p')
compiler=${CXX:-c++}
if ! command -v "$compiler" >/dev/null; then
    echo "fuzz: no C++ compiler, $compiler, of which libFuzzer is made; install one, as Debian's g++" >&2
    exit 1
fi
flags=(--cfg fuzzing -Cpasses=sancov-module)
for flag in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$flag")
done
mkdir -p target/fuzz/corpus target/fuzz/found
# A target of its own: the flags are not for what runs while it is built.
RUSTFLAGS="${flags[*]}" RUSTC="$RUSTC" "$CARGO" build --quiet --locked --release \
    --manifest-path "$crate/Cargo.toml" --target "$host" --target-dir target/fuzz
log=target/fuzz/log
if ! "target/fuzz/$host/release/profile_decode" -max_total_time=$((minutes * 60)) \
    -artifact_prefix=target/fuzz/found/ -print_final_stats=1 \
    target/fuzz/corpus modules/axsched-ext/tests/data >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "fuzz: found something; the bytes are in target/fuzz/found (log: $log)" >&2
    exit 1
fi
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
echo "fuzz: $runs runs in $minutes min, nothing found"
