#!/usr/bin/env bash
# Every module but those for matrix units and those of 8-bit products, which no device of Apple's has in one instruction, becomes Metal
# (MSL 2.4) by SPIRV-Cross, as MoltenVK translates them; and there every float sum, difference and product is a call of a function that no
# optimiser may look into, so that none is fused.
#   msl.sh BUILD     Exit code 77: SPIRV-Cross (Debian's spirv-cross) is missing.
set -euo pipefail
matrix=$(cd "$(dirname "$0")/../../shaders/matrix" && pwd)
modules=("${1:?usage: msl.sh BUILD}"/shaders/embedded_shader/*.opt.spv)
if ! command -v spirv-cross > /dev/null; then
    echo "Metal's modules were not made: there is no spirv-cross" >&2
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

n=0 n_calls=0 faults=0
fault() {
    echo "$1" >&2
    faults=$((faults + 1))
}
count() { { grep -o "$@" || true; } | wc -l; }
for module in "${modules[@]}"; do
    name=$(basename "$module" .opt.spv)
    [ ! -e "$matrix/$name.spv" ] && [[ $name != *.int8.* ]] || continue
    n=$((n + 1))
    if ! spirv-cross --msl --msl-version 20400 "$module" --output "$work/msl" 2> "$work/err"; then
        fault "$name does not translate: $(tail -n 1 "$work/err")"
        continue
    fi
    spirv-dis --no-color "$module" > "$work/spirv"
    for op in FAdd FSub FMul; do
        asked=$(count " = Op$op " "$work/spirv")
        calls=$(count "spv$op(" "$work/msl")
        defined=$(count "T spv$op(" "$work/msl")
        hidden=$(count "^\[\[clang::optnone\]\] T spv$op(" "$work/msl")
        [ $((calls - defined)) -eq "$asked" ] || fault "$name: $asked Op$op became $((calls - defined)) calls of spv$op"
        [ "$hidden" -eq "$defined" ] || fault "$name: spv$op is not marked optnone"
        n_calls=$((n_calls + calls - defined))
    done
done
[ $n -ge 100 ] || fault "only $n modules were found"
echo "$n modules, $n_calls calls in place of sums, differences and products; $faults faults"
[ $faults -eq 0 ]
