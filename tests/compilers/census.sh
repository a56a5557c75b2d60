#!/usr/bin/env bash
# A section of CENSUS.md: a row for every device that this system's Mesa can be made to believe in, and every workload.
#   census.sh BUILD [SHIMS]           SHIMS: a folder with lib{intel,nouveau}_noop_drm_shim.so (tests/mesa/shims.sh makes them)
#   census.sh --check BUILD [SHIMS]   fails, and prints them, where rows of this Mesa are not those of CENSUS.md, times aside. Exit code 77:
#                                     it has none of this Mesa, or this system has no such driver
set -u
if [ "${1:-}" = --check ]; then
    shift
    table=$(dirname "$(realpath "$0")")/CENSUS.md
    section=$("$0" "$@") || exit 1
    python3 - "$table" <(printf '%s\n' "$section") << 'PYTHON'
import sys

def rows(path):
    found = {}
    for line in open(path, encoding="utf-8"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 8 and cells[0] != "device" and not cells[0].startswith("--"):
            found.setdefault(tuple(cells[:4]), []).append(" | ".join(cells[4:7]))  # two devices may have one name; the last cell is a time
    return found

kept, now = rows(sys.argv[1]), rows(sys.argv[2])
drivers = {key[1] for key in kept}
if not any(key[1] in drivers for key in now):
    print("not checked:", "CENSUS.md has no section of " + ", ".join(sorted({key[1] for key in now})) if now else "no driver that knows such devices")
    sys.exit(77)
wrong = [key for key in now if kept.get(key) != now[key]]
for key in wrong:
    print(" | ".join(key))
    print("    now:  " + "; ".join(now[key]) + "\n    kept: " + "; ".join(kept.get(key, ["no such row"])))
print(len(now), "rows,", len(wrong), "of them not as CENSUS.md has them" + ("; census.sh BUILD SHIMS writes the section anew" if wrong else ""))
sys.exit(1 if wrong else 0)
PYTHON
    exit
fi
census=$(realpath "${1:?usage: census.sh BUILD [SHIMS]}")/tests/bin/compiler_census
shims=$(realpath "${2:-/nowhere}" 2> /dev/null)
icds=/usr/share/vulkan/icd.d
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

icd() { find "$icds" -name "$1_icd*.json" ! -name '*i686*' | head -n 1; }
row() { # ICD ENVIRONMENT…
    [ -n "$1" ] || return
    env -u VK_DRIVER_FILES HOME="$home" XDG_CACHE_HOME="$home" XDG_RUNTIME_DIR="$home" MESA_SHADER_CACHE_DISABLE=true NODEVICE_SELECT=1 VK_ICD_FILENAMES="$1" \
        "${@:2}" "$census" --summary 2> "$home/err" || echo "nothing from ${*:2}: $(grep -v -i 'unknown\|unhandled' "$home/err" | tail -n 1)" >&2
}

echo '| device | driver | workload | numerics | kernels | spilling | fewest waves at once | CPU s |'
echo '|---|---|---|---|---:|---:|---|---:|'
for family in VEGA10 NAVI21 GFX1100 navi31 gfx1201; do row "$(icd radeon)" RADV_FORCE_FAMILY=$family; done
for platform in tgl dg2 bmg; do
    [ ! -e "$shims/libintel_noop_drm_shim.so" ] || row "$(icd intel)" LD_PRELOAD="$shims/libintel_noop_drm_shim.so" INTEL_STUB_GPU_PLATFORM=$platform
done
for chip in 162 172; do
    [ ! -e "$shims/libnouveau_noop_drm_shim.so" ] || row "$(icd nouveau)" LD_PRELOAD="$shims/libnouveau_noop_drm_shim.so" NOUVEAU_CHIPSET=$chip NVK_I_WANT_A_BROKEN_VULKAN_DRIVER=1
done
