#!/usr/bin/env bash
# Runs the suite of a build under the validation layer, core checks first, then synchronization; any message is a failure.
#   tests/validation/run.sh BUILD_FOLDER [core|sync] [ctest options, e.g. -R session]
# A layer of 1.4 (not in Debian 12) also sees hazards between in-place accesses and needs a few more seconds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: run.sh BUILD_FOLDER [core|sync] [ctest options]}; shift
modes=(core sync)
case ${1:-} in core | sync) modes=("$1"); shift ;; esac

read -r family version < <("$build/tests/bin/planted_fault" layer)
echo "validation layer $version"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Not for these: `consumers` compiles, `symbols`, `check_*` and the like make no device, `validation` watches by itself.
exclude='^(consumers|symbols|check_layers|check_sizes|validation)$'
# Layers of 1.4 announce their log file on stdout, which the tests of the program's own output cannot have.
[ "$family" = 1.3 ] || exclude="^cli$|$exclude"

failed=0
for mode in "${modes[@]}"; do
    settings=$here/$mode.settings
    [ "$mode" = core ] || settings=$here/sync_$family.settings
    # Many processes, some at once: a pipe takes what each would overwrite in a file.
    mkfifo "$scratch/pipe"
    exec 3<> "$scratch/pipe"
    cat <&3 > "$scratch/$mode.log" &
    reader=$!
    sed "s,@LOG@,$scratch/pipe," "$settings" > "$scratch/settings"
    VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_SETTINGS_PATH=$scratch/settings \
        ctest --test-dir "$build" -LE '^long$' --output-on-failure -E "$exclude" "$@" || failed=1
    if [ "$family" != 1.3 ]; then
        for flags in "" "--no-draft" "--temp 0.8 --samples 5" "--draft-len 1" "--draft-len 8 -n 200"; do
            # shellcheck disable=SC2086
            VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_SETTINGS_PATH=$scratch/settings \
                "$build/bin/auspex" run -n 40 $flags > "$scratch/output" 2>&1 || { cat "$scratch/output"; failed=1; }
        done
    fi
    sleep 1
    kill $reader
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
