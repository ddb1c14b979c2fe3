#!/usr/bin/env bash
# Breaks the policies one line at a time and looks whether a test notices: cargo-mutants.
# Called by make (`make mutants`). Goes on where the last run stopped: what was caught is
# not tried again, until MUTANTS=again.
# In:  $1 (optional) a regular expression: only mutants whose name contains it
#      environment: CARGO RUSTC (the host's), MINUTES (the limit), MUTANTS
#      scripts/mutants-survivors.txt   those that change nothing that can be seen
# Out: target/mutants.out/  what cargo-mutants says
#      one line for each survivor that is not listed, then the totals;
#      exit 1 if there is one
set -euo pipefail
cd "$(dirname "$0")/.."
readonly VERSION=27.1.0 TOOLS=target/tools OUT=target/mutants.out
readonly LISTED=scripts/mutants-survivors.txt
readonly SRC=modules/axsched-ext/src

tool=$PWD/$TOOLS/bin/cargo-mutants
if [[ ! -x $tool || $("$tool" mutants --version) != *" $VERSION" ]]; then
    echo "mutants: will run: cargo install cargo-mutants@$VERSION (into $TOOLS)"
    CARGO_TARGET_DIR=$TOOLS/build "$CARGO" install --quiet --locked --version "$VERSION" \
        --root "$TOOLS" cargo-mutants
    rm -rf "$TOOLS/build"
fi

args=(mutants --package axsched-ext --profile mutants --output target --jobs 2 --no-shuffle
    --minimum-test-timeout 60 --colors never)
for file in fifo rr cfs cfs/line sjf mlfq burst ordered queue event; do args+=(--file "$SRC/$file.rs"); done
for file in mod plan replay measure control; do args+=(--file "$SRC/pbg/$file.rs"); done
if [[ -n ${1:-} ]]; then args+=(--re "$1"); fi
if [[ ${MUTANTS:-} == again ]]; then rm -rf "$OUT" "$OUT.old"; else args+=(--iterate); fi
status=0
CARGO=$CARGO RUSTC=$RUSTC RUST_BACKTRACE=0 timeout --signal INT "${MINUTES:?}m" \
    "$tool" "${args[@]}" -- --locked || status=$?
case $status in
    0 | 2 | 3) ;; # all caught; some missed; some timed out, which is caught, too
    124 | 130) echo "mutants: stopped after ${MINUTES:?} minutes; the same command goes on from here" ;;
    *) echo "mutants: cargo-mutants failed with status $status" >&2; exit 1 ;;
esac

count() { cat "$OUT/$1.txt" "$OUT/previously_caught.txt" 2>/dev/null | sort -u | grep -c . || true; }
lines() { cat "$OUT/$1.txt" 2>/dev/null | grep -c . || true; }
# A survivor is listed without its line and column, which move.
sed -E 's/:[0-9]+:[0-9]+: /: /' "$OUT/missed.txt" 2>/dev/null | sort >"$OUT/survivors"
new=$(grep -vxFf <(sed -n 's/^\([^#].*\)/\1/p' "$LISTED") "$OUT/survivors" || true)
if [[ -n $new ]]; then sed 's/^/survives: /' <<<"$new"; fi
unlisted=$(grep -c . <<<"$new" || true)
echo "mutants: $(count caught) caught, $(lines timeout) timed out, $(lines missed) survive, of those $unlisted not listed in $LISTED; $(lines unviable) do not compile"
[[ $unlisted == 0 ]]
