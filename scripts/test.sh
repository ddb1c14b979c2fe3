#!/usr/bin/env bash
# All tests: the library on the host, make's own manners, and the apps on QEMU.
# In:  $1 (optional) a word: only checks whose name contains it
#      environment: CARGO RUSTC WHERE (the host's), POLICIES (scripts/features.mk)
# Out: a line for each check, `N passed, N failed` at the end, exit 1 if any
#      failed; what they printed is kept in target/test/
set -euo pipefail
cd "$(dirname "$0")/.."
filter=${1:-}

# What the caller gave to `make test` must not reach the makes run in here.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
variables=$(make -s lab-variables)
# shellcheck disable=SC2086 # many words
unset $variables
unset CI # where Cargo.lock must know all apps; the tests have some of their own
export PROFILE_OUT= # what the user has kept stays as it is

readonly ARCHES=(x86_64 riscv64 aarch64)
read -ra policies <<<"${POLICIES:?}"
# What each policy calls itself in ArceOS's boot log.
declare -A NAMES=([stock_fifo]=FIFO [stock_rr]='Round-robin' [stock_cfs]='Completely Fair')
for policy in "${policies[@]}"; do # ours: sched_rr is RR, and sched_pbg_coop PBG
    short=${policy#sched_} short=${short%%_*}
    : "${NAMES[$policy]:=${short^^}}"
done

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

# Also into the log (without -a it would begin anew), and without the guest's CR.
show() { tr -d '\r' | tee -a /dev/stderr; }

# --- Host -------------------------------------------------------------------

host_tests() { # host_tests PACKAGE [ARGUMENTS...]
    local out=$logs/libtest
    "$CARGO" test $WHERE --package "$@" 2>&1 | tee "$out"
    awk '/^test result: ok/ { n += $4 } END { print n; exit !n }' "$out" >"$logs/count"
}

two_policies() { # the library refuses them, naming both
    if "$CARGO" check $WHERE --package axsched-ext --features sched_fifo,sched_rr 2>"$logs/two"; then return 1; fi
    grep '^error.*sched_fifo.*sched_rr' "$logs/two"
}

local_shim() { # axtask sits on ours, not on the registry's
    "$CARGO" tree $WHERE --package axtask --depth 1 --edges normal --target x86_64-unknown-none |
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
    axstd=$("$CARGO" metadata $WHERE --format-version 1 | grep -o '"[^"]*/axstd-0.3.0-preview.3/Cargo.toml"' | head -1)
    axstd=${axstd//\"/}
    cp "${axstd%toml}lock" "$tree/Cargo.lock"
    cd "$tree"
    "$CARGO" tree --invert axsched@0.3.99 --target x86_64-unknown-none | tee "../adopted.tree"
    grep 'axtask v0.3.0-preview.3' ../adopted.tree
}

own_tree() { # own_tree ARCH: docs/own-tree.md, to the letter; it has what the README's section says
    local line
    while IFS= read -r line; do
        echo "README: $line"
        grep -qxF "$line" docs/own-tree.md
    done < <(sed -n '/^## In your own ArceOS tree/,/^## Limits/p' README.md |
        sed -n '/^```/,/^```/{/^```/d;/^cargo tree/d;p}')
    timeout 300 scripts/own-tree.sh docs/own-tree.md "$logs/own-tree" "$1" |
        show | sed 's/\x1b\[[0-9;]*m//g' >"$logs/own-tree.out"
    grep 'use PBG scheduler' "$logs/own-tree.out"
    [[ $(grep -xE 'one|two|both are done' "$logs/own-tree.out" | xargs) == 'one two both are done' ]]
}

quotes() { # quotes PAGE LANGUAGE FILE: the page's blocks in it, from its second half on, are the file's lines
    local line n=0
    while IFS= read -r line; do
        [[ -n $line ]] || continue
        grep -qF -- "$line" "$3" || { echo "$1: not in $3: $line"; return 1; }
        n=$((n + 1))
    done < <(sed -n '/^## An ordinary/,$p' "$1" | sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/{/^\`\`\`/d;p}")
    echo "$n lines"
    ((n > 0))
}
quotes_template() {
    quotes docs/your-program.md rust scripts/template/plain/main.rs
}

# --- Profiles ---------------------------------------------------------------

put() { # put BYTES OFFSET <in >out: the bytes, as printf has them, at that place
    local tmp=$logs/put
    cat >"$tmp"
    # shellcheck disable=SC2059
    printf "$1" | dd of="$tmp" bs=1 seek="$2" conv=notrunc status=none
    cat "$tmp"
}
reseal() { # with a checksum that is right: gzip ends with the CRC-32 and the length
    local tmp=$logs/reseal
    head -c -4 >"$tmp"
    cat "$tmp"
    gzip -c "$tmp" | tail -c 8 | head -c 4
}

# --- Make's own manners -----------------------------------------------------

refused() { refused_by run "$@"; }
refused_by() { # refused_by GOAL TEXT VARIABLES...: one line with TEXT, so nothing built
    local goal=$1 want=$2 out
    shift 2
    if out=$(make -n "$goal" "$@" 2>&1); then echo "make accepted $*"; return 1; fi
    echo "$out"
    [[ $(wc -l <<<"$out") == 1 && $out == *"$want"* && $out == *allowed* ]]
}

# Profiles for calls that are wrong: one of batch at SCALE=10, of a time that nobody has said,
# and what has become of it; @ in the table is their folder. The tool that reads them is there, or it would be built first.
fixtures() {
    local at=$logs/calls
    mkdir -p "$at"
    "$CARGO" build $WHERE --quiet --profile tool --package pbg-save
    cp modules/axsched-ext/tests/data/batch-x86_64.pbg "$at/batch.pbg"
    put '\21' 32 <"$at/batch.pbg" | reseal >"$at/real.pbg" # 0x11
    put '\42' 32 <"$at/batch.pbg" | reseal >"$at/riscv64.pbg" # 0x22
    put '\2' 10 <"$at/batch.pbg" | reseal >"$at/two-cpus.pbg"
    put '\377' 60 <"$at/batch.pbg" >"$at/damaged.pbg"
    head -c 50 "$at/batch.pbg" >"$at/short.pbg"
    put '\2' 8 <"$at/batch.pbg" | reseal >"$at/version2.pbg"
    : >"$at/empty.pbg"
    rm -f "$at/pipe.pbg"
    mkfifo "$at/pipe.pbg"
}

wrong_calls() { # each line of the table: one line of an answer, within a second of the CPU, and a status
    local call want out rc took n=0 TIMEFORMAT='%U + %S'
    fixtures
    while IFS='|' read -r call want; do
        want=$(sed 's/^ *//; s/ *$//' <<<"$want")
        rc=0
        # shellcheck disable=SC2086  # the words of a call
        { time make ${call//@/$logs/calls} >"$logs/answer" 2>&1 || rc=$?; } 2>"$logs/took"
        out=$(<"$logs/answer") took=$(tail -1 "$logs/took")
        echo "make $call -> $rc, $took s: $out"
        awk "BEGIN { exit !($rc != 0 && $took < 1) }"
        [[ $(grep -vc '^make: ' <<<"$out") == 1 && $out == *"$want"* ]]
        n=$((n + 1))
    done < <(grep -v '^#' scripts/wrong-calls.txt)
    echo "$n" >"$logs/count"
}

refused_with_blk() { BLK=y refused_by "$@"; }

# ACCEL=y on a machine without KVM, and with one that nobody may use.
without_kvm() {
    local -a kvm=(TIMING=real ACCEL=y ARCH="$(uname -m | sed s/arm64/aarch64/)")
    KVM_DEVICE=$logs/none refused 'no KVM here' "${kvm[@]}"
    KVM_DEVICE=$logs/kvm
    : >"$KVM_DEVICE"
    chmod 000 "$KVM_DEVICE"
    if [[ -r $KVM_DEVICE ]]; then return 0; fi # root may read all
    KVM_DEVICE=$KVM_DEVICE refused 'no permission for KVM' "${kvm[@]}"
}

silent_kvm() { # a guest that has printed nothing under KVM: what is most likely said to be wrong
    local out rc=0
    : >"$logs/silent-kvm"
    out=$(scripts/qemu-run.sh "$logs/silent-kvm" 10 sh -c 'echo qemu-system-x86_64: no MSR; exit 134' sh -accel kvm 2>&1) || rc=$?
    echo "$out"
    ((rc == 1))
    [[ $(tail -1 <<<"$out") == 'run: sh exited with status 134, and printed nothing: most likely KVM '* ]]
    out=$(scripts/qemu-run.sh "$logs/silent-kvm" 10 sh -c 'echo ArceOS; exit 134' sh -accel kvm 2>&1) || true
    [[ $(tail -1 <<<"$out") == 'run: sh exited with status 134 (log: '* ]]
}

real_time_has_its_names() { # what is saved in it does not replace what was counted
    local out
    out=$(make -n run A=realtime FEATURES=sched_pbg BLK=y TIMING=real)
    [[ $out == *target/pbg/realtime-x86_64-real.img* ]]
    out=$(unset PROFILE_OUT; make -n run A=realtime FEATURES=sched_pbg TIMING=real SCALE=10)
    [[ $out == *"PROFILE_OUT='target/pbg/realtime-x86_64-scale10-real.pbg'"* ]]
    out=$(unset PROFILE_OUT; make -n run A=realtime FEATURES=sched_pbg SCALE=10)
    [[ $out == *"PROFILE_OUT='target/pbg/realtime-x86_64-scale10.pbg'"* ]]
}

fits() { # an image that is larger than MEM is refused before it boots
    local elf=target/kernel/x86_64-smp1/x86_64-unknown-none/release/realtime out
    [[ -f $elf ]] || make build A=realtime
    local config=target/kernel/x86_64-smp1/axconfig.toml
    scripts/fits.sh "$elf" "$config" 16M
    if out=$(scripts/fits.sh "$elf" "$config" 2M 2>&1); then return 1; fi # it begins there
    echo "$out"
    [[ $(wc -l <<<"$out") == 1 && $out == 'MEM=2M: the image ends '*allowed* ]]
}

no_sudo() { # setup may install nothing: it says what is missing, and make no more than that it failed
    local tree=$logs/no-sudo bin=$PWD/$logs/no-sudo-bin out rc=0
    rm -rf "$tree" "$bin"
    mkdir -p "$tree" "$bin"
    cp -r Makefile Cargo.toml Cargo.lock scripts apps "$tree"
    ln -s /usr/bin/* /bin/* "$bin/" 2>/dev/null || true
    rm -f "$bin"/qemu-system-* "$bin"/sudo "$bin"/id
    # shellcheck disable=SC2016
    printf '#!/bin/sh\n[ "$1" = -u ] && echo 1000 || exec /usr/bin/id "$@"\n' >"$bin/id"
    chmod +x "$bin/id"
    out=$(PATH=$bin:${CARGO_HOME:-$HOME/.cargo}/bin make -C "$tree" --no-print-directory run 2>&1) || rc=$?
    rm -r "$tree" "$bin"
    echo "$out"
    ((rc != 0))
    [[ $(grep -vc '^make: ' <<<"$out") == 1 && $out == 'setup: missing: qemu-system-x86_64'*'neither root nor sudo'* ]]
}

help_text() { # whatever the variables say, and to be read at 80 columns
    local out v
    out=$(make ARCH=nonsense SMP=x)
    echo "$out"
    for v in A KIND ARCH FEATURES SMP LOG MODE MEM SCALE TIMING ACCEL QEMU_ARGS V TIMEOUT TICK_PHASE TRACE \
        PROFILE_OUT PBG_PROFILE PBG_BASE BLK DISK; do
        grep -q "^  $v=" <<<"$out"
    done
    for v in setup build run justrun matrix compare profile gantt cost experiment-cost experiment-turnaround experiment-waits docs-tables docs-check test clippy fmt doc clean prepush "${policies[@]}"; do
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
    set -m # a process group of its own, with interrupts not ignored, which they are
    # where the tests run in the background
    SELFTEST=hang env --default-signal=INT make justrun A=apps/sched-tests/selftest QEMU_ARGS="-name $mark" >"$out" 2>&1 &
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
    for n in {1..300}; do # a busy host is late
        if [[ -z $(running "$mark") ]]; then echo "gone after $n tries"; return 0; fi
        sleep 0.1
    done
    echo "still there:"
    running "$mark"
    kill -KILL -- "-$pid"
    return 1
}

elsewhere() { # in every folder that make may be called in by mistake
    local folder out rc n=0
    for folder in apps apps/sched-tests apps/sched-tests/*/ modules modules/*/ tools tools/*/ scripts docs; do
        rc=0
        out=$(cd "$folder" && make run 2>&1) || rc=$?
        echo "$folder: $out"
        ((rc != 0))
        [[ $out == *"allowed is make -C $PWD run"* ]]
        n=$((n + 1))
    done
    echo "$n" >"$logs/count"
}

blank_in_name() { # a folder with a blank in its name, for every target
    local tree="$logs/a b" goal out rc
    mkdir -p "$tree"
    cp -r Makefile scripts "$tree"
    for goal in help setup run matrix test clean; do
        rc=0
        out=$(cd "$tree" && make "$goal" 2>&1) || rc=$?
        echo "$out"
        ((rc != 0)) && [[ $(wc -l <<<"$out") == 1 && $out == *'with a blank in its name; allowed is one without'* ]]
    done
}

# A copy of this tree, to work in, with what is built already; every_file says what is in it.
copied_tree() { # copied_tree FOLDER
    mkdir -p "$1/target"
    git ls-files -z | xargs -0 cp --parents --no-dereference --target-directory "$1"
    find target -maxdepth 1 \( -name kernel -o -name 'tool*' \) -exec cp -al -t "$1/target" {} +
    cd "$1"
    every_file >target/before
}
every_file() { find . -path ./target -prune -o -type f -print0 | sort -z | xargs -0 sha256sum; }
linted() { # linted APP: it is among what make clippy lints, and clean
    CARGO=echo RUSTC=rustc WHERE='' POLICIES=sched_rr scripts/clippy.sh >target/out
    grep -q -- "--package $1 --package .*--all-targets --features sched_rr" target/out
    local where=(--manifest-path target/workspace/Cargo.toml --package "$1")
    if "$CARGO" fmt --version; then "$CARGO" fmt "${where[@]}" --check; fi
    if "$CARGO" clippy --version; then
        "$CARGO" clippy --locked "${where[@]}" --target-dir target --all-targets -- -D warnings
    fi
}

half_made() { # half_made TEXT: it is said in one line, and before cargo is asked
    local out
    if out=$(scripts/workspace.sh 2>&1); then return 1; fi
    echo "$out"
    [[ $(wc -l <<<"$out") == 1 && $out == *"$1"*allowed* ]]
}

joins() { # an app of one's own in a copy of this tree: built, run, in the matrix, and gone again
    copied_tree "$logs/joins"
    mkdir -p apps/mine/half
    half_made 'apps/mine/half: no Cargo.toml'
    cp apps/sched-tests/yield/Cargo.toml apps/mine/half/
    half_made 'apps/mine/half: no src/main.rs'
    cp -r apps/sched-tests/yield/src apps/mine/half/
    half_made 'both are called yield'
    sed -i 's/^name = "yield"/name = "spin"/' apps/mine/half/Cargo.toml # as a crate is called
    scripts/workspace.sh | tee target/out
    grep -q 'does not know apps/mine/half' target/out
    cp -p apps/mine/half/Cargo.toml target/older
    echo 'fnv = "1"' >>apps/mine/half/Cargo.toml # of the last table, which is of dependencies
    scripts/workspace.sh
    grep -q '^name = "fnv"' target/workspace/Cargo.lock
    mv target/older apps/mine/half/Cargo.toml # with the time that it had
    scripts/workspace.sh | tee target/out
    grep -q 'bringing a copy up to date' target/out
    rm -r apps/mine/half
    make new A=apps/mine/hello
    (($(cat apps/mine/hello/Cargo.toml apps/mine/hello/src/main.rs | wc -l) < 60))
    make run A=apps/mine/hello FEATURES=sched_pbg | show >target/out
    grep -q 'Cargo.lock does not know apps/mine/hello: bringing a copy up to date' target/out
    grep -q '"phase":"replay".*"pass":true' target/out
    linted hello
    # The same with results that nobody uses is the same work; what the compiler says of that
    # is a warning, and not even one of `let _`.
    make run A=hello FEATURES=sched_rr | show >target/used
    sed -i 's/x = work::spin(x, ROUNDS);/let _ = work::spin(x, ROUNDS);/; s/x == work::jump.*/true/; s/let mut x/let x/' \
        apps/mine/hello/src/main.rs
    grep -q 'let _ = work::spin' apps/mine/hello/src/main.rs
    make run A=hello FEATURES=sched_rr | show >target/unused
    near "$(figure target/used run tasks_run_ns)" "$(figure target/unused run tasks_run_ns)" 1000
    make matrix A=hello ARCH=x86_64 FEATURES=sched_cfs,stock_rr | tee target/out
    grep -q '2 cells: 2 run, .* 0 failed' target/out
    make test T='host: hello' | tee target/out
    grep -q '^ok .*host: hello' target/out
    if CI=y make build A=apps/mine/hello 2>target/out; then return 1; fi
    grep -q 'in CI it must' target/out
    rm -r apps/mine
    every_file | diff target/before -
    make build A=apps/sched-tests/realtime
    every_file | diff target/before -
}

# The same of one that does without the helpers: it runs faster by its plan, and whatever
# would need its result lines says so.
joins_plain() {
    local measured replayed
    copied_tree "$logs/joins-plain"
    make new A=apps/mine/echo KIND=plain
    quotes docs/your-program.md toml apps/mine/echo/Cargo.toml
    (($(cat apps/mine/echo/Cargo.toml apps/mine/echo/src/main.rs | wc -l) < 85))
    make run A=echo FEATURES=sched_pbg | show >target/out
    read -r measured replayed < <(sed -n 's/^done after \([0-9]*\)[.0-9]*ms on average; by the plan, after \([0-9]*\)[.0-9]*ms$/\1 \2/p' target/out)
    echo "$replayed of $measured ms"
    ((0 < replayed && replayed * 10 <= measured * 9))
    grep '^PBG says {"planned":3,"matched":3,.*"diverged":0,.*"dropped":false,.*"behind":false' target/out
    make test T='host: echo' | tee target/out
    grep -q '^ok .*host: echo' target/out
    linted echo
    make lab-list | grep '^apps ' | tee target/out
    if grep echo target/out; then return 1; fi
    refused_by matrix 'apps/mine/echo does without sched-tests-common' A=realtime,echo
    refused_by gantt 'apps/mine/echo does without sched-tests-common' A=apps/mine/echo
    refused 'SCALE=10: not of apps/mine/echo' A=echo SCALE=10
    sed -i /sched_sjf/d apps/mine/echo/Cargo.toml
    refused 'has no feature sched_sjf' A=echo FEATURES=sched_sjf
    rm -r apps/mine
    every_file | diff target/before -
}

# --- QEMU -------------------------------------------------------------------

# All cells of these apps, at a scale at which a run is a moment and a few ticks long; counted time
# must give the same lines twice, and PBG on one CPU measures and replays.
cells() { # cells ARCH APPS [SMP]
    local lab=$logs/lab/$1-smp${3-1} app policy file phases n=0
    make matrix ARCH="$1" A="$2" SMP="${3-1}" SCALE=100 LAB="--repeat 2 --results $lab"
    for app in ${2//,/ }; do
        for policy in "${policies[@]}"; do
            file=$lab/$1/$app/$policy.jsonl
            phases=run
            if [[ $policy == sched_pbg* && ${3-1} == 1 ]]; then phases='measure replay'; fi
            if [[ $(phases_passed "$file") != "$phases" ]]; then
                echo "$file: expected to have passed: $phases"
                return 1
            fi
            n=$((n + 1))
        done
    done
    echo "$n" >"$logs/count"
}

each_policy() { # each_policy FOLDER: of a program without result lines
    local policy
    for policy in "${policies[@]}"; do make run A="$1" FEATURES="$policy"; done
    echo "${#policies[@]}" >"$logs/count"
}

# Of result lines: the phases that passed, and a figure of a phase (or of each of
# its tasks).
phases_passed() { sed -n 's/^SCHED-RUN .*"phase":"\([a-z]*\)".*"pass":true}$/\1/p' "$1" | xargs; }
figure() { sed -n "s/^.*\"phase\":\"$2\".*\"$3\":\([0-9.]*\).*/\1/p" "$1" | xargs; }

# What a cell's figures depend on is the policy and the workload, not what else is in the
# image, as each phase starts at the same phase of the timer tick: with a feature more, which
# nobody uses, the average turnaround is the same to 0.1 %; at another phase it is not.
same_figures() { # same_figures APP POLICY
    local features phase avg
    local -a avgs=()
    for features in "$2" "$2,rtc"; do
        for phase in 0 500; do
            avg=$(make run A="$1" FEATURES="$features" SCALE=10 TICK_PHASE="$phase" | show |
                sed -n 's/^SCHED-RUN .*"avg_turnaround_ns":\([0-9]*\).*"tick_phase":'"$phase"',.*/\1/p')
            avgs+=("$avg")
        done
    done
    echo "at the tick ${avgs[0]} and ${avgs[2]}, between two ${avgs[1]} and ${avgs[3]}"
    near "${avgs[0]}" "${avgs[2]}" 1000 && near "${avgs[1]}" "${avgs[3]}" 1000 && ! near "${avgs[0]}" "${avgs[1]}" 1000
}
near() { # near A B N: they differ by at most one part in N
    (($1 > 0 && ($1 > $2 ? $1 - $2 : $2 - $1) * $3 <= $2))
}

# In these results, made by `cells`, no row is before PBG's replay.
pbg_is_best() { # pbg_is_best ARCH APP
    local lab=$logs/lab/$1-smp1/$1/$2 policy best avg
    best=$(figure "$lab/sched_pbg.jsonl" replay avg_turnaround_ns)
    for policy in "${policies[@]}"; do
        [[ $policy != sched_pbg* ]] || continue
        avg=$(figure "$lab/$policy.jsonl" run avg_turnaround_ns)
        echo "$policy $avg, sched_pbg $best"
        ((best < avg))
    done
}

# At full scale, as the window is less than a tick long otherwise.
shares() { # shares ARCH POLICY: the CPU is shared equally, or as many groups are done
    local out=$logs/shares groups
    make run A=apps/sched-tests/unequal ARCH="$1" FEATURES="$2" | show | grep '^SCHED-' >"$out"
    if [[ $2 == sched_fifo ]]; then
        groups=$(figure "$out" run groups)
        echo "groups: $groups"
        [[ $(wc -w <<<"$groups") == 4 && $(xargs -n 1 <<<"$groups" | sort -u | wc -l) == 1 && $groups != 0* ]]
    else
        awk -v jain="$(figure "$out" run jain)" 'BEGIN { exit !(jain >= 0.98 && jain <= 1) }'
    fi
}

boot_log() { # ArceOS itself names the scheduler
    make run A=apps/sched-tests/realtime SCALE=1000 FEATURES="$1" LOG=info |
        show | grep -F "use ${NAMES[$1]} scheduler."
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

# The table of `make cost` has a row for each phase of PBG and a figure in each column,
# and a yield that keeps the CPU is cheaper than one that switches.
cost_table() {
    make cost ARCH=x86_64 FEATURES=sched_pbg SCALE=100 | show |
        awk '/^pbg (idle|measure|replay) / && NF == 6 { n++; four[$2] = $4 }
            END { exit !(n == 3 && 0 < four["replay"] && four["replay"] < four["idle"]) }'
}

# Without preemption, as stock FIFO is, a yield of a replay costs at most three quarters
# of stock FIFO's, for 4 tasks and for 4,096.
cheap_yields() { # cheap_yields ARCH
    local policy n
    for policy in stock_fifo sched_pbg_coop; do
        make run A=apps/sched-tests/cost ARCH="$1" FEATURES="$policy" | show | grep '^SCHED-COST' >"$logs/$policy.cost"
    done
    for n in 4 4096; do
        awk -v n="$n" '
            /"phase":"(run|replay)"/ && $0 ~ "\"tasks\":" n "," {
                sub(/.*instructions_per_yield":/, ""); cost[FNR == NR] = $0 + 0
            }
            END { print n, cost[0], "of", cost[1]; exit !(cost[0] > 0 && cost[0] * 4 <= cost[1] * 3) }
        ' "$logs/stock_fifo.cost" "$logs/sched_pbg_coop.cost"
    done
}

# A traced run: for each SCHED-TASK line one SCHED-TRACE line, whose bins add up to
# the task's run_ns to the nanosecond; and a chart of it.
traced() { # traced ARCH
    local gantt=$PWD/$logs/gantt-$1 console=target/gantt/realtime-$1-scale100-sched_pbg.log
    make gantt ARCH="$1" SCALE=100 FEATURES=sched_pbg GANTT_OUT="$gantt.svg" LAB=--long
    [[ $(grep -c '^SCHED-RUN .*"traced":true' "$console") == 2 ]]
    awk '
        function of(key) { match($0, "\"" key "\":\"?[^\",]*"); v = substr($0, RSTART, RLENGTH); sub(/.*[:"]/, "", v); return v }
        /^SCHED-TASK / { who = of("phase") " " of("task"); run[who] = of("run_ns") + 0; tasks++ }
        /^SCHED-TRACE / {
            who = of("phase") " " of("task"); sum = 0
            bins = $0; sub(/.*"run_ns":\[/, "", bins); sub(/\].*/, "", bins)
            for (i = split(bins, bin, ","); i; i--) sum += bin[i]
            if (who in traced) print "twice: " who
            traced[who] = sum; traces++
        }
        END {
            for (who in run) {
                print who, run[who], traced[who]
                if (!(who in traced) || run[who] != traced[who] || !run[who]) exit 1
            }
            exit !(tasks == 10 && traces == 10)
        }' "$console"
    grep 'following its plan' "$gantt.svg"
    [[ $(head -c 8 "$gantt.png" | od -An -tx1) == ' 89 50 4e 47 0d 0a 1a 0a' ]]
}

# --- A kept profile ---------------------------------------------------------

pbg() { make run A="apps/sched-tests/$1" FEATURES=sched_pbg "${@:2}"; }
one_pbg_line() { [[ $(grep -c '^SCHED-PBG ' "$1") == 1 ]] && grep -q "^SCHED-PBG {.*$2.*}\$" "$1"; }

# Recorded, saved, built in, booted: only replayed, and as near to the bound as this.
built_in() { # built_in ARCH APP SCALE PERCENT
    local profile=$logs/$1-$2.pbg out=$logs/built-in avg bound
    pbg "$2" ARCH="$1" SCALE="$3" PROFILE_OUT="$profile" | show >"$out"
    if grep PBG-PROFILE "$out"; then return 1; fi # the log has it, people do not need it
    [[ $(tail -1 "$out") == "profile: $profile, "*" tasks, "*" PBG_PROFILE=$profile" ]]
    one_pbg_line "$out" '"from":"boot","planned"'
    PBG_PROFILE=$profile pbg "$2" ARCH="$1" SCALE="$3" | show >"$out"
    [[ $(phases_passed "$out") == replay ]]
    one_pbg_line "$out" '"from":"image","planned"'
    avg=$(figure "$out" replay avg_turnaround_ns)
    bound=$(figure "$out" replay srpt_bound_ns)
    echo "$avg of $bound"
    ((avg * 100 <= bound * $4))
}

# A program whose tasks poll: its replay takes 1.05 times what was measured at most, or
# people and SCHED-PBG are told that it is behind. WANT is what is to be seen.
polls() { # polls CASE ahead|behind|given-up
    local out=$logs/poll-$1 measured replayed
    SELFTEST=poll-$1 pbg selftest | show >"$out"
    [[ $(phases_passed "$out") == 'measure replay' ]]
    measured=$(figure "$out" measure avg_turnaround_ns)
    replayed=$(figure "$out" replay avg_turnaround_ns)
    echo "$replayed of $measured"
    case $2 in
        ahead)
            ((replayed * 20 <= measured * 21))
            one_pbg_line "$out" '"dropped":false,.*"behind":false,.*"slower":false'
            ! grep '^PBG was behind' "$out"
            ;;
        behind) # all of it is over before a plan could be given up
            one_pbg_line "$out" '"dropped":false,.*"behind":true,.*"slower":true'
            grep '^PBG was behind the measured run and followed its plan to the end: ' "$out"
            ;;
        given-up) # which pays: it would be 2.6 times as long
            ((replayed * 2 <= measured * 3))
            one_pbg_line "$out" '"dropped":true,.*"behind":true,.*"why":"turnaround",.*"slower":true'
            grep '^PBG was behind the measured run and gave its plan up: ' "$out"
            ;;
    esac
}

# What it was measured under is in the profile, and a plan can be made of it.
under_fifo() {
    local out=$logs/under-fifo
    pbg realtime SCALE=100 PBG_BASE=fifo PROFILE_OUT="$out.pbg" | show >"$out"
    [[ $(phases_passed "$out") == 'measure replay' ]]
    grep -a fifo "$out.pbg" | wc -c
}

# make refuses a profile that is of no use. One that has come into an image all the same,
# in place of a good one, the guest refuses with the reason, and the program runs. (KIND
# must leave the checksum: the compiler knows the good one's.)
built_in_refused() { # built_in_refused KIND REASON
    local out=$logs/refused good=$PWD/$logs/x86_64-realtime.pbg bad=$logs/refused.pbg image at
    [[ -f $good ]] || pbg realtime SCALE=100 PROFILE_OUT="$good"
    damage "$1" "$good" >"$bad"
    if make -n build A=realtime FEATURES=sched_pbg SCALE=100 PBG_PROFILE="$bad"; then return 1; fi
    make build A=realtime FEATURES=sched_pbg SCALE=100 PBG_PROFILE="$good"
    image=target/images/realtime-x86_64-sched_pbg-scale100-profile_$(cksum <"$good" | cut -d' ' -f1)
    while read -r at; do # its magic stands in the code, too
        if cmp -s -n 24 -i "$at:0" "$image" "$good"; then break; fi
    done < <(LC_ALL=C grep -aboF "$(head -c 4 "$good")" "$image" | cut -d: -f1)
    [[ -n $at ]]
    dd if="$bad" of="$image" bs=1 seek="$at" conv=notrunc status=none
    make justrun A=realtime FEATURES=sched_pbg SCALE=100 PBG_PROFILE="$good" | show >"$out"
    rm "$image"
    [[ $(phases_passed "$out") == run ]]
    one_pbg_line "$out" "\"from\":\"image\",\"refused\":\".*$2"
}

# A profile of one time is refused in the other, on the host and by the guest.
in_real_time() {
    local out=$logs/in-real-time profile=$logs/counted.pbg img=$logs/counted.img
    local -a real=(SCALE=100 TIMING=real TIMEOUT=60)
    rm -f "$img"
    pbg realtime SCALE=100 BLK=y DISK="$img" PROFILE_OUT="$profile" >/dev/null
    refused 'measured in real time, found one in counted time' A=realtime FEATURES=sched_pbg "${real[@]}" PBG_PROFILE="$profile"
    pbg realtime "${real[@]}" BLK=y DISK="$img" PROFILE_OUT="$profile" | show >"$out"
    grep '^SCHED-PBG .*"from":"disk","refused":"expected a profile measured in real time, found one in counted time"' "$out"
    [[ $(phases_passed "$out") == 'measure replay' ]]
    refused 'measured in counted time, found one in real time' A=realtime FEATURES=sched_pbg SCALE=100 PBG_PROFILE="$profile"
    pbg realtime SCALE=100 BLK=y DISK="$img" | show >"$out"
    grep '^SCHED-PBG .*"from":"disk","refused":"expected a profile measured in counted time, found one in real time"' "$out"
    [[ $(phases_passed "$out") == 'measure replay' ]]
}

# The same image, booted again and again with one disk.
disk_twice() { # disk_twice ARCH
    local out=$logs/disk-out
    local -a with=(ARCH="$1" SCALE=100 BLK=y DISK="$logs/$1.img")
    pbg realtime "${with[@]}" | show >"$out"
    [[ $(phases_passed "$out") == 'measure replay' ]]
    one_pbg_line "$out" '"from":"boot","planned"'
    make justrun A=apps/sched-tests/realtime FEATURES=sched_pbg "${with[@]}" | show >"$out"
    [[ $(phases_passed "$out") == replay ]]
    one_pbg_line "$out" '"from":"disk","planned"'
    # What ArceOS says of a disk without partitions is in the log, and alarms nobody.
    grep 'No partition table found' "target/logs/realtime-$1-sched_pbg-scale100-blk.log"
    if grep -a 'axfs::\|axdriver' "$out"; then return 1; fi
}

# Damaged profiles from a good one; the offsets are those of docs/profile-format.md.
damage() { # damage KIND GOOD
    case $1 in
        truncated) head -c -10 "$2" ;;
        flipped) put '\377' 60 <"$2" ;;
        program) put '\0\1\2\3' 24 <"$2" | reseal ;;
        architecture) put '\42' 32 <"$2" | reseal ;; # 0x22
        timing) put '\21' 32 <"$2" | reseal ;; # 0x11
        version) put '\2' 8 <"$2" | reseal ;;
        counts) put '\377\377\377\377\17' 47 <"$2" | reseal ;;
        noise) head -c 3000 /dev/urandom ;;
        empty) ;;
        none) cat "$2" ;;
    esac
}

# On the disk, each is refused with the reason, the program runs, and a good profile
# is there the next time.
damaged() { # damaged KIND REASON
    local out=$logs/damaged-out img=$logs/damaged.img good=$logs/good.pbg
    local -a with=(SCALE=100 BLK=y DISK="$img")
    rm -f "$img"
    pbg realtime "${with[@]}" PROFILE_OUT="$good" >/dev/null
    damage "$1" "$good" >"$logs/bad.pbg"
    mcopy -o -i "$img" "$logs/bad.pbg" ::PROFILE1.PBG
    pbg realtime "${with[@]}" | show >"$out"
    [[ $(phases_passed "$out") == 'measure replay' ]]
    [[ $(grep -c '^SCHED-PBG ' "$out") == 2 ]]
    grep "^SCHED-PBG .*\"from\":\"disk\",\"refused\":\".*$2" "$out"
    pbg realtime "${with[@]}" | show >"$out"
    [[ $(phases_passed "$out") == replay ]]
    fsck.fat -n "$img" || PATH=$PATH:/usr/sbin:/sbin fsck.fat -n "$img" || true # for the log
}

# QEMU is killed while the profile is replaced, at ten moments; each next boot says
# what it finds (the one of the first write may be half of one), and goes on.
killed() {
    local img=$logs/killed.img out=$logs/killed-out n pid
    local -a with=(A=apps/sched-tests/selftest FEATURES=sched_pbg BLK=y DISK="$img")
    rm -f "$img"
    SELFTEST=rewrite make build "${with[@]}"
    for n in {1..10}; do
        : >"$out" # not the last boot's, when it is looked at before make begins
        set -m
        SELFTEST=rewrite make justrun "${with[@]}" >"$out" 2>&1 &
        pid=$!
        set +m
        for _ in {1..600}; do
            if grep -q 'REWRITE [12]\|^run: ' "$out"; then break; fi
            sleep 0.1
        done
        sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
        kill -KILL -- "-$pid"
        wait "$pid" || true
        # The others of its group are a moment later, and the image is theirs till then.
        for _ in {1..50}; do
            if [[ -z $(running "$img") ]]; then break; fi
            sleep 0.1
        done
        sleep 0.5
        echo "boot $n: $(grep '^REWRITE [fr]' "$out"), $(grep -c '^REWRITE [0-9]' "$out") times"
        if grep panicked "$out"; then cat "$out"; return 1; fi
        grep -q '"pass":true' "$out"
        grep -q '^REWRITE 1' "$out"
    done
    SELFTEST=rewrite make justrun "${with[@]}" | show | grep '^REWRITE done'
}

damaged_console() { # one line, and the run fails
    local log=$logs/damaged.console good=$logs/x86_64-realtime.log out rc=0
    out=target/logs/realtime-x86_64-sched_pbg-scale100.log
    [[ -f $out ]] || make run A=apps/sched-tests/realtime FEATURES=sched_pbg SCALE=100 >/dev/null
    cp "$out" "$good"
    sed 's/^\(PBG-PROFILE 2 ...\)./\1?/' "$good" >"$log"
    : >"$logs/damaged-frame"
    out=$(PROFILE_OUT=$logs/never.pbg REPLAY='' PBG_SAVE="$CARGO run $WHERE --quiet --profile tool --package pbg-save --" \
        scripts/qemu-run.sh "$logs/damaged-frame" 10 cat "$log" 2>&1) || rc=$?
    echo "$out" | tail -1
    ((rc == 1))
    [[ $(tail -1 <<<"$out") == "run: no profile saved: "*"the first missing is number 2"* && ! -e $logs/never.pbg ]]
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
check 'host: sched-tests-results' host_tests sched-tests-results
check 'host: batch' host_tests batch
check 'host: schedlab, pbg-save' host_tests schedlab --package pbg-save --profile tool
check 'host: the tables of the docs are those of their CSV files' make docs-check
check 'host: docs/your-program.md quotes the template' quotes_template
check 'host: two policies do not compile' two_policies
check 'host: axtask uses the local axsched' local_shim
check 'host: an ArceOS tree adopts it' adopted
for arch in "${ARCHES[@]}"; do
    check "own tree: from an empty folder to a boot, as the page says, $arch" own_tree "$arch"
done

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
check 'make: refuses TICK_PHASE=1000' refused 'from 0 to 999' TICK_PHASE=1000
check 'make: refuses TICK_PHASE=05' refused 'from 0 to 999' TICK_PHASE=05
check 'make: refuses a TICK_PHASE of real time' refused TIMING=icount TICK_PHASE=5 TIMING=real
check 'make: refuses TRACE=yes' refused 'n y' TRACE=yes
check 'make: refuses ACCEL=y under icount' refused TIMING=real ACCEL=y
check 'make: refuses an unknown BLK' refused BLK=x BLK=x
check 'make: refuses a DISK without BLK=y' refused BLK=y DISK=disk.img
check 'make: refuses PBG_BASE=cfs' refused 'rr fifo' FEATURES=sched_pbg PBG_BASE=cfs
check 'make: refuses a PBG_BASE for another policy' refused 'only PBG' FEATURES=sched_rr PBG_BASE=fifo
check 'make: refuses a PBG_PROFILE that is not there' refused 'no such file' FEATURES=sched_pbg PBG_PROFILE=none.pbg
check 'make: refuses a PBG_PROFILE for another policy' refused FEATURES=sched_pbg FEATURES=sched_rr PBG_PROFILE=README.md
check 'make: refuses a PBG_PROFILE beside a disk' refused 'two places' FEATURES=sched_pbg PBG_PROFILE=README.md BLK=y
check 'make: refuses two apps' refused 'one app folder' A='realtime yield'
check 'make: refuses a PBG_PROFILE that is a folder' refused 'a folder' FEATURES=sched_pbg PBG_PROFILE=docs
check 'make: refuses a PROFILE_OUT that is a folder' refused 'a folder' PROFILE_OUT=target/
check 'make: refuses a DISK that QEMU would not understand' refused DISK=a,b BLK=y DISK=a,b
check 'make: refuses a name that the shell would not understand' refused 'without blanks and' FEATURES=sched_pbg "PBG_PROFILE=it's.pbg"
check 'make: refuses a SCALE beyond all' refused 'to 1000000000' SCALE=99999999999999999999999
check 'make: matrix refuses what would change its cells' refused_by matrix 'not of make matrix' TRACE=y
check 'make: matrix refuses that from the environment, too' refused_with_blk matrix 'not of make matrix'
check 'make: cost refuses another app' refused_by cost 'not of make cost' A=apps/sched-tests/yield
check 'make: cost refuses phases of real time' refused_by cost PHASES=1 PHASES=8 TIMING=real
check 'make: cost refuses PHASES=3' refused_by cost '1 2 4 8 16' PHASES=3
check 'make: experiment-waits refuses another policy' refused_by experiment-waits 'not of make experiment-waits' FEATURES=sched_rr
check 'make: experiment-waits refuses more waits than can be built' refused_by experiment-waits WAITS=64,65 WAITS=64,65
check 'make: experiment-waits refuses a curve of one point' refused_by experiment-waits 'two numbers' WAITS=4
check 'make: experiment-waits refuses two architectures' refused_by experiment-waits ARCH=x86_64 ARCH=x86_64,riscv64
check 'make: gantt refuses a file that is no .svg' refused_by gantt .svg GANTT_OUT=a.png
check 'make: a word that is no target' refused_by rnu 'make help'
check 'make: calls that mean nothing get one line at once' wrong_calls
check 'make: no KVM is said at once' without_kvm
check 'make: a guest that is silent under KVM' silent_kvm
check 'make: what is saved in real time has names of its own' real_time_has_its_names
check 'make: setup without sudo ends in one line' no_sudo
check 'make: a folder below says where to call it' elsewhere
check 'make: a folder with a blank in its name' blank_in_name
check 'make: justrun without an image' no_image

for arch in "${ARCHES[@]}"; do
    apps=realtime,yield
    # Not batch-at-once, which is batch without its waits: a profile of it is replayed below.
    if [[ $arch == x86_64 ]]; then apps=equal,unequal,yield,realtime,held,occupy,batch; fi
    check "qemu: every policy, $arch, $apps" cells "$arch" "$apps"
    for app in realtime yield; do
        check "qemu: PBG has the lowest average turnaround of all, $arch, $app" pbg_is_best "$arch" "$app"
    done
    for policy in sched_cfs sched_rr; do
        check "qemu: unequal $arch $policy, full scale, Jain's index >= 0.98" shares "$arch" "$policy"
    done
    check "qemu: unequal $arch sched_fifo, full scale, equal groups" shares "$arch" sched_fifo
    check "qemu: realtime $arch sched_pbg, full scale, 2 % of the bound" promise "$arch"
    check "qemu: realtime $arch sched_pbg, traced" traced "$arch"
    check "qemu: a profile is saved, built in and replayed, $arch, realtime, 1 % of the bound" \
        built_in "$arch" realtime 100 101
    check "qemu: a profile is kept on a disk, $arch" disk_twice "$arch"
    check "qemu: a replayed yield without preemption, $arch, 3/4 of stock FIFO" cheap_yields "$arch"
    cases=order
    if [[ $arch == x86_64 ]]; then cases='loops more less order order-labelled'; fi
    for case in $cases; do
        check "qemu: a changed program, $arch, $case" selftest "changed-$case" ARCH="$arch" FEATURES=sched_pbg
    done
    check "qemu: selftest tasks $arch sched_pbg" selftest tasks ARCH="$arch" FEATURES=sched_pbg
    check "qemu: selftest clock $arch icount" selftest clock ARCH="$arch"
    if [[ $arch == x86_64 ]]; then # no matter of the architecture
        check "qemu: every policy, $arch, realtime,yield, 4 CPUs" cells "$arch" realtime,yield 4
        for policy in "${policies[@]}"; do
            check "qemu: boot log $policy" boot_log "$policy"
        done
        check 'qemu: make cost, sched_pbg' cost_table
        check 'qemu: a profile is measured under FIFO' under_fifo
        check 'qemu: selftest calls sched_pbg' selftest calls FEATURES=sched_pbg
        check 'qemu: selftest calls sched_rr' selftest calls FEATURES=sched_rr
        check 'qemu: selftest share sched_pbg' selftest share FEATURES=sched_pbg
        check 'qemu: a program that polls, the replay is behind and says so' polls sleep behind
        check 'qemu: a program that polls, a plan that is behind is given up' polls sleep-gate given-up
        check 'qemu: a program that polls for long, the replay is ahead' polls sleep-long ahead
        check 'qemu: a program that polls by yields' polls yield behind
        for policy in sched_cfs sched_sjf sched_mlfq; do
            check "qemu: a job gets done beside a task that yields and a gc that spins, $policy" \
                selftest yielders FEATURES=$policy
        done
        for policy in sched_rr sched_mlfq stock_cfs; do
            check "qemu: a handle of an ended task is noticed and refused, $policy" \
                fails_with '"pass":false' selftest handle FEATURES=$policy
        done
        for policy in sched_mlfq stock_cfs; do
            check "qemu: figures do not depend on what else is in the image, realtime $policy" \
                same_figures realtime "$policy"
        done
        check 'qemu: selftest meter sched_pbg' selftest meter FEATURES=sched_pbg
        check "qemu: a profile is saved, built in and replayed, $arch, batch-at-once, 5 % of the bound" \
            built_in "$arch" batch-at-once 10 105
        check 'qemu: a truncated profile is refused and replaced' damaged truncated 'truncated: expected'
        check 'qemu: a damaged profile is refused and replaced' damaged flipped 'damaged: expected the checksum'
        check "qemu: another program's profile is refused and replaced" damaged program 'at SCALE=100, found one at another'
        check "qemu: another architecture's profile is refused and replaced" damaged architecture 'found one of riscv64'
        check 'qemu: a profile of version 2 is refused and replaced' damaged version 'found version 2'
        check 'qemu: a hostile profile is refused and replaced' damaged counts 'expected'
        check 'qemu: noise on the disk is refused and replaced' damaged noise 'not a profile'
        check 'qemu: an empty file on the disk is refused and replaced' damaged empty 'not a profile'
        check 'qemu: no profile is lost when QEMU is killed' killed
        check "qemu: a profile of real time is refused and replaced" damaged timing 'measured in counted time, found one in real time'
        check 'qemu: a damaged profile in the image is refused' built_in_refused flipped 'damaged: expected the checksum'
        check 'make: run fails if a profile arrives damaged' damaged_console
        check 'make: an image that does not fit into MEM' fits
        check 'make: run fails if the guest panics' fails_with 'panicked at' selftest panic
        check 'make: run fails if a check fails' fails_with '"pass":false' selftest fail
        check 'make: run fails if the guest hangs' fails_with 'within 5 s; TIMEOUT=' selftest hang TIMEOUT=5
        for signal in INT TERM KILL; do
            check "make: no QEMU left by $signal to make" leaves_nothing "$signal" make
        done
        check "make: no QEMU left by Ctrl-C" leaves_nothing INT group
    fi
done
check 'qemu: a folder under apps/ joins, and leaves no trace' joins
check 'qemu: so does an ordinary program, which joins in what needs no result lines' joins_plain
for folder in apps/*/*/; do # of the user's own
    case $folder in apps/sched-tests/*) continue ;; esac
    [[ -f ${folder}Cargo.toml ]] || continue
    app=$(basename "$folder")
    check "host: $app" host_tests "$app"
    if [[ " $(make lab-list | xargs) " == *" ${folder%/} "* ]]; then
        check "qemu: every policy, x86_64, $app" cells x86_64 "$app"
    else
        check "qemu: every policy, x86_64, $app" each_policy "$folder"
    fi
done
check 'qemu: a profile of one time is refused in the other' in_real_time
for arch in "${ARCHES[@]}"; do
    check "qemu: selftest clock $arch real" real_clock "$arch"
done

((passed + failed > 0)) || echo "T=$filter: no check has that in its name; without T= all are listed as they run" >&2
echo "$passed passed, $failed failed"
((passed > 0 && failed == 0))
