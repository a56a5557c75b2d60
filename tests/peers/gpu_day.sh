#!/usr/bin/env bash
# All that is to be learned from a device in ten minutes, in order of worth: what it is, whether texts are exact, the tests, its sizes,
# its speed with true shapes. Each part has a time limit and may fail; the report is complete after each of them.
#   gpu_day.sh BUILD FOLDER          BUILD: a build with AUSPEX_PORTABLE, or what --pack made of one; FOLDER gets report.md and logs/
#   gpu_day.sh --pack BUILD FILE     FILE (.tar.xz): the programs without their symbols, with all that they load, to be carried
# Run in a copy of the repository (tests read tests/data). The machine needs libc, libstdc++ and the Vulkan loader, no network.
# Where llama-bench is on the PATH, both sides run the same files, which are made while the tests run (9 GB in FOLDER/models).
#   cmake --preset release -B build/day -DAUSPEX_PORTABLE=ON -DAUSPEX_BUILD_TESTS=ON && cmake --build build/day
# SMALL=1: small shapes and few tests, to try the script itself on a slow driver.
set -u
cd "$(dirname "$0")/../.." || exit 1
programs=(round accept kernels session model cache tensor api tuning device) # in order of worth, too
declare -A shards=([session]=16 [kernels]=8 [model]=4 [accept]=3 [tuning]=3 [device]=8) # run beside each other

if [ "${1:-}" = --pack ]; then
    build=${2:?usage: gpu_day.sh --pack BUILD FILE}
    file=${3:?usage: gpu_day.sh --pack BUILD FILE}
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/bin" "$work/tests/bin"
    strip -s -o "$work/bin/auspex" "$build/bin/auspex" || exit 1
    for program in "${programs[@]}"; do strip -s -o "$work/tests/bin/test_$program" "$build/tests/bin/test_$program" || exit 1; done
    cp -rL "$build/share" "$build/lib" "$work/"
    rm -f "$work"/lib/*.a "$work"/lib/libauspex.so*
    tar cf - --sort=name -C "$work" . | xz -T1 --lzma2=preset=4,dict=256MiB > "$file" # every program holds the same shaders
    ls -l "$file"
    exit
fi

build=$(realpath "${1:?usage: gpu_day.sh BUILD FOLDER}")
mkdir -p "${2:?usage: gpu_day.sh BUILD FOLDER}/logs"
folder=$(realpath "$2")
report=$folder/report.md
auspex=$build/bin/auspex
export XDG_CACHE_HOME=$folder/cache
begun=$(date +%s)
limit=${LIMIT:-540}

# part NAME SECONDS COMMAND: what it said goes to the report, its end at least.
part() {
    local name=$1 seconds=$2 command=$3
    local left=$((limit - ($(date +%s) - begun)))
    local log
    log=$folder/logs/$(echo "$name" | tr -c 'a-z0-9\n' _).log
    if [ "$left" -lt 5 ]; then
        printf '\n## %s\n\nNot run: the time was up.\n' "$name" >> "$report"
        return
    fi
    [ "$seconds" -lt "$left" ] || seconds=$left
    local start=$(date +%s%N)
    if declare -F "$command" > /dev/null; then
        "$command" "$((seconds - 5))" > "$log" 2>&1 < /dev/null # a function keeps to its time by itself
    else
        timeout -k 5 "$seconds" bash -c "$command" > "$log" 2>&1 < /dev/null
    fi
    local code=$?
    local took=$((($(date +%s%N) - start) / 1000000))
    local verdict="exit code $code"
    [ $code -eq 0 ] && verdict="ended well"
    [ $code -eq 124 ] && verdict="was stopped after $seconds s"
    # shellcheck disable=SC2016
    printf '\n## %s\n\n`%s`\n\n%s, %d.%03d s\n\n```\n%s\n```\n' "$name" "${command//"$build"/BUILD}" "$verdict" $((took / 1000)) $((took % 1000)) \
        "$(tail -n 70 "$log" | sed 's/\x1b\[[0-9;]*m//g; s/.*\r//' | cut -c1-400)" >> "$report"
    echo "$name: $verdict, $((took / 1000)) s"
}

# Every test program in shards beside each other, as many as there are processors; those that the time is up for are not begun.
suite() {
    export time_up=$(($(date +%s) + ${1:-150}))
    # shellcheck disable=SC2016
    for program in "${programs[@]}"; do
        for ((i = 0; i < ${shards[$program]:-1}; i++)); do echo "$program $i ${shards[$program]:-1}"; done
    done | BUILD=$build LOGS=$folder/logs xargs -P "$(nproc)" -L 1 bash -c '
        log=$LOGS/test_$0.$1.log
        left=$((time_up - $(date +%s)))
        [ "$left" -gt 0 ] || { echo "$0 $1/$2: not run"; exit 1; }
        GTEST_SHARD_INDEX=$1 GTEST_TOTAL_SHARDS=$2 timeout -k 5 "$left" "$BUILD/tests/bin/test_$0" ${FILTER:+--gtest_filter="$FILTER"} > "$log" 2>&1 < /dev/null
        code=$?
        echo "$0 $1/$2: exit code $code, $(grep -c "^\[       OK" "$log") passed, $(grep -c "^\[  SKIPPED .*ms" "$log") skipped, $(grep "^\[  FAILED  \].*ms" "$log" | cut -c14- | tr "\n" ";")"
        [ $code -eq 0 ] || { echo "  last of it: $(grep "^\[ RUN" "$log" | tail -n 1)"; exit 1; }'
}

# `tune` chooses outputs by passes of 4 and 5 rows. What 16 rows do with others is asked for by changing what it kept.
many_outputs() {
    local shape=$three,dtype=bf16
    timeout $(($1 / 2)) "$auspex" tune --shape "$shape" > /dev/null || return
    for outs in 2 4 2 4; do
        sed -i "s/\"many_outs\": *[0-9]*/\"many_outs\": $outs/" "$XDG_CACHE_HOME/auspex/tuning.json"
        echo "$outs outputs:"
        timeout $(($1 / 8)) "$auspex" bench --shape "$shape" -p 0 -n 0 -r 5 --rows 8,16 --no-draft || return
    done
}

printf '# A day with a device\n\n%s, commit %s\n' "$(date -u +%F)" "$(git rev-parse --short HEAD 2> /dev/null || echo unknown)" > "$report"
if [ -n "${SMALL:-}" ]; then
    one=d=256,L=2,ffn=512,heads=4,kv_heads=2,head_dim=64,vocab=1000
    three=d=384,L=2,ffn=512,heads=3,kv_heads=1,head_dim=128,vocab=1000
    prompt=64
    export FILTER='Copy.*:RoundByHand.*:GreedyLenient.*:Speculation.greedy*'
else
    one=llama-3.2-1b
    three=llama-3.2-3b
    prompt=512
fi
rows=1,2,3,4,5,6,8,12,16

part 'device' 20 "$auspex info; nvidia-smi 2> /dev/null | head -n 20; nproc"
part 'a story, with drafts and without' 60 "$auspex run"
part 'texts are equal, bit for bit' 90 "
    set -e
    tell() { $auspex run --no-stop --color never -n 60 -p 'Once upon a time there was a fox' \"\$@\" 2> /dev/null; }
    plain=\$(tell --no-draft); sampled=\$(tell --no-draft --temp 1 --acceptance coupled -s 3)
    for k in 1 2 3 4 8; do
        [ \"\$(tell --draft-len \$k)\" = \"\$plain\" ] && [ \"\$(tell --draft-len \$k --temp 1 --acceptance coupled -s 3)\" = \"\$sampled\" ] || exit 1
        echo \"K \$k: equal\"
    done
    for drafter in ngram lookup hybrid; do [ \"\$(tell --drafter \$drafter)\" = \"\$plain\" ] || exit 1; echo \"\$drafter: equal\"; done"
part 'selftest' 90 "$auspex selftest"
models=$folder/models
if command -v llama-bench > /dev/null && [ -z "${SMALL:-}" ]; then
    mkdir -p "$models"
    { python3 tests/peers/true_shapes.py "$models" 3b && "$auspex" quantize "$models/3b" "$models/3b-bf16.gguf" --type bf16 &&
        "$auspex" quantize "$models/3b" "$models/3b-q4_0.gguf" --type q4_0; } > "$folder/logs/models_3b.log" 2>&1 &
    { python3 tests/peers/true_shapes.py "$models" 1b && "$auspex" quantize "$models/1b" "$models/1b-q4_0.gguf" --type q4_0; } > "$folder/logs/models_1b.log" 2>&1 &
fi
part 'the tests' 200 suite
wait
part 'sizes of the bundled pair' 60 "$auspex tune"
part 'passes of 3B, bf16' 60 "$auspex bench --shape $three,dtype=bf16 -p $prompt -n 32 -r 3 --rows $rows --stages --no-draft"
part 'passes of 1B, q4_0' 45 "$auspex bench --shape $one,dtype=q4_0 -p $prompt -n 32 -r 3 --rows $rows --stages --no-draft"
part 'passes of 3B, q4_0' 45 "$auspex bench --shape $three,dtype=q4_0 -p $prompt -n 32 -r 3 --rows $rows --no-draft"
part 'passes of 1B, bf16' 45 "$auspex bench --shape $one,dtype=bf16 -p $prompt -n 32 -r 3 --rows $rows --no-draft"
part 'sizes of 3B bf16 and its q4_0 copy' 40 "$auspex tune --shape $three,dtype=bf16 --self-quant q4_0"
part 'self-drafts at alpha 0.95, 3B bf16' 45 \
    "$auspex bench --shape $three,dtype=bf16 --self-quant q4_0 --alpha 0.95 -p 64 -n 64 -r 3 --rows 0 --drafter self,auto --draft-len 2,3,4,6"
part 'sizes of 3B bf16 and 1B q4_0' 40 "$auspex tune --shape $three,dtype=bf16 --draft-shape $one,dtype=q4_0"
for alpha in 0.7 0.8 0.9; do
    part "speculation at alpha $alpha, 3B bf16 and 1B q4_0" 45 \
        "$auspex bench --shape $three,dtype=bf16 --draft-shape $one,dtype=q4_0 --alpha $alpha -p 64 -n 64 -r 3 --rows 0 --drafter model,auto --draft-len 2,3,4,6"
done
part 'many sequences of the bundled pair' 60 "$auspex bench --concurrency 1,2,4,8,16 -r 3"
part 'the bundled pair' 60 "$auspex bench -p $prompt -n 64 -r 3 --rows $rows"
part '16 rows with 2 and with 4 outputs, 3B bf16' 100 many_outputs
# The same files on both sides, in turn.
if command -v llama-bench > /dev/null; then
    for model in 3b-bf16 3b-q4_0 1b-q4_0; do
        for turn in 1 2; do
            part "ours, $model, turn $turn" 40 "$auspex bench -m $models/$model.gguf -p 512 -n 64 -r 3 --rows 0 --no-draft"
            part "llama.cpp, $model, turn $turn" 40 "llama-bench -m $models/$model.gguf -p 512 -n 64 -r 3 -ngl 99"
        done
    done
fi
rm -rf "$XDG_CACHE_HOME" "$models"
echo "report: $report"
