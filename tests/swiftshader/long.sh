#!/usr/bin/env bash
# Every test program on SwiftShader, which is far slower than lavapipe and has what GPUs may lack: subgroups of 4, no f16, no int64,
# 256 invocations. Each has a time limit of its own and tells how far it came; two hours in all.
#   long.sh BUILD FOLDER [SECONDS]     FOLDER: where SwiftShader is kept (get.sh). SECONDS: instead of the two hours.
# Exit code 1: a test failed, or a program ended before its tests did; 77: SwiftShader cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: long.sh BUILD FOLDER [SECONDS]}")
icd=$("$here/get.sh" "${2:?usage: long.sh BUILD FOLDER [SECONDS]}") || exit $?
seconds=${3:-7200}
work=$(mktemp -d)
pid= # of the program that runs, and of the group of what it started
trap '[ -z "$pid" ] || kill -9 -- "-$pid" 2> /dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Parts of the time, of 100; a program that is not named gets one. The first are the quick ones.
shares=(fuzz=2 validation=2 round=4 device=6 api=6 tuning=6 model=10 accept=12 cli=10 kernels=17 session=19)
# What is left out, as a filter of Google Test, and why; * is a whole program. What else is too slow is stopped and named (run_program).
left_out=(
    "compilers|*|it asks AMD's compiler and not the device"
    "accept|Candidates.have_the_targets_distribution|its draws had not ended after 84 s on a busy machine"
    "kernels|AttentionBits.do_not_depend*:AttentionBits.of_several_teams*|the four had not ended after 60 s each on a busy machine"
)

cd "$here/../.."
swiftshader=(env -u VK_DRIVER_FILES NODEVICE_SELECT=1 VK_ICD_FILENAMES="$icd")
"${swiftshader[@]}" "$build/bin/auspex" info | grep -q SwiftShader || { echo "the device is not SwiftShader" >&2; exit 1; }

programs=()
for file in "$build"/tests/bin/test_*; do
    name=${file##*/test_}
    case $name in *_long) continue ;; esac
    [[ " ${shares[*]}" == *" $name="* ]] || programs+=("$name=1")
done
programs+=("${shares[@]}")

# run_program NAME FILTER LIMIT LOG: 0: every test ended well. A test that takes over a minute and over a twentieth of the limit is
# stopped, and the others go on. `stopped` has the names of those, and `rest` that of the test in which the time was up.
run_program() {
    local filter=$2 end=$((SECONDS + $3)) log=$4 patience=$(($3 > 1200 ? $3 / 20 : 60)) code since seen n begun
    : > "$log"
    stopped=() rest=
    while :; do
        setsid "${swiftshader[@]}" "$build/tests/bin/test_$1" --gtest_color=no --gtest_filter="$filter" >> "$log" 2>&1 < /dev/null &
        pid=$! since=$SECONDS seen=0 code=0
        while kill -0 $pid; do
            sleep 0.2
            n=$(grep -c '^\[ RUN ' "$log" || true)
            [ "$n" = "$seen" ] || seen=$n since=$SECONDS
            [ $SECONDS -lt $end ] && [ $((SECONDS - since)) -le $patience ] || kill -9 -- -$pid || true
        done 2> /dev/null
        { wait $pid || code=$?; } 2> /dev/null
        pid=
        [ $code -eq 137 ] || return $code
        begun=$(sed -n 's/^\[ RUN      \] //p' "$log")
        if [ $SECONDS -ge $end ]; then
            rest=$(tail -n 1 <<< "$begun")
            return 0
        fi
        stopped+=("$(tail -n 1 <<< "$begun")")
        filter=$2$([[ $2 == *-* ]] && echo ":" || echo "-")$(tr '\n' ':' <<< "$begun")
    done
}

failed=0
for entry in "${programs[@]}"; do
    name=${entry%=*}
    limit=$((seconds * ${entry#*=} / 100))
    filter="*" reasons=""
    for out in "${left_out[@]}"; do
        IFS='|' read -r program tests reason <<< "$out"
        [ "$program" = "$name" ] || continue
        if [ "$tests" = "*" ]; then
            echo "$name: left out, $reason"
            continue 2
        fi
        if [ "$filter" = "*" ]; then filter="*-$tests"; else filter+=":$tests"; fi
        reasons+="; left out: $tests, $reason"
    done
    log=$work/$name.log
    start=$SECONDS code=0
    run_program "$name" "$filter" "$limit" "$log" || code=$?
    took=$((SECONDS - start))
    total=$(sed -n 's/^\[==========\] Running \([0-9]*\) test.*/\1/p' "$log" | head -n 1)
    good=$(grep -c '^\[       OK \]' "$log" || true)
    skipped=$(grep -c '^\[  SKIPPED \] .* ms)$' "$log" || true)
    bad=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).* ([0-9]* ms)$/\1/p' "$log" | tr '\n' ' ')
    count="$good of ${total:-0} tests passed, $skipped skipped"
    if [ -n "$bad" ]; then
        verdict="failed: ${bad% }; $count"
    elif [ $code -ne 0 ]; then
        verdict="failed: exit code $code in $(sed -n 's/^\[ RUN      \] //p' "$log" | tail -n 1); $count"
    elif [ ${#stopped[@]} -eq 0 ] && [ -z "$rest" ]; then
        verdict="passed: $count"
    else
        verdict="not finished in time: $count"
    fi
    [ ${#stopped[@]} -eq 0 ] || verdict+="; stopped: ${stopped[*]}"
    [ -z "$rest" ] || verdict+="; the time was up in $rest"
    echo "$name: $verdict ($took of $limit s$reasons)"
    if [[ $verdict == failed:* ]]; then
        failed=1
        if [ -n "$bad" ]; then grep -B 30 '^\[  FAILED  \].* ms)$' "$log" | head -n 200 >&2; else tail -n 30 "$log" >&2; fi
    fi
done
exit $failed
