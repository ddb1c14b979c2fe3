#!/usr/bin/env bash
# Lints everything; warnings are errors.
# In:  environment: CARGO RUSTC WHERE (the host's), POLICIES (scripts/features.mk)
# Out: exit 0, or clippy's complaints and 1
set -euo pipefail
cd "$(dirname "$0")/.."
"$CARGO" clippy --version >/dev/null 2>&1 || {
    echo "clippy: $CARGO has no clippy; with rustup: rustup component add clippy" >&2
    exit 1
}
lint() { "$CARGO" clippy --quiet $WHERE "$@" -- -D warnings; }

# The policies are mutually exclusive, so each is a separate build. The shim is linted
# along the way, as a member of the workspace that the apps depend on.
packages=()
for manifest in apps/*/*/Cargo.toml; do
    packages+=(--package "$(sed -n '/^\[package\]/,/^\[[^p]/s/^name *= *"\(.*\)".*/\1/p' "$manifest")")
done
echo "clippy: the library and its tests"
lint --package sched-core --package sched-policies --package sched-smp --package sched-model --package pbg-profile \
    --package pbg-record --package pbg --package delegated --package axsched-ext --features axsched-ext/std --all-targets
echo "clippy: the policy outside the workspace"
"$CARGO" clippy --quiet --locked --manifest-path examples/pace/Cargo.toml --workspace --all-targets -- -D warnings
"$CARGO" metadata --locked --format-version 1 --manifest-path modules/axsched-ext/fuzz/Cargo.toml >/dev/null
echo "clippy: the coroutines"
lint --package axcoop --package axcoop-summary --package axcoop-net --package axcoop-fs \
    --features axcoop/std,axcoop-net/embedded-io --all-targets
echo "clippy: the tools and the tests"
lint --package schedlab --package pbg-save --package process-groups --package system-tests --package http-load \
    --package sched-bench --features sched-bench/callgrind --all-targets
for policy in $POLICIES; do
    echo "clippy: the shim and the apps on the host, $policy"
    lint "${packages[@]}" --all-targets --features "$policy"
done

# The apps as kernels, if the toolchain that clippy belongs to has a target for
# it: it need not be the one that builds them.
for target in x86_64-unknown-none riscv64gc-unknown-none-elf aarch64-unknown-none-softfloat; do
    [[ -d $("$RUSTC" --print sysroot)/lib/rustlib/$target/lib ]] || continue
    for policy in $POLICIES; do
        echo "clippy: the apps on $target, $policy"
        RUSTC_BOOTSTRAP=1 lint "${packages[@]}" --features "$policy" --target "$target"
    done
    echo "clippy: the ArceOS of 2026 on $target"
    RUSTC_BOOTSTRAP=1 "$CARGO" clippy --quiet --locked --manifest-path arceos-0.6/Cargo.toml --target "$target" \
        --package ax-sched-arceos --package axstd --package axtask --package axhal -- -D warnings
    [[ $target != riscv64* ]] || RUSTC_BOOTSTRAP=1 "$CARGO" clippy --quiet --locked --manifest-path arceos-0.8/Cargo.toml \
        --target "$target" --package pbg-guest --package limits --package axtask -- -D warnings
    echo "clippy: the apps on $target, traced and recorded"
    for trace in trace events recorded; do
        RUSTC_BOOTSTRAP=1 lint "${packages[@]}" --features sched-tests-common/$trace --target "$target"
    done
    exit
done
echo "clippy: skipped the apps as kernels: $("$RUSTC" --version) has no bare-metal target (rustup target add x86_64-unknown-none)"
