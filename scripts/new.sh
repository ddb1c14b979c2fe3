#!/usr/bin/env bash
# Makes a folder for a new app, from scripts/template. Called by make (`make new`).
# In:  [--plain] [--help] and the folder, apps/<group>/<name>
# Out: the folder, with Cargo.toml and src/main.rs; or one line that says why not, and exit 1
set -euo pipefail
cd "$(dirname "$0")/.."
kind=tasks
fail() { echo "new: A=$1: $2" >&2; exit 1; }
while [[ ${1:-} == -* ]]; do
    case $1 in
        --plain) kind=plain ;;
        --help | -h) echo "new: --plain  an ordinary program, without the helpers of the test programs"; exit ;;
        *) echo "new: LAB=$1: allowed are --plain and --help" >&2; exit 1 ;;
    esac
    shift
done
folder=${1%/} template=scripts/template/$kind
name=${folder##*/}

[[ $folder =~ ^apps/[a-z][a-z0-9_-]*/[a-z][a-z0-9_-]*$ ]] ||
    fail "$1" "allowed is apps/<group>/<name>, of a-z, 0-9, - and _, as apps/mine/hello"
[[ ! -e $folder ]] || fail "$1" "is there already; allowed is a new folder"
# Cargo and the matrix identify an app by its name alone.
if grep -qxF "name = \"$name\"" Cargo.lock ||
    grep -sqxF "name = \"$name\"" apps/*/*/Cargo.toml; then
    fail "$1" "there is a package called $name; allowed is another name"
fi
case $name in
    test | core | alloc | std | deps | build | examples | incremental)
        fail "$1" "a package cannot be called $name; allowed is another name" ;;
esac

# An app that depends on axsched itself names the policies itself, as sched-tests-common does,
# but for what it asks of axtask: that it knows through axstd.
policies() {
    sed -n '/^\[features\]/,/^\[[^f]/{/^\(sched\|stock\)_/{s|"axtask/preempt"|"axstd/sched-rr"|;s|"axtask/|"axstd/|;p}}' \
        apps/sched-tests/common/Cargo.toml
}

# Whole or not at all: half an app breaks every build.
new=target/new.$$
mkdir -p "$new/src" "${folder%/*}"
trap 'rm -rf "$new"' EXIT
sed -e "s/@NAME@/$name/" -e '/^@POLICIES@$/{r '<(policies) -e 'd}' "$template/Cargo.toml" >"$new/Cargo.toml"
cp "$template/main.rs" "$new/src/main.rs"
mv -T "$new" "$folder"
echo "new: $folder is there, $(cat "$folder/Cargo.toml" "$folder/src/main.rs" | wc -l) lines; next:
  make run A=$folder FEATURES=sched_pbg"
case $kind in
    tasks) echo "  make matrix A=$name ARCH=x86_64 && make compare A=$name ARCH=x86_64" ;;
    plain) echo "  make run A=$folder FEATURES=sched_rr" ;;
esac
echo "docs/your-program.md leads on from there"
