#!/usr/bin/env bash
# A clone of a commit, to build and boot in. Called by make (scripts/ab.mk).
# In:  $1 a commit's whole hash, or nothing: this tree itself
#      $2 an app's folder; one that the commit does not have is copied from this tree
# Out: the folder, on standard output; target/ab/<commit>, made if it is not there
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -z $1 ]]; then
    echo .
    exit
fi
clone=target/ab/$1
mkdir -p target/ab
exec 9>"target/ab/.lock"
flock 9
if [[ ! -d $clone ]]; then
    echo "ab: cloning $1 into $clone; its first build takes a minute or two" >&2
    rm -rf "$clone.new"
    git clone --quiet --shared --no-checkout . "$clone.new"
    git -C "$clone.new" -c advice.detachedHead=false checkout --quiet --detach "$1"
    mkdir "$clone.new/target"
    # The tools that setup built here need not be built again.
    if [[ -d target/tools ]]; then cp -a target/tools "$clone.new/target/"; fi
    mv "$clone.new" "$clone"
fi
# Copied each time: it may have been edited since.
if ! git -C "$clone" cat-file -e "$1:$2" 2>/dev/null; then
    echo "ab: $1 has no $2: that of this tree is taken" >&2
    mkdir -p "$clone/${2%/*}"
    rm -rf "${clone:?}/$2"
    cp -r "$2" "$clone/$2"
fi
echo "$clone"
