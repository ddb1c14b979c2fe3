#!/usr/bin/env bash
# Boots an image and judges the guest by its output, because QEMU's exit status
# says nothing about it. Called by make (scripts/qemu.mk).
# In:  $1 image, $2 limit in seconds, then QEMU's command line
#      environment, each may be empty: PROFILE_OUT, with PBG_SAVE, the command that
#      extracts a profile from a console, and NEXT, the command to suggest for it;
#      RECORD: a missing profile is a failure;
#      PLAIN: the guest prints no result lines;
#      SOAK_ORDERS: seed, seconds, bound and fault for the app soak;
#      TICK_PHASE: boots a copy of the image with this phase of the timer tick
# Out: the guest's console, here and in target/logs/<image>.log; lines of a
#      profile and meaningless lines (below) only there;
#      PROFILE_OUT, if the guest printed a profile;
#      exit 0, or 1 and one line that says why
set -euo pipefail
image=$1 limit=$2
shift 2
boot=$image
if [[ ${TICK_PHASE:-0} != 0 ]]; then boot=$image-phase$TICK_PHASE; fi
if [[ -n ${SOAK_ORDERS:-} ]]; then boot=$image-ordered; fi
log=target/logs/${boot##*/}.log
fail() { echo "run: $* (log: $log)" >&2; exit 1; }

if [[ ! -f $image ]]; then
    echo "run: no image $image; make it first: make build, with the same variables" >&2
    exit 1
fi
mkdir -p target/logs
# Two runs of one image would write over each other's log, which is judged.
exec 9>"$log.lock"
flock -n 9 || fail "this image is running already"

# tell TEXT ORDERS WHAT: makes a copy of the image with ORDERS after TEXT, byte for byte.
tell() {
    local text=$1 orders=$2
    [[ $(LC_ALL=C grep -aoF "$text" "$image" | wc -l) == 1 ]] || fail "$3: this image has no place for it"
    trap 'rm -f "$boot"' EXIT
    LC_ALL=C sed "s/$text.\{${#orders}\}/$text$orders/" "$image" >"$boot"
}
if [[ $boot != "$image" ]]; then
    if [[ -n ${SOAK_ORDERS:-} ]]; then
        # The text is that of the app soak.
        # shellcheck disable=SC2086
        tell SCHED-SOAK-ORDERS= "$(printf '%010d %05d %03d %02d' $SOAK_ORDERS)" "SOAK_ORDERS=$SOAK_ORDERS"
    else
        # The text is that of config.rs.
        tell SCHED-TICK-PHASE= "$(printf %03d "$TICK_PHASE")" "TICK_PHASE=$TICK_PHASE"
    fi
    set -- "${@/#"$image"/$boot}"
fi

# No QEMU may outlive this script. Signals that can be caught are passed on;
# for those that cannot, the kernel is asked to do it.
qemu='' parent=$PPID
stop() {
    [[ -n $qemu ]] || return 0
    kill "$qemu" 2>/dev/null || true
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "$qemu" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL "$qemu" 2>/dev/null || true
}
trap 'stop; exit 129' HUP
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM
# An interrupt sent to make alone (kill -INT) does not reach this script, and
# make then waits for it to end. It shows in that make no longer catches one.
catches_int() {
    local key value
    while read -r key value; do
        [[ $key != SigCgt: ]] || return $((!(0x$value & 2)))
    done <"/proc/$parent/status"
    return 1
}
orphaned() {
    ! kill -0 "$parent" 2>/dev/null || { $caught && ! catches_int; }
}
caught=false
if catches_int; then caught=true; fi

guard=()
if command -v setpriv >/dev/null && setpriv --pdeathsig KILL true 2>/dev/null; then
    guard=(setpriv --pdeathsig KILL)
fi

# ArceOS warns twice of a disk without partitions, which is the only kind that disk.sh makes and
# accepts: nothing is wrong with it.
noise='axfs::partition:[0-9]+\] .*(Failed to parse GPT: AxErrorKind::InvalidData|No partition table found, treating whole disk as single partition)'

# tee -i -p: it must see the end of the log even when Ctrl-C or a closed
# terminal (make run | head) reaches it first. grep ends with status 1 if nothing
# is left, which is not an error.
exec 3> >(
    exec 9>&-
    trap '' INT
    tee -ip -- "$log" | LC_ALL=C grep -Eav --line-buffered "^PBG-PROFILE|$noise" || true
)
tee=$!
"${guard[@]}" "$@" </dev/null >&3 2>&1 3>&- 9>&- &
qemu=$!
exec 3>&-

# A second at a time, to see the limit pass, or make go.
end=$((SECONDS + limit)) why=''
while kill -0 "$qemu" 2>/dev/null; do
    if ((SECONDS >= end)); then why=limit; stop; break; fi
    if orphaned; then stop; exit 143; fi
    sleep 1 >/dev/null 2>&1 9>&- & # without the lock, which it would hold after our end
    tick=$!
    wait -n "$qemu" "$tick" || true
    kill "$tick" 2>/dev/null || true
done
status=0
wait "$qemu" || status=$?
qemu=''
wait "$tee" || true

# The guest ends its lines with CR LF. A panic's message is on the line after.
verdict=$(awk '
    { sub(/\r$/, "") }
    panicked { print "the guest " panic " " $0; found = 1; exit }
    /panicked at / { panicked = 1; panic = $0; sub(/^.*panicked at /, "panicked at ", panic); next }
    /SCHED-RUN / {
        runs++
        if ($0 ~ /"pass": *false/ && failed == "") {
            phase = $0; sub(/^.*"phase": *"/, "", phase); sub(/".*/, "", phase)
            failed = "the guest failed its own check in phase \"" phase "\" (\"pass\":false)"
        }
    }
    END {
        if (found) exit
        if (panicked) print "the guest " panic
        else if (failed != "") print failed
        else if (!runs) print "none"
    }' "$log")

case $verdict in
    the\ guest\ panicked*) fail "$verdict" ;;
esac
# A guest that KVM cannot run prints nothing. QEMU's own messages begin with its name.
cause=''
if [[ " $* " == *' -accel kvm '* ]] && ! LC_ALL=C grep -Eaqv '^(qemu-system-|[[:space:]]*$)' "$log"; then
    cause=', and printed nothing: most likely KVM does not work here; ACCEL=n does without'
fi
[[ $why != limit ]] || fail "the guest did not end within $limit s; TIMEOUT=n changes the limit$cause"
((status == 0)) || fail "$1 exited with status $status$cause"
if [[ $verdict == none && -n ${PLAIN:-} ]]; then verdict=''; fi
[[ $verdict != none ]] || fail "the guest ended without a SCHED-RUN line$cause"
[[ -z $verdict ]] || fail "$verdict"

[[ -z ${RECORD:-} ]] || grep -q 'PBG-PROFILE-BEGIN ' "$log" || fail 'the guest printed no recording'

# A damaged profile fails the run, because it was meant to be kept.
if [[ -n ${PROFILE_OUT:-} ]] && grep -q 'PBG-PROFILE-BEGIN ' "$log"; then
    # PBG_SAVE is several words.
    # shellcheck disable=SC2086
    saved=$($PBG_SAVE "$log" "$PROFILE_OUT") || fail "no profile saved: ${saved:-$PBG_SAVE failed}"
    echo "profile: $saved; $NEXT$PROFILE_OUT"
fi
