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
with "$icd" "$build/tests/bin/test_accept" --gtest_brief=1 --gtest_filter='OneCandidate.*:RulesTest.*'
with "$icd" "$build/tests/bin/test_kernels" --gtest_brief=1 --gtest_filter='ApplyCommands.*:Copy.*:Propose.*:Rows.*:ReplayRows.*:Rmsnorm.*:Swiglu.*'

for drafts in 0 3; do
    for driver in "$lavapipe" "$icd"; do
        with "$driver" "$build/bin/auspex" run --no-stop --color never --temp 0 -n 24 --draft-len $drafts -p "Once upon a time there was a fox" \
            < /dev/null > "$work/text.$drafts.$([ "$driver" = "$icd" ] && echo swiftshader || echo lavapipe)" 2> "$work/err" || { cat "$work/err" >&2; exit 1; }
    done
    cmp "$work/text.$drafts.lavapipe" "$work/text.$drafts.swiftshader"
done
[ -s "$work/text.0.swiftshader" ] || { echo "no text came" >&2; exit 1; }
cmp "$work/text.0.swiftshader" "$work/text.3.swiftshader"
echo "SwiftShader: programs pass, texts are lavapipe's"
