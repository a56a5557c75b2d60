#!/usr/bin/env bash
# All that is to be learned from a device in ten minutes, in order of worth: what it is, whether texts are exact, the tests, its sizes,
# its speed with true shapes. Each part has a time limit and may fail; the report is complete after each of them.
#   gpu_day.sh BUILD FOLDER          BUILD: a build with AUSPEX_PORTABLE, or what --pack made of one; FOLDER gets report.md and logs/
#   gpu_day.sh --pack BUILD FILE     FILE (.tar.xz): the programs without their symbols, with all that they load, to be carried
# Run in a copy of the repository (tests read tests/data). The machine needs libc, libstdc++ and the Vulkan loader, no network.
#   cmake --preset release -B build/day -DAUSPEX_PORTABLE=ON -DAUSPEX_BUILD_TESTS=ON && cmake --build build/day
# SMALL=1: small shapes and few tests, to try the script itself on a slow driver.
set -u
cd "$(dirname "$0")/../.."
programs=(device round accept kernels model tuning session)

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
    tar cf - -C "$work" . | xz -T0 -2 > "$file"
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
    timeout -k 5 "$seconds" bash -c "$command" > "$log" 2>&1 < /dev/null
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

printf '# A day with a device\n\n%s, commit %s\n' "$(date -u +%F)" "$(git rev-parse --short HEAD 2> /dev/null || echo unknown)" > "$report"
if [ -n "${SMALL:-}" ]; then
    one=d=256,L=2,ffn=512,heads=4,kv_heads=2,head_dim=64,vocab=1000
    three=d=384,L=2,ffn=512,heads=3,kv_heads=1,head_dim=128,vocab=1000
    prompt=64
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
part 'tests of the parts' 90 "
    failed=0
    for program in device round kernels; do $build/tests/bin/test_\$program --gtest_brief=1 ${SMALL:+--gtest_filter=Copy.*:RoundByHand.*:Device*} || failed=1; done
    exit \$failed"
part 'sizes of the bundled pair' 60 "$auspex tune"
part 'passes of 3B, bf16' 60 "$auspex bench --shape $three,dtype=bf16 -p $prompt -n 32 -r 3 --rows $rows --stages --no-draft"
part 'passes of 1B, q4_0' 45 "$auspex bench --shape $one,dtype=q4_0 -p $prompt -n 32 -r 3 --rows $rows --stages --no-draft"
part 'passes of 3B, q4_0' 45 "$auspex bench --shape $three,dtype=q4_0 -p $prompt -n 32 -r 3 --rows $rows --no-draft"
part 'passes of 1B, bf16' 45 "$auspex bench --shape $one,dtype=bf16 -p $prompt -n 32 -r 3 --rows $rows --no-draft"
for alpha in 0.7 0.8 0.9; do
    part "speculation at alpha $alpha, 3B bf16 and 1B q4_0" 45 \
        "$auspex bench --shape $three,dtype=bf16 --draft-shape $one,dtype=q4_0 --alpha $alpha -p 64 -n 64 -r 3 --rows 0 --drafter model,auto --draft-len 2,3,4,6"
done
part 'the bundled pair' 60 "$auspex bench -p $prompt -n 64 -r 3 --rows $rows"
part 'tests of the whole' 120 "
    failed=0
    for program in accept model tuning session; do
        $build/tests/bin/test_\$program --gtest_brief=1 --gtest_filter='${SMALL:+GreedyLenient.*:Speculation.greedy*}${SMALL:-*:-*survives_random_damage*}' || failed=1
    done
    exit \$failed"
part 'llama.cpp' 60 "command -v llama-bench > /dev/null || { echo 'there is none here'; exit 0; }; llama-bench --help > /dev/null; llama-bench -m \"\${LLAMA_MODEL:?a GGUF file}\" -p 512 -n 64"
rm -rf "$XDG_CACHE_HOME"
echo "report: $report"
