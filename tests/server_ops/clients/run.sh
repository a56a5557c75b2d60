#!/usr/bin/env bash
# The clients of OpenAI for Python and Node against `auspex serve`, as far as they are installed.
#   run.sh PROGRAM [FOLDER]     FOLDER: where `npm install openai@6` was run. PYTHON: with the package openai; another than python3.
#                               Exit code 77: neither is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1") work=$(mktemp -d) key=key-of-the-test ran=0
stop() { for pid in $(jobs -p); do kill "$pid" 2> /dev/null || true; done; wait; rm -rf "$work"; }
trap stop EXIT

start() { # NAME FLAG… → the address in $url
    "$program" serve --port 0 --api-key "$key" "${@:2}" > "$work/$1" 2>&1 < /dev/null &
    for _ in $(seq 600); do
        url=$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$work/$1") && return
        sleep 0.1
    done
    cat "$work/$1" >&2
    return 1
}
start wide; wide=$url/v1
start full --slots 1 --queue 0; full=$url/v1

${PYTHON:-python3} "$here/openai_python.py" "$wide" "$key" "$full" && ran=1 || [ $? = 77 ]
if [ $# -gt 1 ]; then
    node "$here/openai_node.mjs" "$2" "$wide" "$key" "$full"
    ran=1
fi
[ $ran = 1 ] || exit 77
