#!/usr/bin/env bash
# Builds one app into one bootable image. Called by make (scripts/kernel.mk).
# In:  environment: see BUILD in scripts/kernel.mk
# Out: $IMAGE (not if it is larger than MEM; touched only when it changed), $KERNEL_DIR/ (cargo's);
#      $IMAGE.sources: the app's package, and the files of this tree that are in the image
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$KERNEL_DIR" "${IMAGE%/*}"
# Two makes may share the folder, and cargo gives every feature set's program
# the same name in it: keep the folder until the copy is made.
exec 9>"$KERNEL_DIR/.lock"
flock -n 9 || { echo "build: waiting for another build in ${KERNEL_DIR#"$PWD"/}"; flock 9; }

config=$KERNEL_DIR/axconfig.toml
scripts/axconfig.sh "$config"

[[ $AX_MODE == release ]] && profile=release || profile=dev
verbose=()
case $V in 1) verbose=(-v) ;; 2) verbose=(-vv) ;; esac
# RUSTFLAGS, not cargo's per-target variable: a RUSTFLAGS that the user has set
# would silently win over that one, and the image would not link.
flags="-C link-arg=-T$KERNEL_DIR/$AX_TARGET/$AX_MODE/linker_$AX_PLATFORM.lds"
flags+=" -C link-arg=-no-pie -C link-arg=-znostart-stop-gc${LINKER:+ -C linker=$LINKER}"
unset CARGO_ENCODED_RUSTFLAGS
# An app asks whether these are set, and an empty one is.
for name in SELFTEST SCHED_YIELDS; do [[ -n ${!name} ]] || unset "$name"; done
# Build scripts and macros, which cargo builds for the host, are half of a first build
# and much the same in every folder: begin with a copy of one in which no make is
# building. Cargo checks each piece.
if [[ ! -d $KERNEL_DIR/$AX_MODE ]]; then
    for other in "${KERNEL_DIR%/*}"/*/"$AX_MODE"; do
        [[ -d $other ]] || continue
        rm -rf "$KERNEL_DIR/$AX_MODE.new"
        flock -n "${other%/*}/.lock" cp -a "$other" "$KERNEL_DIR/$AX_MODE.new" || continue
        mv "$KERNEL_DIR/$AX_MODE.new" "$KERNEL_DIR/$AX_MODE"
        break
    done
fi
# RUSTC_BOOTSTRAP: ArceOS uses unstable features of the language.
# WHERE and BUILD_STD are several words.
# shellcheck disable=SC2086
# AX_IP, AX_GW: the network that QEMU makes for a guest (-netdev user); builds without a network
# ignore them.
AX_IP=10.0.2.15 AX_GW=10.0.2.2 AX_CONFIG_PATH=$config CARGO_TARGET_DIR=$KERNEL_DIR RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags \
    "$CARGO" build $WHERE "${verbose[@]}" --package "$APP" --profile "$profile" \
    --target "$AX_TARGET" $BUILD_STD --features "$CARGO_FEATURES"

elf=$KERNEL_DIR/$AX_TARGET/$AX_MODE/$APP
new=$IMAGE.new
scripts/fits.sh "$elf" "$config" "$MEM"
# x86_64 boots the ELF by multiboot; the others are loaded flat.
if [[ $AX_ARCH == x86_64 ]]; then cp "$elf" "$new"
else "$OBJCOPY" --strip-all -O binary "$elf" "$new"; fi
if cmp -s "$new" "$IMAGE"; then rm "$new"; else mv "$new" "$IMAGE"; fi
{ echo "image $APP"; scripts/sources.sh "$elf.d"; } >"$IMAGE.sources"
