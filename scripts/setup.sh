#!/usr/bin/env bash
# Makes sure that everything `make` needs is on this machine, and writes down
# where it is. Does nothing, quickly, when nothing is missing.
#
#   scripts/setup.sh           install what is missing (says what, first)
#   scripts/setup.sh --quiet   the same, silent when nothing is missing (make)
#   scripts/setup.sh --check   only report; exit 1 if something is missing
#   scripts/setup.sh --test    any of these, with valgrind, which make test needs
#   scripts/setup.sh --bench   as --test, with what only make cost A=host needs
#
# In:   TOOLCHAIN=prebuilt|build-std   optional: insist on one of the two ways
# Out:  target/toolchain.mk            which compiler, linker, objcopy to use
#       target/tools/                  tools that no distribution packages
#
# The bare-metal targets can be had in two ways:
#   prebuilt    rustup has core and alloc compiled for all three targets
#   build-std   any compiler that comes with its library's source compiles them
#               itself; distributions package such a one, so this way needs
#               nothing from the Rust release server
set -euo pipefail
cd "$(dirname "$0")/.."

readonly MIN_RUST=1.88.0
readonly AXCONFIG_GEN_VERSION=0.2.1
# The harness of make cost A=host and its runner must be of one version.
GUNGRAUN_VERSION=$(sed -n '/^name = "gungraun"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)
readonly GUNGRAUN_VERSION
readonly TARGETS=(x86_64-unknown-none riscv64gc-unknown-none-elf aarch64-unknown-none-softfloat)
readonly OUT=target/toolchain.mk TOOLS=target/tools
# Written when rustup could not fetch the targets, so that an offline machine
# does not ask again at every make. Holds the compiler's version: a new
# compiler is asked once more.
readonly NO_TARGETS=$TOOLS/rustup-has-no-targets

check=false quiet=false valgrind=false bench=false
for arg; do
    case $arg in
        --check) check=true ;;
        --quiet) quiet=true ;;
        --test) valgrind=true ;;
        --bench) valgrind=true bench=true ;;
        *) echo "setup: unknown option $arg (known: --check --quiet --test --bench)" >&2; exit 2 ;;
    esac
done
say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# --- The programs of this machine --------------------------------------------

version_ok() { # a version >= MIN_RUST
    [[ -n $1 ]] && printf '%s\n' "$MIN_RUST" "$1" | sort -V -C
}
rust_ok() { # rustc and cargo work and are new enough
    has "$1" && has "$2" || return 1
    version_ok "$("$1" --version 2>/dev/null | awk '{print $2}')" &&
        version_ok "$("$2" --version 2>/dev/null | awk '{print $2}')"
}
newest() { # commands PREFIX-<version>, newest first
    compgen -c "$1-" | grep -E "^$1-[0-9.]+\$" | sort -rVu || true
}

find_prebuilt() {
    local sysroot t
    rust_ok rustc cargo || return 1
    sysroot=$(rustc --print sysroot)
    for t in "${TARGETS[@]}"; do [[ -d $sysroot/lib/rustlib/$t/lib ]] || return 1; done
    # rustc finds its own linker here, under the name the targets ask for.
    compgen -G "$sysroot/lib/rustlib/*/bin/rust-lld" >/dev/null || return 1
    way=prebuilt rustc=rustc cargo=cargo
}
find_build_std() {
    local pair
    # The distribution's own compiler often hides behind rustup's on PATH.
    for pair in /usr/bin/rustc:/usr/bin/cargo rustc:cargo \
        $(newest rustc | sed 's/rustc\(.*\)/rustc\1:cargo\1/'); do
        rust_ok "${pair%:*}" "${pair#*:}" || continue
        [[ -f $("${pair%:*}" --print sysroot)/lib/rustlib/src/rust/library/core/Cargo.toml ]] || continue
        way=build-std rustc=${pair%:*} cargo=${pair#*:}
        return
    done
    return 1
}
first_of() { # COMMANDS: prints where the first is that is there
    local c
    for c; do if [[ -n $c ]] && command -v "$c"; then return; fi; done
    return 1
}
# build-std only: prebuilt brings its own
find_linker() { linker=$(first_of ld.lld $(newest ld.lld) "$(rustup_bin gcc-ld/ld.lld)"); }
find_objcopy() { objcopy=$(first_of llvm-objcopy $(newest llvm-objcopy) rust-objcopy "$(rustup_bin rust-objcopy)"); }
rustup_bin() { # a tool inside the toolchain on PATH
    if has rustc; then compgen -G "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/*/bin/$1" | head -1 || true; fi
}
find_tool() { # NAME VERSION: prints where it is
    local c
    for c in "$PWD/$TOOLS/bin/$1" "$1"; do
        if has "$c" && [[ $("$c" --version) == *" $2" ]]; then
            command -v "$c"
            return
        fi
    done
    return 1
}
find_axconfig_gen() { axconfig_gen=$(find_tool axconfig-gen "$AXCONFIG_GEN_VERSION"); }
find_gungraun_runner() { gungraun_runner=$(find_tool gungraun-runner "$GUNGRAUN_VERSION"); }
riscv_firmware() { # `-bios default`, which some distributions package apart
    local dir
    dir=$(dirname "$(command -v qemu-system-riscv64)")/../share/qemu
    [[ -e $dir/opensbi-riscv64-generic-fw_dynamic.bin ]]
}

# Fills `missing` (what, for people) and `packages` (apt's names for it).
look() {
    missing=() packages=()
    way='' rustc='' cargo='' linker='' objcopy='' axconfig_gen='' gungraun_runner=''
    want() { missing+=("$1"); shift; packages+=("$@"); }

    case ${TOOLCHAIN:-} in
        prebuilt) find_prebuilt || true ;;
        build-std) find_build_std || true ;;
        '') find_prebuilt || find_build_std || true ;;
        *) die "TOOLCHAIN=$TOOLCHAIN: allowed are prebuilt, build-std" ;;
    esac
    if [[ -z $way ]]; then
        # shellcheck disable=SC2046  # one word per package
        want "Rust >= ${MIN_RUST%.0} for ${TARGETS[*]}" $(rust_packages)
    fi
    if [[ $way != prebuilt ]]; then find_linker || want "ld.lld" "$(lld_package)"; fi
    find_objcopy || want "llvm-objcopy" llvm
    has qemu-system-x86_64 || want "qemu-system-x86_64" qemu-system-x86
    has qemu-system-aarch64 || want "qemu-system-aarch64" qemu-system-arm
    if ! has qemu-system-riscv64; then
        want "qemu-system-riscv64" "$(first_known qemu-system-riscv qemu-system-misc)"
    elif ! riscv_firmware; then
        want "OpenSBI for qemu-system-riscv64" opensbi
    fi
    # crt1.o: gcc without the C library's start files cannot link a program.
    if ! has cc || [[ $(cc -print-file-name=crt1.o) != */* ]]; then want "a C compiler (cc)" gcc libc6-dev; fi
    has make || want "make" make
    if ! PATH=$PATH:/usr/sbin:/sbin has mkfs.fat; then want "mkfs.fat" dosfstools; fi
    has mmd || want "mmd" mtools
    scripts/uefi.sh --check || want "UEFI firmware for the PC" ovmf
    if $valgrind; then has valgrind || want "valgrind" valgrind; fi
    if has apt-get && [[ ! -e /etc/ssl/certs/ca-certificates.crt ]]; then
        want "CA certificates" ca-certificates
    fi

    # The user's own cargo runs the host's tests where it can.
    if rust_ok rustc cargo; then host_rustc=rustc host_cargo=cargo
    else host_rustc=$rustc host_cargo=$cargo; fi
}

# --- Their packages in apt ---------------------------------------------------

candidate() { # the version apt would install, without its epoch; or nothing
    apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { sub(/^[0-9]+:/, "", $2); print $2 }'
}
first_known() { # the first of the packages that apt has; else the last named
    local p
    for p; do if [[ -n $(candidate "$p") ]]; then break; fi; done
    echo "$p"
}
lld_package() { # the newest, as Debian 12's plain `lld` is old
    { apt-cache pkgnames lld 2>/dev/null || true; } | grep -E '^lld(-[0-9]+)?$' | sort -rV | head -1 | grep . || echo lld
}
rust_packages() { # Debian: rustc-web or rustc; Ubuntu: rustc-1.NN
    local p names
    names=$( { apt-cache pkgnames rustc-1. 2>/dev/null || true; } | grep -E '^rustc-1\.[0-9]+$' | sort -rV || true)
    for p in rustc-web $names rustc; do
        version_ok "$(candidate "$p")" || continue
        case $p in
            rustc) echo rustc cargo rust-src ;;
            *) echo "$p" "cargo-${p#rustc-}" "rust-${p#rustc-}-src" ;;
        esac
        return
    done
}

# --- Doing it ---------------------------------------------------------------

if [[ $(id -u) == 0 ]]; then sudo=(); else sudo=(sudo); fi
install=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends)

try_rustup() {
    [[ ${TOOLCHAIN:-} != build-std ]] && has rustup && rust_ok rustc cargo || return 1
    [[ $(cat "$NO_TARGETS" 2>/dev/null) != "$(rustc --version)" ]] || return 1
    say "will run: rustup target add ${TARGETS[*]}"
    if ! rustup target add "${TARGETS[@]}"; then
        mkdir -p "$TOOLS"
        rustc --version >"$NO_TARGETS"
        say "rustup cannot install the targets; using the distribution's compiler instead"
        return 1
    fi
}

advise() { # for systems whose packages this script does not know
    cat <<END
setup: missing: $1
setup: please install, in whatever way this system has:
  - Rust >= ${MIN_RUST%.0}: rustup, then 'rustup target add ${TARGETS[*]}'
    or a packaged rustc and cargo with the library's source (rust-src)
  - LLVM's ld.lld (not needed with rustup) and llvm-objcopy
  - QEMU: qemu-system-x86_64, qemu-system-riscv64 (with OpenSBI), qemu-system-aarch64
  - a C compiler (cc) and make
  - mkfs.fat (dosfstools) and mmd (mtools)
  - UEFI firmware for QEMU's PC (ovmf), for make ARCEOS=0.6
  - valgrind, for make cost A=host and make test
END
    exit 1
}
list() { local s; printf -v s ", %s" "${missing[@]}"; echo "${s:2}"; }
no_rust() { # apt was asked for Rust and has none that is new enough
    [[ -z $way && -z $(rust_packages) ]]
}

look
if $check; then
    find_axconfig_gen || missing+=("axconfig-gen $AXCONFIG_GEN_VERSION")
    if $bench; then find_gungraun_runner || missing+=("gungraun-runner $GUNGRAUN_VERSION"); fi
    if [[ ${#missing[@]} == 0 ]]; then
        say "nothing is missing (Rust: $way, $("$rustc" --version))"
        exit 0
    fi
    say "missing: $(list)"
    say "scripts/setup.sh installs it${packages:+, by: apt-get install ${packages[*]}}"
    exit 1
fi

if [[ -z $way ]] && try_rustup; then look; fi
if [[ ${#missing[@]} != 0 ]]; then
    has apt-get || advise "$(list)"
    [[ ${#sudo[@]} == 0 ]] || has sudo ||
        die "missing: $(list); neither root nor sudo here: run as root: apt-get install ${packages[*]}"
    say "missing: $(list)"
    say "will run: apt-get update"
    "${sudo[@]}" apt-get update -qq
    # Twice, because only an installed QEMU tells whether its firmware came along.
    for _ in 1 2; do
        look
        [[ ${#missing[@]} != 0 ]] || break
        if no_rust; then
            die "no packaged Rust >= ${MIN_RUST%.0} here; install rustup, then run: rustup target add ${TARGETS[*]}"
        fi
        say "will run: apt-get install --no-install-recommends ${packages[*]}"
        "${install[@]}" -qq "${packages[@]}"
    done
    look
    [[ ${#missing[@]} == 0 ]] || advise "$(list)"
fi

# No distribution packages these. They read and write a few lines: without optimisation they take half
# the time to build, and are as fast.
cargo_install() { # NAME VERSION
    say "will run: cargo install $1@$2 (into $TOOLS; takes some minutes, without output)"
    local said
    said=$(CARGO_PROFILE_RELEASE_OPT_LEVEL=0 RUSTC=$host_rustc CARGO_TARGET_DIR=$TOOLS/build "$host_cargo" install --quiet --locked \
        --version "$2" --root "$TOOLS" "$1" 2>&1) ||
        die "$1 $2 could not be built: cargo install ended with status $? and said: ${said:-nothing}"
    rm -rf "$TOOLS/build"
}
if ! find_axconfig_gen; then
    cargo_install axconfig-gen "$AXCONFIG_GEN_VERSION"
    find_axconfig_gen || die "axconfig-gen $AXCONFIG_GEN_VERSION could not be built"
fi
if ! find_gungraun_runner && $bench; then
    cargo_install gungraun-runner "$GUNGRAUN_VERSION"
    find_gungraun_runner || die "gungraun-runner $GUNGRAUN_VERSION could not be built"
fi

# Replaced only when it changed: make starts over whenever this file is newer.
# Under a name of this process, since several makes may be here at once.
mkdir -p target
cat >"$OUT.$$" <<END
# Written by scripts/setup.sh; edit that instead.
TOOLCHAIN_WAY := $way
CARGO := $cargo
RUSTC := $rustc
BUILD_STD := $([[ $way == prebuilt ]] || echo "-Z build-std=core,alloc -Z build-std-features=compiler-builtins-mem")
LINKER := $linker
OBJCOPY := $objcopy
AXCONFIG_GEN := $axconfig_gen
GUNGRAUN_RUNNER := $gungraun_runner
HOST_CARGO := $host_cargo
HOST_RUSTC := $host_rustc
END
if cmp -s "$OUT.$$" "$OUT"; then rm "$OUT.$$"; else mv "$OUT.$$" "$OUT"; fi
$quiet || say "nothing is missing (Rust: $way, $("$rustc" --version))"
