#!/usr/bin/env bash
# Fuzzes one target or all: tests/fuzz/run.sh TARGET|all EXECUTIONS. Needs clang; builds the preset `fuzz` first unless
# AUSPEX_FUZZ_NO_BUILD is set. What was learned stays in build/fuzz/learned/, findings lie in build/fuzz/findings/, one
# line per run is added to build/fuzz/campaign.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -ne 2 ]; then
    echo "usage: $0 TARGET|all EXECUTIONS" >&2
    exit 2
fi
targets=("$1")
if [ "$1" = all ]; then
    targets=(safetensors blocks sentencepiece config_json index_json tokenizer_text gguf tokenizer_json) # quick ones first
fi
if [ -z "${AUSPEX_FUZZ_NO_BUILD:-}" ]; then
    cmake --preset fuzz > /dev/null
    cmake --build --preset fuzz
fi
# Without stacks per allocation and a search for leaks after each input, ten times as many inputs per second. Leaks are for
# the suite to find (preset asan); where a block came from, for ASAN_OPTIONS=malloc_context_size=30 with the finding alone.
export ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=4:detect_leaks=0:${ASAN_OPTIONS:-}
mkdir -p build/fuzz/findings
failed=0
for target in "${targets[@]}"; do
    learned=build/fuzz/learned/$target log=build/fuzz/$target.log
    mkdir -p "$learned"
    options=(-runs="$2" -timeout=2 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target-")
    case $target in # what needs no more takes much longer with it
    tokenizer_text) options+=(-max_len=128) ;;
    index_json) options+=(-max_len=1024) ;;
    esac
    dictionary=tests/fuzz/dictionaries/$target.dict
    if [ -f "$dictionary" ]; then options+=(-dict="$dictionary"); fi
    status=0
    nice -n 10 "build/fuzz/bin/fuzz_$target" "${options[@]}" "$learned" "tests/fuzz/corpus/$target" \
        "tests/fuzz/regressions/$target" > "$log" 2>&1 || status=$?
    case $status in
    0) outcome="no finding" ;;
    72) outcome="no finding, interrupted" ;; # libFuzzer's exit code after SIGINT
    *) outcome=FINDING failed=1 ;;
    esac
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    echo "$target: ${executed:-0} executions, ${rate:-0}/s, $outcome" | tee -a build/fuzz/campaign.txt
done
exit $failed
