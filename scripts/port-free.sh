#!/usr/bin/env bash
# Checks that a port of this host is free, before a guest is booted behind it. Called by make
# (scripts/serve.mk).
# In:  $1 port
# Out: one line that says where the guest will be reached; or exit 1 and one that says why not
set -euo pipefail
port=$1
# The port is in use if a connection succeeds; it is closed at once. QEMU refuses a port that cannot be
# bound for another reason.
if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    echo "serve: PORT=$port: a program listens on 127.0.0.1:$port already; allowed is a port that is free" >&2
    exit 1
fi
echo "serve: the guest's port 5555 is http://127.0.0.1:$port/ from when it says so; Ctrl-C stops it"
