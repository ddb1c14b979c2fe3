#!/usr/bin/env bash
# Makes the FAT32 disk of a guest, if it is not there yet. Called by make
# (scripts/qemu.mk).
# In:  $1 the file
# Out: that file, and a line if it is new; or exit 1 and one line that says why
set -euo pipefail
disk=$1
PATH=$PATH:/usr/sbin:/sbin # mkfs is not on every user's
fail() { echo "disk: $*" >&2; exit 1; }

if [[ -e $disk ]]; then
    [[ -f $disk ]] || fail "$disk is no file; allowed is a disk that make has made, or a name that is free"
    # ArceOS panics if there is no file system that it knows.
    [[ $(dd if="$disk" bs=1 skip=82 count=5 2>/dev/null | tr -d '\0') == FAT32 ]] ||
        fail "$disk is no FAT32 disk; allowed is one that make has made, or a name that is free"
    exit 0
fi
unwritable="$disk cannot be made; allowed is a file in a folder that can be written to"
mkdir -p "$(dirname "$disk")" 2>/dev/null || fail "$unwritable"
# The file appears as a whole or not at all.
new=$disk.$$
trap 'rm -f "$new"' EXIT
truncate -s 64M "$new" 2>/dev/null || fail "$unwritable"
mkfs.fat -F 32 "$new" >/dev/null
# ArceOS makes these folders when it mounts a disk, and panics over a half-made one:
# with them, it writes nothing until the program does.
mmd -i "$new" ::boot ::proc ::sys
mv "$new" "$disk"
echo "disk: made $disk"
