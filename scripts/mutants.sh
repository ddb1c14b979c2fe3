#!/usr/bin/env bash
# Breaks the policies, and the domain and the worker of axcoop, one line at a time and checks that a test
# notices: cargo-mutants. Called by make (`make mutants`). Continues where the last run stopped:
# caught mutants are tried again only with --again.
# In:  [--minutes N] [--again] [--help] and (optional) a regular expression: only mutants whose
#      name contains it
#      environment: CARGO RUSTC (the host's)
#      scripts/mutants-survivors.txt   mutants without a visible effect
# Out: target/mutants.out/  the output of cargo-mutants
#      target/mutants/      caught, unviable, survivors: of all runs together
#      one line for each unlisted survivor, then the totals;
#      exit 1 if there is one, or if the time is up
set -euo pipefail
cd "$(dirname "$0")/.."
unset CARGO_TARGET_DIR # a folder for each copy of the tree
readonly VERSION=27.1.0 TOOLS=target/tools OUT=target/mutants.out STATE=target/mutants
readonly LISTED=scripts/mutants-survivors.txt
readonly KERNEL=(sched-core sched-policies sched-smp pbg-profile pbg-record pbg) COROUTINES=modules/coop/axcoop/src

minutes=60 again=false
while [[ ${1:-} == -* ]]; do
    case $1 in
        --minutes)
            shift
            minutes=${1:-}
            [[ $minutes =~ ^[1-9][0-9]*$ ]] || {
                echo "mutants: --minutes $minutes: allowed is a whole number from 1 on" >&2
                exit 1
            } ;;
        --again) again=true ;;
        --help | -h)
            echo "mutants: --minutes N  the limit (default $minutes); the next call goes on from there"
            echo "mutants: --again      also try those again that were caught"
            exit ;;
        *) echo "mutants: LAB=$1: allowed are --minutes N, --again and --help" >&2; exit 1 ;;
    esac
    shift
done
tool=$PWD/$TOOLS/bin/cargo-mutants
if [[ ! -x $tool || $("$tool" mutants --version) != *" $VERSION" ]]; then
    echo "mutants: will run: cargo install cargo-mutants@$VERSION (into $TOOLS)"
    CARGO_TARGET_DIR=$TOOLS/build "$CARGO" install --quiet --locked --version "$VERSION" \
        --root "$TOOLS" cargo-mutants
    rm -rf "$TOOLS/build"
fi

# Whatever decides: all but the tests, what tests stand on, and what has nothing of its own to
# decide (the trait, the map, the clocks).
readarray -t of_all < <(find "${KERNEL[@]/#/modules/}" -path '*/src/*' -name '*.rs' ! -name 'tests*' ! -path '*/tests/*' |
    grep -vE '/src/(base|clock|fair|lib|samples|simulated|interleavings)\.rs$' | sort | sed 's/^/--file=/')
# The files of axcoop that serve a domain have the most states.
of_all+=("--file=$COROUTINES/"{domain,run/worker}.rs)
args=(mutants "${KERNEL[@]/#/--package=}" --package axcoop --profile mutants --output target --no-shuffle
    --minimum-test-timeout 15 --colors never)
if [[ -n ${1:-} ]]; then args+=(--re "$1"); fi
if $again; then rm -rf "$OUT" "$OUT.old" "$STATE"; fi
mkdir -p "$STATE"
touch "$STATE/unviable"

# round OPTIONS...: tries what has not been caught yet; -- and what follows is for cargo test
round() {
    local left=$((minutes - SECONDS / 60)) status=0
    [[ -z $stopped ]] || return 0
    ((left > 0)) || { stopped=yes; return 0; }
    CARGO=$CARGO RUSTC=$RUSTC RUST_BACKTRACE=0 timeout --signal INT "${left}m" \
        "$tool" "${args[@]}" --iterate --jobs 2 --cargo-arg=--locked "$@" || status=$?
    case $status in
        0 | 2 | 3) ;; # all caught; some missed; some timed out, which is caught, too
        124 | 130) stopped=yes ;;
        *) echo "mutants: cargo-mutants failed with status $status" >&2; exit 1 ;;
    esac
    # The next round counts what did not compile as caught before.
    cat "$OUT/unviable.txt" >>"$STATE/unviable"
    # A mutant that timed out is caught, and need not be waited for again.
    cat "$OUT/timeout.txt" >>"$OUT/caught.txt"
}

# Nine in ten are caught by the tests beside the code, which are built and run in three seconds.
# Only the others meet the scenes in tests/ and those of the whole library in axsched-ext, which
# take a minute.
stopped=''
round "${of_all[@]}" --cargo-arg=--lib
round "${of_all[@]}" "${KERNEL[@]/#/--test-package=}" --test-package=axcoop --test-package=axsched-ext

all=$("$tool" "${args[@]}" "${of_all[@]}" --list | tee "$STATE/all" | wc -l)
sort -u "$OUT/previously_caught.txt" "$OUT/caught.txt" 2>/dev/null |
    grep -vxFf "$STATE/unviable" | grep -xFf "$STATE/all" >"$STATE/caught" || true
# A survivor is listed without its line and column, which move.
sed -E 's/:[0-9]+:[0-9]+: /: /' "$OUT/missed.txt" | sort >"$STATE/survivors"
new=$(grep -vxFf <(sed -n 's/^\([^#].*\)/\1/p' "$LISTED") "$STATE/survivors" || true)
if [[ -n $new && -z $stopped ]]; then sed 's/^/survives: /' <<<"$new"; fi

lines() { grep -c . "$STATE/$1" || true; }
caught=$(lines caught) survivors=$(lines survivors) unviable=$(grep -cxFf "$STATE/unviable" "$STATE/all" || true)
unlisted=$(grep -c . <<<"$new" || true)
if [[ -n $stopped ]]; then
    echo "mutants: stopped after $minutes minutes with $caught of $all caught; the same command goes on from here" >&2
    exit 1
fi
echo "mutants: $all, of which $unviable do not compile; $caught of the others are caught ($((caught * 1000 / (caught + survivors))) in 1,000), $survivors survive, of those $unlisted not listed in $LISTED"
[[ $unlisted == 0 ]]
