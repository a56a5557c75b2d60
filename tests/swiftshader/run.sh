#!/usr/bin/env bash
# The engine on SwiftShader, a second driver that executes: subgroups of 4, no f16, no int64, 256 invocations. Small programs pass, and
# greedy texts are lavapipe's, which sums in another order, byte for byte.
#   run.sh BUILD FOLDER     FOLDER: where SwiftShader is kept (get.sh). Exit code 77: it cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1")
icd=$("$here/get.sh" "$2") || exit $?
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lavapipe=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json | head -n 1)

with() { # ICD COMMAND…
    env -u VK_DRIVER_FILES NODEVICE_SELECT=1 VK_ICD_FILENAMES="$1" HOME="$work" XDG_CACHE_HOME="$work" "${@:2}"
}
with "$icd" "$build/bin/auspex" info | grep -q SwiftShader || { echo "the device is not SwiftShader" >&2; exit 1; }

cd "$here/../.."
with "$icd" "$build/tests/bin/test_round" --gtest_brief=1
with "$icd" "$build/tests/bin/test_accept" --gtest_brief=1 --gtest_filter='OneCandidate.*:GreedyLenient.*:Noise.*:Twin.*'
with "$icd" "$build/tests/bin/test_kernels" --gtest_brief=1 --gtest_filter='ApplyCommands.*:Copy.*:Propose.*:Rows.*:ReplayRows.*:Rmsnorm.*:Swiglu.*'

tell() { # ICD DRAFTS FILE
    with "$1" "$build/bin/auspex" run --no-stop --color never --temp 0 -n 8 --draft-len "$2" -p "Once upon a time" < /dev/null > "$3" 2> "$3.err" ||
        { cat "$3.err" >&2; return 1; }
}
for drafts in 0 3; do
    tell "$lavapipe" $drafts "$work/lavapipe.$drafts"
    tell "$icd" $drafts "$work/swiftshader.$drafts" &
    told[drafts]=$!
done
for drafts in 0 3; do
    wait "${told[drafts]}"
    cmp "$work/lavapipe.$drafts" "$work/swiftshader.$drafts"
done
[ -s "$work/swiftshader.0" ] || { echo "no text came" >&2; exit 1; }
cmp "$work/swiftshader.0" "$work/swiftshader.3"
echo "SwiftShader: programs pass, texts are lavapipe's"
