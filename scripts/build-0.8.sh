#!/usr/bin/env bash
# Builds one app into one bootable image of ax-task 0.8. Called by make (scripts/arceos-0.8.mk).
# In:  environment: see BUILD in scripts/arceos-0.8.mk
# Out: as of scripts/build.sh
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$KERNEL_DIR" "${IMAGE%/*}"
exec 9>"$KERNEL_DIR/.lock"
flock -n 9 || { echo "build: waiting for another build in ${KERNEL_DIR#"$PWD"/}"; flock 9; }

verbose=()
case $V in 1) verbose=(-v) ;; 2) verbose=(-vv) ;; esac
flags='-C relocation-model=pic -C link-args=-pie -C link-args=--gc-sections -C link-args=-znorelro'
flags+=' -C link-args=-znotext -C link-args=-znostart-stop-gc -C link-args=-Tlinker.x -C link-args=-u_head'
flags+=" -C link-args=--no-relax${LINKER:+ -C linker=$LINKER}"
unset CARGO_ENCODED_RUSTFLAGS
# RUSTC_BOOTSTRAP: ArceOS uses unstable features of the language. BUILD_STD is several words.
# shellcheck disable=SC2086
CARGO_TARGET_DIR=$KERNEL_DIR RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags \
    "$CARGO" build --locked --manifest-path arceos-0.8/Cargo.toml "${verbose[@]}" --package "$APP" \
    --release --target "$AX_TARGET" $BUILD_STD --features "$CARGO_FEATURES"

elf=$KERNEL_DIR/$AX_TARGET/release/$APP
new=$IMAGE.new
"$OBJCOPY" --strip-all -O binary "$elf" "$new"
if cmp -s "$new" "$IMAGE"; then rm "$new"; else mv "$new" "$IMAGE"; fi
{
    echo "image-0.8 $APP"
    # The workspace has links to the tree.
    scripts/sources.sh "$elf.d" | sed -E 's,^arceos-0.8/(apps|modules)/,\1/,' | LC_ALL=C sort -u
} >"$IMAGE.sources"
