#!/usr/bin/env bash
# Refuses a profile that does not fit the guest that make builds it into. Called by make
# (scripts/kernel.mk).
# In:  $1 the file, as it was typed, and the guest: $2 app $3 ARCH $4 SCALE $5 TIMING
#      environment: PBG_TOOL, the command that builds what reads profiles and runs it, or
#      nothing: then all profiles pass while it has to be built; SMP, if it is not 1
# Out: exit 0, or 1 and one line that says what was given and what is allowed. With PBG_TOOL a line
#      on stderr says if the order of the profile was found for another number of CPUs
set -euo pipefail
cd "$(dirname "$0")/.."
readonly BUILT=target/tool/pbg-save

# Cargo would ask the same of these files, and take its time.
newer=all
if [[ -x $BUILT ]]; then
    newer=$(find Cargo.toml Cargo.lock tools/pbg-save modules/{pbg-profile,sched-core}/{Cargo.toml,src} -type f -newer "$BUILT" -print -quit)
fi
tool=("$BUILT")
if [[ -n $newer ]]; then
    [[ -n ${PBG_TOOL:-} ]] || exit 0
    echo "check: building pbg-save, which reads profiles"
    read -ra tool <<<"$PBG_TOOL"
fi
said=$("${tool[@]}" --check "$@" ${PBG_TOOL:+"${SMP:-1}"}) && exit 0
# If the tool has said nothing, cargo has.
[[ -z $said ]] ||
    echo "PROFILE=$1: $said; allowed is a profile of $2 with ARCH=$3 SCALE=$4 TIMING=$5" >&2
exit 1
