#!/usr/bin/env bash
# Prints the allowed word that the user probably meant.
# In:  $1: the word; $2...: the allowed words
# Out: the nearest of them, if at most a third of its letters are wrong, missing, surplus or swapped
#      (Damerau 1964), ignoring case; or the only one that the word begins or ends
set -euo pipefail
((${#1} <= 64)) || exit 0 # nothing is near that
awk -v word="$1" '
    function least(a, b) { return a < b ? a : b }
    function distance(a, b,    i, j, d, cost) {
        for (i = 0; i <= length(a); i++) d[i, 0] = i
        for (j = 0; j <= length(b); j++) d[0, j] = j
        for (i = 1; i <= length(a); i++)
            for (j = 1; j <= length(b); j++) {
                cost = substr(a, i, 1) != substr(b, j, 1)
                d[i, j] = least(d[i - 1, j - 1] + cost, 1 + least(d[i - 1, j], d[i, j - 1]))
                if (i > 1 && j > 1 && substr(a, i, 1) == substr(b, j - 1, 1) && substr(a, i - 1, 1) == substr(b, j, 1))
                    d[i, j] = least(d[i, j], d[i - 2, j - 2] + 1)
            }
        return d[length(a), length(b)]
    }
    BEGIN {
        word = tolower(word)
        limit = length(word) > 2 ? int((length(word) + 2) / 3) : 0
        best = limit
        for (k = 2; k < ARGC; k++) {
            known = tolower(ARGV[k])
            far = distance(word, known)
            if (far < best || (far == best && near == "")) { best = far; near = ARGV[k] }
            if (length(word) > 1 && (index(known, word) == 1 || (length(known) > length(word) && substr(known, length(known) - length(word) + 1) == word))) { parts++; part = ARGV[k] }
        }
        if (near != "" && best <= limit) print near
        else if (parts == 1) print part
    }' "$@"
