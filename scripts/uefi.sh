#!/usr/bin/env bash
# Makes a UEFI firmware for QEMU's PC out of the installed one. Called by make (scripts/arceos-0.6.mk).
# In:  $1: the firmware to make; or --check
# Out: $1, which is replaced only when the installed one is newer; exit 1 if none is installed
#
# The firmware asks for a TPM at 0xfed40000. QEMU has none there, and reads as 0, which looks like a
# TPM that is busy; the firmware waits for it, which took 51 of 58 s under instruction counting. Flash
# ends at 4 GiB. So empty flash is put in front, down to 0xfed00000, and reads as no TPM.
set -euo pipefail
readonly MADE=$1 BYTES=$(((1 << 32) - 0xfed00000))
for installed in /usr/share/ovmf/OVMF.fd /usr/share/OVMF/OVMF_CODE.fd /usr/share/qemu/ovmf-x86_64.bin \
    /usr/share/edk2/x64/OVMF.4m.fd /usr/share/edk2/ovmf/OVMF_CODE.fd; do
    [[ ! -f $installed ]] || break
done
if [[ $MADE == --check ]]; then [[ -f $installed ]]; exit; fi
[[ -f $installed ]] || { echo "uefi: no UEFI firmware for the PC on this machine; with apt: apt-get install ovmf" >&2; exit 1; }
[[ ! $MADE -nt $installed ]] || exit 0
{
    head -c $((BYTES - $(stat -c %s "$installed"))) /dev/zero | LC_ALL=C tr '\0' '\377'
    cat "$installed"
} >"$MADE.$$"
mv "$MADE.$$" "$MADE"
