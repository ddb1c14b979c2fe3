#!/usr/bin/env bash
# Builds one app into one bootable image of the ArceOS of 2026. Called by make (scripts/arceos-0.6.mk).
# In:  environment: see BUILD in scripts/arceos-0.6.mk
# Out: as of scripts/build.sh; target/arceos-0.6/ for an app that the lock file does not know: links to
#      the workspace, and a complete lock file
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$KERNEL_DIR" "${IMAGE%/*}"
exec 9>"$KERNEL_DIR/.lock"
flock -n 9 || { echo "build: waiting for another build in ${KERNEL_DIR#"$PWD"/}"; flock 9; }

workspace=arceos-0.6
if ! grep -qx "name = \"$APP\"" $workspace/Cargo.lock; then
    [[ -z ${CI:-} ]] || { echo "build: $workspace/Cargo.lock does not know $APP; in CI it must: run cargo update --workspace in $workspace" >&2; exit 1; }
    copy=target/$workspace
    mkdir -p $copy
    for entry in Cargo.toml apps modules old-names; do ln -sfn ../../$workspace/$entry $copy/$entry; done
    cp $workspace/Cargo.lock $copy/
    "$CARGO" update --quiet --workspace --manifest-path $copy/Cargo.toml
    workspace=$copy
fi

verbose=()
case $V in 1) verbose=(-v) ;; 2) verbose=(-vv) ;; esac
flags='-C relocation-model=pic -C link-args=-pie -C link-args=--gc-sections -C link-args=-znorelro'
flags+=' -C link-args=-znotext -C link-args=-znostart-stop-gc -C link-args=-Tlinker.x -C link-args=-u_head'
flags+="${LINKER:+ -C linker=$LINKER} --cfg arceos=\"0.6\""
# The linker would shorten calls by what it knows of the addresses, and a PIE has none.
[[ $AX_TARGET != riscv64* ]] || flags+=' -C link-args=--no-relax'
unset CARGO_ENCODED_RUSTFLAGS
# An app asks whether these are set, and an empty one is.
for name in SELFTEST SCHED_YIELDS; do [[ -n ${!name} ]] || unset "$name"; done
# RUSTC_BOOTSTRAP: ArceOS uses unstable features of the language. BUILD_STD is several words.
# shellcheck disable=SC2086
CARGO_TARGET_DIR=$KERNEL_DIR RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags \
    "$CARGO" build --locked --manifest-path $workspace/Cargo.toml "${verbose[@]}" --package "$APP" \
    --profile "$AX_MODE" --target "$AX_TARGET" $BUILD_STD --features "$CARGO_FEATURES"

elf=$KERNEL_DIR/$AX_TARGET/$AX_MODE/$APP
new=$IMAGE.new
"$OBJCOPY" --strip-all -O binary "$elf" "$new"
if cmp -s "$new" "$IMAGE"; then rm "$new"; else mv "$new" "$IMAGE"; fi
{
    echo "image-0.6 $APP"
    # The workspace has links to the tree.
    scripts/sources.sh "$elf.d" | sed -E 's,^(target/)?arceos-0.6/(apps|modules)/,\2/,' | LC_ALL=C sort -u
} >"$IMAGE.sources"
