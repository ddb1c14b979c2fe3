#!/usr/bin/env bash
# Writes the documentation of every crate; warnings are errors.
# In:  environment: CARGO RUSTC WHERE (the host's)
# Out: target/doc, target/x86_64-unknown-none/doc; exit 0, or rustdoc's complaints and 1
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTDOCFLAGS='-D warnings'
doc() { "$CARGO" doc --quiet $WHERE --no-deps "$@"; }

# These have most of their items on the bare machine only.
kernel=(axcoop-net axcoop-fs axcoop-arceos axsched-arceos)
doc --workspace "${kernel[@]/#/--exclude=}"
echo "doc: target/doc/axsched_ext/index.html target/doc/axcoop/index.html"
if [[ -d $("$RUSTC" --print sysroot)/lib/rustlib/x86_64-unknown-none/lib ]]; then
    RUSTC_BOOTSTRAP=1 doc --target x86_64-unknown-none "${kernel[@]/#/--package=}" --features axcoop-net/embedded-io
else
    echo "doc: skipped ${kernel[*]}: $("$RUSTC" --version) has no bare-metal target (rustup target add x86_64-unknown-none)"
fi
