#!/usr/bin/env bash
# Prints what a program was built from: the files of this tree that cargo's dep-info names, and
# the manifest of each package among them. Files that cargo made itself are in target/, and left out.
# Called by scripts/build.sh.
# In:  $1 the dep-info: `<program>: <file> <file> ...`, each an absolute path
# Out: paths from the project's root, one on each line, sorted
set -euo pipefail
cd "$(dirname "$0")/.."
# A workspace that is a copy has links to the tree.
files=$(tr ' ' '\n' <"$1" | sed -n "s|^$PWD/||p" | sed 's|^target/workspace/||' | grep -v '^target/')
manifests=$(while read -r folder; do
    while [[ $folder == */* ]]; do
        folder=${folder%/*}
        [[ ! -f $folder/Cargo.toml ]] || { echo "$folder/Cargo.toml"; break; }
    done
done <<<"$files")
LC_ALL=C sort -u <<<"$files"$'\n'"$manifests"
