#!/usr/bin/env bash
# Runs a server in a guest and its clients on the host. Called by make (scripts/serve.mk).
# In:  $1 port, then options of tools/http-load; environment: GUEST, the command that boots it
# Out: the guest's console, and the clients' JSON line; exit 0 only without errors, with the server's
#      memory as before, and if the guest has ended by itself
set -euo pipefail
port=$1
shift
bash -c "exec env $GUEST" &
guest=$!
trap 'kill "$guest" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
status=0
target/tool/http-load --port "$port" --quit "$@" || status=$?
# Clients that gave up have not told the guest to end.
((status == 0)) || kill "$guest" 2>/dev/null || true
wait "$guest" || { ((status)) || status=$?; }
trap - EXIT
exit "$status"
