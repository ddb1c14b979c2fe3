#!/usr/bin/env bash
# Refuses dependencies that were yanked or that a security advisory names.
# In:  CARGO; the lock files; cargo-audit, if it is installed
# Out: a line for each lock file or each such dependency, exit 1 if there is one;
#      exit 2 if the registry cannot be asked
#
# Cargo reports yanked versions only when it packs a crate, and only that crate's
# dependencies. So it packs an empty one that depends on all of Cargo.lock.
set -euo pipefail
cd "$(dirname "$0")/.."

audit() { # audit LOCK: packs what depends on all of it
    local at=target/audit yanked
    rm -rf "$at"
    mkdir -p "$at/src"
    : >"$at/src/lib.rs"
    {
        printf '%s\n' '[workspace]' '[package]' 'name = "audit"' 'version = "0.0.0"' \
            'edition = "2024"' 'description = "-"' '[dependencies]'
        awk -F'"' '
            /^name = /    { name = $2 }
            /^version = / { version = $2 }
            /^source = "registry/ {
                printf "d%d = { package = \"%s\", version = \"=%s\", default-features = false }\n", ++n, name, version
            }' "$1"
    } >"$at/Cargo.toml"
    cp "$1" "$at/Cargo.lock"
    if ! "$CARGO" package --no-verify --allow-dirty --manifest-path "$at/Cargo.toml" \
        --target-dir "$at/target" 2>"$at/log"; then
        echo 'audit: the registry could not be asked:' >&2
        cat "$at/log" >&2
        exit 2
    fi
    if yanked=$(grep -o 'package `[^`]*` in Cargo.lock is yanked' "$at/log"); then
        sed "s,Cargo.lock,$1," <<<"$yanked"
        echo 'audit: take another version: cargo update -p NAME@VERSION' >&2
        exit 1
    fi
    echo "audit: $1: $(grep -c '^d[0-9]* = ' "$at/Cargo.toml") dependencies, none yanked"
}
readonly LOCKS=(Cargo.lock arceos-0.6/Cargo.lock arceos-0.8/Cargo.lock modules/axsched-ext/fuzz/Cargo.lock examples/pace/Cargo.lock)
for lock in "${LOCKS[@]}"; do audit "$lock"; done

# The advisories are not in the registry but in a repository of their own.
if command -v cargo-audit >/dev/null; then
    for lock in "${LOCKS[@]}"; do "$CARGO" audit --file "$lock"; done
else
    echo 'audit: not asked for security advisories: cargo install --locked cargo-audit'
fi
