#!/usr/bin/env bash
# How fast we are on this device, beside llama.cpp on the same device with the same file, and how near to what the memory can
# do: one table each.
#   tests/peers/speed.sh PROGRAM_OR_BUILD_FOLDER FOLDER [OPTIONS of speed.py: --help]
# FOLDER gets the models, once: 0.7 GB, and 12 GB for the true shapes of Llama-3.2 beside llama.cpp (--files). Needs bash and
# python3 without packages; llama-bench where it is installed (LLAMA_BENCH names another).
set -euo pipefail
program=${1:?usage: speed.sh PROGRAM_OR_BUILD_FOLDER FOLDER [OPTIONS]}
folder=${2:?usage: speed.sh PROGRAM_OR_BUILD_FOLDER FOLDER [OPTIONS]}
shift 2
if [ -d "$program" ]; then
    program=$(find "$program" -type f -name auspex -perm -u+x | head -n 1)
fi
[ -x "$program" ] || { echo "speed.sh: found no program, expected auspex; build it first" >&2; exit 2; }
mkdir -p "$folder"
exec python3 "$(dirname "$0")/speed.py" "$program" "$folder" "$@"
