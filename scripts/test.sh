#!/usr/bin/env bash
# All tests: the library on the host, make's own manners, and the apps on QEMU.
# In:  $1 (optional) a word: only checks whose name contains it
#      environment: CARGO RUSTC (the host's), POLICIES (scripts/features.mk)
# Out: a line for each check, `N passed, N failed` at the end, exit 1 if any
#      failed; what they printed is kept in target/test/
set -euo pipefail
cd "$(dirname "$0")/.."
filter=${1:-}

# What the caller gave to `make test` must not reach the makes run in here.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
unset A ARCH FEATURES SMP LOG MODE MEM SCALE TIMING ACCEL QEMU_ARGS TIMEOUT V T SELFTEST

readonly ARCHES=(x86_64 riscv64 aarch64)
read -ra policies <<<"${POLICIES:?}"
# What each policy calls itself in ArceOS's boot log.
declare -rA NAMES=([sched_fifo]=FIFO [sched_rr]=RR [sched_cfs]=CFS [sched_sjf]=SJF [sched_mlfq]=MLFQ
    [sched_pbg]=PBG [stock_fifo]=FIFO [stock_rr]='Round-robin' [stock_cfs]='Completely Fair')

logs=target/test
rm -rf "$logs"
mkdir -p "$logs"
passed=0 failed=0

# check NAME COMMAND...: passes if the command does. A check that counts tests
# of its own leaves their number in $logs/count.
check() {
    local name=$1 log rc start=$SECONDS count=1
    shift
    [[ $name == *"$filter"* ]] || return 0
    log=$logs/${name//[^a-zA-Z0-9_-]/_}.log
    rm -f "$logs/count"
    set +e # as part of a condition, the subshell's own -e would not count
    : >"$log"
    (set -euo pipefail; "$@") >>"$log" 2>&1 </dev/null # appending, as `show` does
    rc=$?
    set -e
    if [[ -s $logs/count ]]; then count=$(<"$logs/count"); fi
    if ((rc == 0)); then
        passed=$((passed + count))
        echo "ok      $name$( ((count == 1)) || echo " ($count tests)") $((SECONDS - start)) s"
    else
        failed=$((failed + 1))
        echo "not ok  $name $((SECONDS - start)) s"
        tail -n 25 "$log" | sed 's/^/        | /'
    fi
}

show() { tee -a /dev/stderr; } # also into the log; without -a it would begin anew

# --- Host -------------------------------------------------------------------

host_tests() { # host_tests PACKAGE [ARGUMENTS...]
    local out=$logs/libtest
    "$CARGO" test --locked --package "$@" 2>&1 | tee "$out"
    awk '/^test result: ok/ { n += $4 } END { print n; exit !n }' "$out" >"$logs/count"
}

two_policies() { # the library refuses them, naming both
    if "$CARGO" check --locked --package axsched-ext --features sched_fifo,sched_rr 2>"$logs/two"; then return 1; fi
    grep '^error.*sched_fifo.*sched_rr' "$logs/two"
}

local_shim() { # axtask sits on ours, not on the registry's
    "$CARGO" tree --locked --package axtask --depth 1 --edges normal --target x86_64-unknown-none |
        grep ' axsched v.*modules/axsched)'
}

adopted() { # an ArceOS tree of its own, with the lock file it had, as the README says
    local tree=$logs/adopted
    mkdir -p "$tree/src"
    echo 'fn main() {}' >"$tree/src/main.rs"
    cat >"$tree/Cargo.toml" <<END
[workspace]
[package]
name = "adopted"
version = "0.0.0"
edition = "2024"
[dependencies]
axstd = { version = "=0.3.0-preview.3", features = ["multitask", "irq", "sched-rr"] }
axsched = { version = "0.3.99", features = ["sched_pbg"] }
[patch.crates-io]
axsched = { path = "$PWD/modules/axsched" }
END
    # The lock file that axstd was published with, which names the registry's axsched.
    axstd=$("$CARGO" metadata --locked --format-version 1 | grep -o '"[^"]*/axstd-0.3.0-preview.3/Cargo.toml"' | head -1)
    axstd=${axstd//\"/}
    cp "${axstd%toml}lock" "$tree/Cargo.lock"
    cd "$tree"
    "$CARGO" tree --invert axsched@0.3.99 --target x86_64-unknown-none | tee "../adopted.tree"
    grep 'axtask v0.3.0-preview.3' ../adopted.tree
}

# --- Make's own manners -----------------------------------------------------

refused() { # refused TEXT VARIABLES...: one line with TEXT, so nothing built
    local want=$1 out
    shift
    if out=$(make run "$@" 2>&1); then echo "make accepted $*"; return 1; fi
    echo "$out"
    [[ $(wc -l <<<"$out") == 1 && $out == *"$want"* && $out == *allowed* ]]
}

help_text() { # whatever the variables say, and to be read at 80 columns
    local out v
    out=$(make ARCH=nonsense SMP=x)
    echo "$out"
    for v in A ARCH FEATURES SMP LOG MODE MEM SCALE TIMING ACCEL QEMU_ARGS V TIMEOUT; do
        grep -q "^  $v=" <<<"$out"
    done
    for v in setup build run justrun test clippy fmt doc clean prepush "${policies[@]}"; do
        grep -qw "$v" <<<"$out"
    done
    [[ -z $(awk 'length > 80' <<<"$out") ]]
}

setup_missing() { # --check on a machine like this one without QEMU
    local bin=$PWD/$logs/bin out rc=0
    mkdir "$bin"
    ln -s /usr/bin/* /bin/* "$bin/" 2>/dev/null || true
    rm "$bin"/qemu-system-*
    out=$(PATH=$bin:${CARGO_HOME:-$HOME/.cargo}/bin scripts/setup.sh --check) || rc=$?
    rm -r "$bin"
    echo "$out"
    ((rc == 1))
    grep -q 'missing: qemu-system-x86_64, qemu-system-aarch64, qemu-system-riscv64' <<<"$out"
}

# selftest CASE VARIABLES...: the app that misbehaves on request
selftest() {
    local case=$1
    shift
    SELFTEST=$case make run A=apps/sched-tests/selftest "$@"
}

fails_with() { # fails_with TEXT COMMAND...: its last words but make's are TEXT
    local want=$1 out rc=0
    shift
    out=$("$@" 2>&1) || rc=$?
    echo "$out"
    ((rc != 0))
    [[ $(grep -v '^make: ' <<<"$out" | tail -1) == "run: "*"$want"* ]]
}

no_image() {
    fails_with 'make build' make justrun A=apps/sched-tests/selftest SCALE=123456789
}

running() { # processes with the word $1 in their command line
    local f
    for f in /proc/[0-9]*/cmdline; do
        if [[ $( (tr '\0' ' ' <"$f") 2>/dev/null) == *"$1"* ]]; then echo "$f"; fi
    done
}

# leaves_nothing SIGNAL group|make: a hanging guest whose make gets the signal
leaves_nothing() {
    local mark="sched-test-$1-$2-$$" out=$logs/$1-$2.out pid n
    SELFTEST=hang make build A=apps/sched-tests/selftest
    set -m # a process group of its own, with interrupts not ignored
    SELFTEST=hang make justrun A=apps/sched-tests/selftest QEMU_ARGS="-name $mark" >"$out" 2>&1 &
    pid=$!
    set +m
    for n in {1..100}; do
        if grep -q "^smp = " "$out" 2>/dev/null; then break; fi
        sleep 0.1
    done
    cat "$out"
    grep -q "^smp = " "$out"
    [[ $(running "$mark" | wc -l) -ge 2 ]] # QEMU and the script
    if [[ $2 == group ]]; then kill "-$1" -- "-$pid"; else kill "-$1" "$pid"; fi
    for n in {1..50}; do
        if [[ -z $(running "$mark") ]]; then echo "gone after $n tries"; return 0; fi
        sleep 0.1
    done
    echo "still there:"
    running "$mark"
    kill -KILL -- "-$pid"
    return 1
}

# --- QEMU -------------------------------------------------------------------

realtime() { # realtime ARCH POLICY [VARIABLES...]
    local arch=$1 policy=$2 sched out=$logs/realtime phases
    shift 2
    make run A=apps/sched-tests/realtime SCALE=1000 ARCH="$arch" FEATURES="$policy" "$@" | tee "$out"
    sched=${policy#sched_} sched=${sched/_/-}
    phases=run
    if [[ $policy == sched_pbg ]]; then phases='measure replay'; fi
    [[ $(sed -n 's/.*SCHED-RUN .*"phase":"\([a-z]*\)".*/\1/p' "$out" | xargs) == "$phases" ]]
    [[ $(grep -c "SCHED-RUN .*\"arch\":\"$arch\".*\"sched\":\"$sched\".*\"scale\":1000.*\"pass\":true" "$out") == $(wc -w <<<"$phases") ]]
}

boot_log() { # the same, where ArceOS itself names the scheduler
    realtime "$1" "$2" LOG=info
    grep -F "use ${NAMES[$2]} scheduler." "$logs/realtime"
}

# What PBG promises: at full scale the replay is within 2 % of the best average
# turnaround there is, with next to no context switches.
promise() { # promise ARCH
    local replay
    replay=$(make run A=apps/sched-tests/realtime FEATURES=sched_pbg ARCH="$1" | show |
        grep 'SCHED-RUN .*"phase":"replay"')
    [[ $replay =~ \"avg_turnaround_ns\":([0-9]+).*\"context_switches\":([0-9]+),\"srpt_bound_ns\":([0-9]+) ]]
    ((BASH_REMATCH[1] * 100 <= BASH_REMATCH[3] * 102 && BASH_REMATCH[2] < 1000))
}

same_twice() { # same_twice ARCH POLICY VARIABLES...: what was counted is exact
    local n
    for n in 1 2; do
        make justrun A=apps/sched-tests/realtime SCALE=1000 ARCH="$1" FEATURES="$2" "${@:3}" |
            show | grep '^SCHED-' >"$logs/twice$n"
    done
    cmp "$logs/twice1" "$logs/twice2"
}

# A guest's 3 s by the host's clock, to 1 %. A busy host can only be late, and
# not always; a wrong clock is wrong each time: the best of three counts.
real_clock() {
    local n line begin=0 end=0
    SELFTEST=clock make build A=apps/sched-tests/selftest TIMING=real ARCH="$1"
    for n in 1 2 3; do
        while IFS= read -r line; do
            echo "$EPOCHREALTIME $line"
            case $line in
                *CLOCK-BEGIN*) begin=${EPOCHREALTIME/[.,]/} ;;
                *CLOCK-END*) end=${EPOCHREALTIME/[.,]/} ;;
                'make failed' | *'"pass":false'*) return 1 ;;
            esac
        done < <(SELFTEST=clock make justrun A=apps/sched-tests/selftest TIMING=real ARCH="$1" 2>&1 || echo "make failed")
        echo "try $n: $((end - begin)) us"
        ((end - begin < 2970000 || end - begin > 3030000)) || return 0
    done
    return 1
}

# --- In an order that meets each build folder once --------------------------

check 'host: axsched-ext' host_tests axsched-ext
check 'host: axsched-ext with sched_pbg' host_tests axsched-ext --features sched_pbg --test c_abi
check 'host: sched-tests-common' host_tests sched-tests-common
check 'host: two policies do not compile' two_policies
check 'host: axtask uses the local axsched' local_shim
check 'host: an ArceOS tree adopts it' adopted

check 'make: help' help_text
check 'make: setup --check, all there' scripts/setup.sh --check
check 'make: setup --check, QEMU missing' setup_missing
check 'make: refuses an unknown A' refused 'A=apps/nope' A=apps/nope
check 'make: refuses an unknown ARCH' refused 'x86_64 riscv64 aarch64' ARCH=arm
check 'make: refuses an unknown feature' refused sched_pbg FEATURES=sched_nope
check 'make: refuses two policies' refused 'two policies: sched_pbg sched_rr' FEATURES=sched_pbg,sched_rr
check 'make: refuses ours and stock together' refused 'two policies' FEATURES='sched_rr stock_rr'
check 'make: refuses SMP=0' refused SMP=0 SMP=0
check 'make: refuses SMP=2 under icount' refused 'one CPU' SMP=2 TIMING=icount
check 'make: refuses an unknown LOG' refused 'off error warn' LOG=loud
check 'make: refuses an unknown MODE' refused 'release debug' MODE=fast
check 'make: refuses an unknown TIMING' refused 'icount real' TIMING=virtual
check 'make: refuses SCALE=0' refused SCALE=0 SCALE=0
check 'make: refuses SCALE=1k' refused SCALE=1k SCALE=1k
check 'make: refuses MEM=128' refused MEM=128 MEM=128
check 'make: refuses TIMEOUT=-1' refused TIMEOUT=-1 TIMEOUT=-1
check 'make: refuses ACCEL=y under icount' refused TIMING=real ACCEL=y
check 'make: justrun without an image' no_image

for arch in "${ARCHES[@]}"; do
    for policy in "${policies[@]}"; do
        # The boot log once per policy; the other architectures boot as users do.
        if [[ $arch == x86_64 ]]; then
            check "qemu: realtime $arch $policy LOG=info" boot_log "$arch" "$policy"
            check "qemu: realtime $arch $policy twice the same" same_twice "$arch" "$policy" LOG=info
        else
            check "qemu: realtime $arch $policy" realtime "$arch" "$policy"
            check "qemu: realtime $arch $policy twice the same" same_twice "$arch" "$policy"
        fi
    done
    check "qemu: realtime $arch sched_pbg, full scale, 2 % of the bound" promise "$arch"
    check "qemu: selftest tasks $arch sched_pbg" selftest tasks ARCH="$arch" FEATURES=sched_pbg
    check "qemu: selftest clock $arch icount" selftest clock ARCH="$arch"
    if [[ $arch == x86_64 ]]; then # no matter of the architecture
        check 'qemu: selftest calls sched_pbg' selftest calls FEATURES=sched_pbg
        check 'qemu: selftest calls sched_rr' selftest calls FEATURES=sched_rr
        check 'qemu: selftest share sched_pbg' selftest share FEATURES=sched_pbg
        check 'qemu: selftest meter sched_pbg' selftest meter FEATURES=sched_pbg
        check 'make: run fails if the guest panics' fails_with 'panicked at' selftest panic
        check 'make: run fails if a check fails' fails_with '"pass":false' selftest fail
        check 'make: run fails if the guest hangs' fails_with 'within 5 s; TIMEOUT=' selftest hang TIMEOUT=5
        for signal in INT TERM KILL; do
            check "make: no QEMU left by $signal to make" leaves_nothing "$signal" make
        done
        check "make: no QEMU left by Ctrl-C" leaves_nothing INT group
    fi
done
for arch in "${ARCHES[@]}"; do
    check "qemu: selftest clock $arch real" real_clock "$arch"
done

echo "$passed passed, $failed failed"
((failed == 0))
