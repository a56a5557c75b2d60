#!/usr/bin/env bash
# A section of CENSUS.md: a row for every device that this system's Mesa can be made to believe in, and every workload.
#   census.sh BUILD [SHIMS]     SHIMS: a folder with lib{intel,nouveau}_noop_drm_shim.so (shims.sh makes them)
set -u
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
