#!/usr/bin/env bash
# Finds the workspace that cargo is to work in: the tree itself, or, while there are apps
# that Cargo.lock does not know, a copy of it with a lock file of its own. So a folder
# under apps/ joins without an edit, and leaves no trace in the tree when it goes.
# Called by make before anything that needs cargo.
# In:  target/toolchain.mk; environment: CI, if this is one: there Cargo.lock must know
#      all apps
# Out: target/workspace.mk   WORKSPACE := . or target/workspace
#      target/workspace/     links to the tree, and a Cargo.lock that knows all apps
set -euo pipefail
cd "$(dirname "$0")/.."
readonly OUT=target/workspace.mk TREE=target/workspace

package() { sed -n '/^\[package\]/,/^\[[^p]/s/^name *= *"\(.*\)".*/\1/p' "$1"; }
knows() { grep -qxF "name = \"$2\"" "$1"; } # knows LOCK PACKAGE

strangers=() folders=()
for manifest in apps/*/*/Cargo.toml; do
    [[ -f $manifest ]] || continue
    name=$(package "$manifest")
    knows Cargo.lock "$name" || { strangers+=("$name"); folders+=("${manifest%/Cargo.toml}"); }
done

mkdir -p target
exec 9>"$OUT.lock" # several makes may be here at once
flock 9
workspace=.
if ((${#strangers[@]})); then
    if [[ -n ${CI:-} ]]; then
        echo "workspace: Cargo.lock does not know ${folders[*]}; in CI it must: run cargo update --workspace and commit it" >&2
        exit 1
    fi
    workspace=$TREE
    mkdir -p "$TREE"
    for entry in Cargo.toml apps modules tools; do ln -sfn "../../$entry" "$TREE/$entry"; done
    cargo=$(sed -n 's/^HOST_CARGO := //p' target/toolchain.mk 2>/dev/null || true)
    cargo=${cargo:-cargo}
    fresh=true
    for name in "${strangers[@]}"; do
        knows "$TREE/Cargo.lock" "$name" 2>/dev/null || fresh=false
    done
    # A manifest that was edited may need more; what it had, it keeps.
    [[ -z $(find "${folders[@]/%//Cargo.toml}" Cargo.lock Cargo.toml -newer "$TREE/Cargo.lock" 2>/dev/null || echo all) ]] || fresh=false
    if ! $fresh; then
        echo "workspace: Cargo.lock does not know ${folders[*]}: bringing a copy up to date, $TREE/Cargo.lock"
        cp Cargo.lock "$TREE/Cargo.lock.new"
        mv "$TREE/Cargo.lock.new" "$TREE/Cargo.lock"
        "$cargo" update --quiet --workspace --manifest-path "$TREE/Cargo.toml"
        touch "$TREE/Cargo.lock"
    fi
fi
echo "WORKSPACE := $workspace" >"$OUT.new"
if cmp -s "$OUT.new" "$OUT"; then rm "$OUT.new"; else mv "$OUT.new" "$OUT"; fi
