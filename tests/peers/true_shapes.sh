#!/usr/bin/env bash
# The true shapes of Llama-3.2-3B (bf16) and 1B (4-bit draft) with random weights: speculative greedy text equals plain
# greedy text, and the memory that `info` reckons is what `run` takes.
#   true_shapes.sh PROGRAM FOLDER     FOLDER gets 9 GB of files, once; needs 12 GB of free memory
set -euo pipefail
program=$(realpath "${1:?usage: true_shapes.sh PROGRAM FOLDER}")
folder=${2:?usage: true_shapes.sh PROGRAM FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
for size in 1b 3b; do
    [ -e "$folder/$size/config.json" ] || { python3 "$here/true_shapes.py" "$folder"; break; }
done
models=(-m "$folder/3b" -md "$folder/1b" --draft-quant q4_0 -c 512)
prompt=(--tokens 128000,300,1234,56789,127999,42 --no-stop -n "${TOKENS:-12}" --json)
plan=$("$program" info "${models[@]}" --json)
# shellcheck disable=SC2016
check='
import json, sys
plan, spec, plain = (json.loads(text) for text in sys.argv[1:])
tokens = [c["tokens"] for c in spec["completions"]]
if tokens != [c["tokens"] for c in plain["completions"]]:
    sys.exit("speculative text differs from plain text")
planned, taken = plan["memory"]["total"], spec["device"]["memory_bytes"]
print(f"greedy speculative = plain: {len(tokens[0])} tokens, {spec['"'"'speculation'"'"']['"'"'rounds'"'"']} rounds, "
      f"{spec['"'"'timings'"'"']['"'"'draft_n_accepted'"'"']} of {spec['"'"'timings'"'"']['"'"'draft_n'"'"']} drafts accepted")
print(f"memory: planned {planned / 2**20:.1f} MiB, taken {taken / 2**20:.1f} MiB")
if abs(planned - taken) > 0.02 * taken:
    sys.exit("the plan is off by more than 2 %")
'
spec=$("$program" run "${models[@]}" "${prompt[@]}" --draft-len 3)
plain=$("$program" run "${models[@]}" "${prompt[@]}" --no-draft)
python3 -c "$check" "$plan" "$spec" "$plain"
