#!/usr/bin/env bash
# Finds cargo's workspace: the tree itself or, while the manifests need more than Cargo.lock has, a copy
# with its own lock file. So a new folder under apps/ joins without an edit, and leaves no trace in the
# tree when it is removed.
# Called by make before anything that needs cargo.
# In:  target/toolchain.mk; environment: CI, if set, requires a complete Cargo.lock
# Out: target/workspace.mk   WORKSPACE := . or target/workspace
#      target/workspace/     links to the tree, and a complete Cargo.lock
#      exit 1 and one line about a folder that is not an app, where cargo would print many
set -euo pipefail
cd "$(dirname "$0")/.."
readonly OUT=target/workspace.mk TREE=target/workspace SEEN=target/workspace.inputs

fail() { echo "workspace: $1" >&2; exit 1; }
package() { sed -n "/^\[package\]/,/^\[[^p]/s/^name *= *[\"']\(.*\)[\"'].*/\1/p" "$1"; }
# knows PACKAGE: as a member; those of a registry have a source
knows() { awk -v want="name = \"$1\"" '$0 == want { getline; getline; if ($0 !~ /^source/) found = 1 } END { exit !found }' Cargo.lock; }

declare -A folder_of=()
strangers=()
for folder in apps/*/*/; do
    folder=${folder%/}
    [[ -f $folder/Cargo.toml ]] || fail "$folder: no Cargo.toml; allowed is a folder with one and with src/main.rs, as make new makes it"
    [[ -f $folder/src/main.rs || -f $folder/src/lib.rs ]] || fail "$folder: no src/main.rs; allowed is a folder with one and with Cargo.toml, as make new makes it"
    name=$(package "$folder/Cargo.toml")
    [[ -n $name ]] || fail "$folder/Cargo.toml: no name in [package]; allowed is one, such as name = \"${folder##*/}\""
    [[ -z ${folder_of[$name]:-} ]] || fail "$folder and ${folder_of[$name]}: both are called $name; allowed is one: change name in one Cargo.toml"
    folder_of[$name]=$folder
    knows "$name" || strangers+=("$folder")
done

mkdir -p target
exec 9>"$OUT.lock" # several makes may be here at once
flock 9
# The inputs of the answer; file times say little.
inputs=$(cksum Cargo.lock Cargo.toml apps/*/*/Cargo.toml modules/*/Cargo.toml modules/coop/*/Cargo.toml tools/*/Cargo.toml tests/*/Cargo.toml; echo "${CI:-}")
workspace=$(sed -n 's/^WORKSPACE := //p' "$OUT" 2>/dev/null || true)
if [[ -n $workspace && -f $workspace/Cargo.lock && $inputs == "$(cat "$SEEN" 2>/dev/null)" ]]; then exit 0; fi

cargo=$(sed -n 's/^HOST_CARGO := //p' target/toolchain.mk 2>/dev/null || true)
cargo=${cargo:-cargo}
workspace=.
# A complete lock needs no registry; otherwise cargo asks it.
ask=("$cargo" update --quiet --workspace --locked)
if ! "${ask[@]}" --offline 2>/dev/null && ! said=$("${ask[@]}" 2>&1); then
    if [[ $said != *'--locked was passed'* ]]; then
        echo "$said" >&2
        exit 1
    fi
    whose=${strangers[*]:-what the manifests ask for}
    [[ -z ${CI:-} ]] ||
        fail "Cargo.lock does not know $whose; in CI it must: run cargo update --workspace and commit it"
    workspace=$TREE
    mkdir -p "$TREE"
    for entry in Cargo.toml apps modules tools tests; do ln -sfn "../../$entry" "$TREE/$entry"; done
    echo "workspace: Cargo.lock does not know $whose: bringing a copy up to date, $TREE/Cargo.lock"
    cp Cargo.lock "$TREE/Cargo.lock"
    "$cargo" update --quiet --workspace --manifest-path "$TREE/Cargo.toml"
fi
echo "WORKSPACE := $workspace" >"$OUT.new"
if cmp -s "$OUT.new" "$OUT"; then rm "$OUT.new"; else mv "$OUT.new" "$OUT"; fi
echo "$inputs" >"$SEEN"
