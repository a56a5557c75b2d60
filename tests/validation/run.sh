#!/usr/bin/env bash
# Runs the suite of a build under the validation layer, core checks first, then synchronization; any message is a failure.
#   tests/validation/run.sh BUILD_FOLDER [core|sync] [test, e.g. session]...
# GTEST_FILTER is heeded. A layer of 1.4 (not in Debian 12) also sees hazards between in-place accesses. Layers before 1.3.243 may crash
# where two devices free command buffers at once, as the worker's and the engine's do at a start: they share a table of labels that
# nothing locks (KhronosGroup/Vulkan-ValidationLayers, issue 5172). That is no finding about us; run again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD_FOLDER [core|sync] [test]...}" && pwd); shift
export XDG_CACHE_HOME=$build/tests/cache MESA_SHADER_CACHE_DIR=$build/tests/cache # test programs see to it by themselves
modes=(core sync)
case ${1:-} in core | sync) modes=("$1"); shift ;; esac

read -r family version < <("$build/tests/bin/planted_fault" layer)
echo "validation layer $version"
programs=()
for program in "$build"/tests/bin/test_*; do
    name=${program##*/test_}
    case $name in
        *_long | validation) continue ;; # `validation` watches by itself
        cli) [ "$family" = 1.3 ] || continue ;; # layers of 1.4 announce their log file on stdout, where it looks for ours
    esac
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    programs+=("$program")
done

scratch=$(mktemp -d)
trap 'kill ${reader:-} 2> /dev/null || true; rm -rf "$scratch"' EXIT
failed=0
watched() {
    local begin=$SECONDS
    if VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_SETTINGS_PATH=$scratch/settings "$@" > "$scratch/output" 2>&1; then
        echo "$mode: ${1##*/} ${*:2}: $((SECONDS - begin)) s"
    else
        echo "$mode: ${1##*/} ${*:2}: FAILED"
        grep -A 15 ': Failure$' "$scratch/output" | head -n 200 || true
        tail -n 40 "$scratch/output"
        failed=1
    fi
}

for mode in "${modes[@]}"; do
    settings=$here/$mode.settings
    [ "$mode" = core ] || settings=$here/sync_$family.settings
    # Programs start programs: a pipe takes what each would overwrite in a file.
    mkfifo "$scratch/pipe"
    exec 3<> "$scratch/pipe"
    cat <&3 >> "$scratch/$mode.log" &
    reader=$!
    sed "s,@LOG@,$scratch/pipe," "$settings" > "$scratch/settings"
    cd "$here/../.."
    # A silent layer is worth nothing before it has spoken once.
    fault=read_after_write
    [ "$mode" = sync ] || fault=binding_beyond_buffer
    watched "$build/tests/bin/planted_fault" $fault
    sleep 1
    if [ ! -s "$scratch/$mode.log" ]; then
        echo "the layer does not report the planted fault $fault"
        exit 1
    fi
    : > "$scratch/$mode.log"
    for program in "${programs[@]}"; do watched "$program"; done
    for flags in "" "--no-draft" "--temp 0.8 --samples 5" "--draft-len 1" "--draft-len 8 -n 200"; do
        # shellcheck disable=SC2086
        [ $# -ne 0 ] || watched "$build/bin/auspex" run -n 40 $flags
    done
    sleep 1
    kill $reader
    wait $reader 2> /dev/null || true
    exec 3>&-
    rm "$scratch/pipe"
    if [ -s "$scratch/$mode.log" ]; then
        echo "the layer's messages ($mode):"
        head -c 20000 "$scratch/$mode.log"
        failed=1
    else
        echo "$mode: no messages"
    fi
done
exit $failed
