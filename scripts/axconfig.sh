#!/usr/bin/env bash
# Writes the platform's configuration file for one build (scripts/build.sh).
# In:  $1: the file; environment: AX_ARCH AX_PLATFORM AX_TARGET SMP MEM
#      SCHED_TIMING CARGO WHERE RUSTC HOST_RUSTC AXCONFIG_GEN
# Out: the file, replaced only when its content changes: cargo rebuilds the
#      whole kernel when it is newer
set -euo pipefail
out=$1

# The platform's own file lies in its package, wherever cargo unpacked the
# version that the lock names. Asking cargo takes a while: remember the answer
# for as long as the lock stays the same.
package=axplat-$AX_PLATFORM
memo=target/kernel/$package-$(cksum <Cargo.lock | tr ' ' -)
platform=$(cat "$memo" 2>/dev/null || true)
if [[ ! -f $platform ]]; then
    "$CARGO" fetch $WHERE
    platform=$("$CARGO" metadata $WHERE --offline --format-version 1 |
        grep -o "\"manifest_path\":\"[^\"]*/$package-[^/\"]*/Cargo.toml\"" |
        sed 's/^"manifest_path":"//; s/Cargo.toml"$/axconfig.toml/')
    [[ -f $platform ]] || { echo "build: $package has no axconfig.toml (found: '$platform')" >&2; exit 1; }
    rm -f "target/kernel/$package-"*
    echo "$platform" >"$memo"
fi

# ArceOS's two settings that belong to no platform.
spec=$out.spec
printf 'task-stack-size = 0x40000 # uint\nticks-per-sec = 100 # uint\n' >"$spec"

set -- -w "arch=\"$AX_ARCH\"" -w "plat.max-cpu-num=$SMP"
case $MEM in *G) bytes=$((${MEM%G} << 30)) ;; *M) bytes=$((${MEM%M} << 20)) ;; esac
case $AX_ARCH-$SCHED_TIMING in
    # The PC learns its memory from the firmware. Its clock is the time stamp
    # counter: under icount QEMU counts nanoseconds with it, else it is the host's.
    x86_64-icount) set -- "$@" -w devices.timer-frequency=1000000000 ;;
    x86_64-real) set -- "$@" -w "devices.timer-frequency=$(scripts/tsc-rate.sh)" ;;
    *) set -- "$@" -w "plat.phys-memory-size=$bytes" ;;
esac
"$AXCONFIG_GEN" "$spec" "$platform" "$@" -o "$out.new" >/dev/null
if cmp -s "$out.new" "$out"; then rm "$out.new"; else mv "$out.new" "$out"; fi
