#!/usr/bin/env bash
# Prints the section of scripts/help.txt for a goal. Called by make (`make help`).
# In:  $1 the goal, or nothing; environment: APPS POLICIES FEATURES, each a list of words
# Out: the lines of that section, with each line @LIST replaced by that list
set -euo pipefail
cd "$(dirname "$0")/.."
awk -v goal="${1:-help}" '
    /^== / { is_wanted = $2 == goal; next }
    !is_wanted { next }
    $1 !~ /^@/ { print; next }
    {
        indent = $0
        sub(/@.*/, "", indent)
        line = indent
        count = split(ENVIRON[substr($1, 2)], words, " ")
        for (i = 1; i <= count; i++) {
            if (length(line) + length(words[i]) > 79) { print line; line = indent }
            line = line (line == indent ? "" : " ") words[i]
        }
        print line
    }' scripts/help.txt
