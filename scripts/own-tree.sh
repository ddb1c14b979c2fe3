#!/usr/bin/env bash
# Runs a page's shell blocks in a folder beside this tree, in order, for one architecture. In an empty
# folder it begins with the first block; in a used one with the block that has ARCH=, as the page says.
# In:  $1: the page; $2: where the folder is, made if it is not there; $3: the architecture
#      target/toolchain.mk: the compiler behind the page's `cargo`
# Out: the blocks' output; exit 0, or 1 and a line that names the failed block
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD page=$PWD/$1 arch=$3
fail() { echo "own-tree: $*" >&2; exit 1; }

tool() { sed -n "s/^$1 := //p" "$tree/target/toolchain.mk"; }
mkdir -p "$2/bin" "$2/hello"
cd "$2"
ln -sfn "$tree" axsched-ext
for name in CARGO:cargo RUSTC:rustc OBJCOPY:llvm-objcopy; do
    ln -sf "$(command -v "$(tool "${name%:*}")")" "bin/${name#*:}"
done
PATH=$PWD/bin:$PATH
if [[ -n $(tool BUILD_STD) ]]; then # a compiler without rustup's targets makes them itself
    export CARGO_UNSTABLE_BUILD_STD=core,alloc CARGO_UNSTABLE_BUILD_STD_FEATURES=compiler-builtins-mem
    for target in X86_64_UNKNOWN_NONE RISCV64GC_UNKNOWN_NONE_ELF AARCH64_UNKNOWN_NONE_SOFTFLOAT; do
        export "CARGO_TARGET_${target}_LINKER=$(tool LINKER)"
    done
fi
# Nothing of the make that calls this.
unset RUSTC CARGO CARGO_TARGET_DIR RUSTFLAGS CARGO_ENCODED_RUSTFLAGS

rm -f block-*
awk '/^```$/ { inside = 0 }
    inside { print >block }
    /^```sh$/ { inside = 1; block = sprintf("block-%02d", ++n) }' "$page"
cd hello
machine=$(grep -l '^ARCH=x86_64 ' ../block-* || true)
[[ $(wc -w <<<"$machine") == 1 ]] || fail "$1 must say ARCH=x86_64 in one block, and says it in: $machine"
sed -i "s/^ARCH=x86_64 /ARCH=$arch /" "$machine"

begun=false
[[ ! -e axconfig.toml ]] || begun=true
failed() { # failed BLOCK
    cat ../said
    # The words of cargo for a network that fails.
    if grep -qE 'failed to (download|get|fetch|query)|download of .* failed|network|resolve host' ../said; then
        fail "the crates registry cannot be reached, and a lock file cannot be made without it (${1#../})"
    fi
    fail "${1#../} of the page failed"
}
for block in ../block-*; do
    if $begun && [[ $block < $machine ]]; then continue; fi
    echo "own-tree: ${block#../}"
    trap 'failed "$block"' EXIT
    # In this shell, as a reader's: a block sets variables for those after it.
    # shellcheck disable=SC1090
    . "$block" </dev/null >../said 2>&1
    trap - EXIT
    cat ../said
done
