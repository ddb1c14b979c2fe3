#!/usr/bin/env bash
# What a yield costs under every policy: runs apps/sched-tests/cost and makes one
# table of its figures for each architecture. Called by make (scripts/experiments.mk).
# In:  $1 architectures, $2 policies: lists with blanks or commas
#      environment: SCALE SMP TIMING TIMEOUT, MAKE; COST_OUT; PHASES, at how many phases of
#      the timer tick each is run: the tables have the mean
# Out: the tables on standard output, as Markdown in target/cost/table.md, and as CSV,
#      a line for each figure, in COST_OUT; the result lines in
#      target/cost/<arch>-<policy>.txt; exit 1 if a run failed
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra arches <<<"${1//,/ }"
read -ra policies <<<"${2//,/ }"

# What the caller gave to `make cost` must not reach the makes run in here twice.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL A ARCH FEATURES
unset MODE MEM LOG ACCEL QEMU_ARGS TRACE BLK DISK PBG_BASE PBG_PROFILE SELFTEST SCHED_YIELDS SCHED_WAITS TICK_PHASE
export PROFILE_OUT= # no profile of this is to be kept

out=target/cost
mkdir -p "$out"
files=()
for arch in "${arches[@]}"; do
    for policy in "${policies[@]}"; do
        file=$out/$arch-$policy.txt
        rm -f "$file"
        echo "cost: $policy on $arch" >&2
        : >"$file.new"
        for ((i = 0; i < PHASES; i++)); do
            goal=run
            if ((i > 0)); then goal=justrun; fi # the same image
            if ! "$MAKE" -s "$goal" A=apps/sched-tests/cost ARCH="$arch" FEATURES="$policy" SCALE="$SCALE" \
                SMP="$SMP" TIMING="$TIMING" TIMEOUT="$TIMEOUT" TICK_PHASE=$((1000 * i / PHASES)) >>"$file.new" 2>&1; then
                tail -n 20 "$file.new" >&2
                exit 1
            fi
        done
        tr -d '\r' <"$file.new" | grep -E '^SCHED-(COST|RUN) ' >"$file"
        rm "$file.new"
        files+=("$file")
    done
done

# The lines hold no quotes nor commas within their values. What both tables are made of: of
# each figure the least, the sum, the most and how many there are.
# shellcheck disable=SC2016
value='
    function value(key,    v) {
        if (!match($0, "\"" key "\":[^,}]*")) return ""
        v = substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
        gsub(/"/, "", v)
        return v
    }
    function mean(f) { return sprintf("%.1f", sum[f] / runs[f]) }
    /^SCHED-COST / {
        arch = value("arch"); size = value("tasks"); phase = value("phase")
        label = value("sched") (phase == "run" ? "" : " " phase)
        unit = value("timing") == "icount" ? "instructions" : "ns"
        cost = value("instructions_per_yield") value("ns_per_yield")
        f = arch "," value("smp") "," value("timing") "," value("scale") "," label "," size "," unit
        if (!(f in runs)) { figures[++nfigures] = f; first[f] = least[f] = most[f] = cost }
        if (cost + 0 < least[f] + 0) least[f] = cost
        if (cost + 0 > most[f] + 0) most[f] = cost
        sum[f] += cost
        runs[f]++
        if (!(arch in arches)) { arches[arch]; order[++narches] = arch }
        if (!(size in known)) { known[size]; title[++sizes] = size }
        if (!((arch, label) in seen)) { seen[arch, label]; rows[arch, ++count[arch]] = label }
        figure[arch, label, size] = f
    }'
# shellcheck disable=SC2016
table='
    function row(label, cell,    i, line) {
        line = markdown ? "| " label : sprintf("%-18s", label)
        for (i = 1; i <= sizes; i++) line = line (markdown ? " | " cell[i] : sprintf("%12s", cell[i]))
        print line (markdown ? " |" : "")
    }
    END {
        for (a = 1; a <= narches; a++) {
            arch = order[a]
            print (a > 1 ? "\n" : "") (markdown ? "## " : "") arch ": " unit " per yield, by the number of tasks\n"
            row("scheduler", title)
            if (markdown) { for (line = "|---|"; i++ < sizes;) line = line "---:|"; print line; i = 0 }
            for (r = 1; r <= count[arch]; r++) {
                for (s = 1; s <= sizes; s++) cell[s] = mean(figure[arch, rows[arch, r], title[s]])
                row(rows[arch, r], cell)
            }
        }
    }'
# shellcheck disable=SC2016
csv='
    END {
        print "arch,smp,timing,scale,scheduler,tasks,unit,value,min,mean,max,phases"
        for (i = 1; i <= nfigures; i++) {
            f = figures[i]
            print f "," first[f] "," least[f] "," mean(f) "," most[f] "," runs[f]
        }
    }'
awk -v markdown=1 "$value $table" "${files[@]}" >"$out/table.md"
awk -v markdown=0 "$value $table" "${files[@]}"
mkdir -p "$(dirname "$COST_OUT")"
awk "$value $csv" "${files[@]}" >"$COST_OUT"
echo
echo "cost: as Markdown in $out/table.md, as CSV in $COST_OUT"
