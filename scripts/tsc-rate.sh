#!/usr/bin/env bash
# Prints the rate of this machine's time stamp counter in Hz, to the MHz.
# In:  HOST_RUSTC
# Out: target/tools/tsc-rate-<boot id>   measured once per boot of the host
set -euo pipefail
cd "$(dirname "$0")/.."
memo=target/tools/tsc-rate-$(cat /proc/sys/kernel/random/boot_id)
if [[ ! -s $memo ]]; then
    mkdir -p target/tools
    # Under a name of this process: two first builds may be here at once.
    "$HOST_RUSTC" --edition 2024 -O -o target/tools/tsc-rate.$$ scripts/tsc-rate.rs
    "target/tools/tsc-rate.$$" >"$memo.$$"
    rm "target/tools/tsc-rate.$$"
    mv "$memo.$$" "$memo"
fi
cat "$memo"
