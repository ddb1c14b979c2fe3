#!/usr/bin/env bash
# Makes the lock file of the ArceOS of 2026 anew: the versions of the day when ax-task 0.6.11 was the
# newest. Later versions of crates that take any do not fit together.
# In:  cargo on PATH, a registry
# Out: arceos-0.6/Cargo.lock
set -euo pipefail
cd "$(dirname "$0")/.."
readonly DAY=2026-08-27T14:00:00Z AT=target/lock-0.6
# Without the kit first, because its ax-sched has no date, and a date would exclude it.
rm -rf $AT
mkdir -p $AT/src
: >$AT/src/lib.rs
{
    printf '%s\n' '[workspace]' '[package]' 'name = "lock"' 'version = "0.0.0"' 'edition = "2024"' '[dependencies]'
    printf '%s\n' 'ax-runtime = { version = "=0.11.3", features = ["paging", "smp", "ipi", "rtc"] }' \
        'ax-task = { version = "=0.6.11", features = ["task-ext"] }' 'ax-hal = "=0.6.2"' 'ax-log = "=0.6.0"'
} >$AT/Cargo.toml
RUSTC_BOOTSTRAP=1 cargo -Zunstable-options generate-lockfile --publish-time $DAY --manifest-path $AT/Cargo.toml
# The newest x86_64 needs a newer compiler than Rust 1.95.
cargo update --manifest-path $AT/Cargo.toml x86_64 --precise 0.15.4
# Ours takes the place of ax-sched.
awk -v RS= -v ORS='\n\n' '!/name = "(ax-sched|lock)"/' $AT/Cargo.lock >arceos-0.6/Cargo.lock
cargo update --workspace --manifest-path arceos-0.6/Cargo.toml
