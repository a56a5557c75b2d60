#!/usr/bin/env bash
# What a new user of another distribution meets: makes a root of it by debootstrap, clones HEAD there, and runs README's two commands as
# they are printed, each in a new home, and `auspex chat` after the first. As root; takes an hour on two cores, and 8 GB.
#   tests/fresh_root.sh trixie FOLDER [MIRROR]     bookworm, trixie, sid, noble … ; the root is kept, and used again
# Logs lie beside the root. Exit code 0: all of it passed.
set -euo pipefail
suite=${1:?"usage: tests/fresh_root.sh SUITE FOLDER [MIRROR]"}
folder=$(realpath -m "${2:?"usage: tests/fresh_root.sh SUITE FOLDER [MIRROR]"}")
mirror=${3:-}
source=$(cd "$(dirname "$0")/.." && pwd)
root=$folder/root

if [ ! -e "$root/.ready" ]; then
    mkdir -p "$folder"
    from=("$suite" "$root")
    [ -z "$mirror" ] || from+=("$mirror")
    options=(--variant=minbase --include=ca-certificates)
    scripts=/usr/share/debootstrap/scripts
    if [ ! -e "$scripts/$suite" ] || [ "$(realpath "$scripts/$suite")" = $scripts/gutsy ]; then # Ubuntu's; debootstrap may not know it, nor have its keys
        [ -n "$mirror" ] || { echo "$suite is Ubuntu's: expected a mirror, too" >&2; exit 2; }
        from+=($scripts/gutsy)
        options+=(--no-check-gpg)
    fi
    debootstrap "${options[@]}" "${from[@]}" > "$folder/debootstrap.log" || { tail -n 1 "$folder/debootstrap.log" >&2; exit 1; }
    [ "${#from[@]}" -lt 4 ] || printf 'deb %s %s main universe\n' "$mirror" "$suite" "$mirror" "$suite-updates" > "$root/etc/apt/sources.list"
    cp /etc/resolv.conf "$root/etc/"
    cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2> /dev/null || true
    touch "$root/.ready"
fi
unmount() { umount -R "$root/dev" "$root/proc" 2> /dev/null || true; }
trap unmount EXIT
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"

rm -rf "$root/auspex"
git clone --quiet --no-local "$source" "$root/auspex"
echo "$suite, $(git -C "$root/auspex" rev-parse --short HEAD)"

failures=0
rm -rf "$root/homes"
run() { # NAME HOME COMMAND
    local begin=$SECONDS status=0
    mkdir -p "$root/homes/$2"
    chroot "$root" env -i HOME="/homes/$2" PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        bash -c "cd /auspex && $3" > "$folder/$1.log" 2>&1 || status=$?
    echo "$1: exit code $status after $(( SECONDS - begin )) s"
    tail -n 3 "$folder/$1.log"
    [ "$status" -eq 0 ] || failures=$(( failures + 1 ))
}
mapfile -t commands < <(sed -n '/^```sh$/,/^```$/ { s/sudo //g; /^apt-get/p }' "$source/README.md")
[ "${#commands[@]}" -eq 2 ] || { echo "README has ${#commands[@]} commands that begin with apt-get, expected 2" >&2; exit 2; }
run first one "${commands[0]}"
run chat one "printf 'Tell me a story about a fox named Ruby.\nWhere did she live?\n' | build/release/bin/auspex chat"
run second two "${commands[1]}"
exit $(( failures > 0 ))
