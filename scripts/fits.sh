#!/usr/bin/env bash
# Refuses an image that ends beyond the guest's memory, where QEMU or the guest would stop
# without a word. Called by scripts/build.sh.
# In:  $1 the ELF file, $2 ArceOS's configuration, $3 MEM
# Out: exit 0, or 1 and one line that says what was given and what is allowed
set -euo pipefail
elf=$1 config=$2 memory=$3

case $memory in *G) bytes=$((${memory%G} << 30)) ;; *M) bytes=$((${memory%M} << 20)) ;; esac
setting() { sed -n "s/^$1 *= *\"\{0,1\}\([0-9][0-9a-fA-Fx_]*\).*/\1/p" "$config" | tr -d _ | head -1; }
# Where memory begins, as the kernel sees it. Numbers of 64 bits wrap, differences do not.
begin=$(($(setting phys-virt-offset) + $(setting phys-memory-base)))

field() { echo $((16#$(od -An -v --endian=little -tx"$2" -j"$1" -N"$2" "$elf" | tr -d ' '))); }
table=$(field 32 8) size=$(field 54 2) end=0
for ((i = $(field 56 2); i-- > 0; )); do
    at=$((table + i * size))
    [[ $(field $at 4) == 1 ]] || continue # of type LOAD: its address, and its size there
    last=$(($(field $((at + 24)) 8) + $(field $((at + 40)) 8) - begin))
    ((last <= end)) || end=$last
done
((end > 0)) || { echo "build: $elf: no ELF file with something to load" >&2; exit 1; }
((end <= bytes)) || {
    echo "MEM=$memory: the image ends $(((end + (1 << 20) - 1) >> 20))M into memory; allowed is more than that, for the program's own" >&2
    exit 1
}
