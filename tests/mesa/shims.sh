#!/usr/bin/env bash
# Mesa's drm-shims, with which the packaged drivers of Intel and NVIDIA (NVK) believe in a GPU: built from the source package of the
# mesa-vulkan-drivers that are installed. Prints the paths.
#   shims.sh FOLDER     where they are kept. Exit code 77: they cannot be made here, and stderr says why.
made=drm-shims
. "$(dirname "$0")/source.sh"
keep_in "${1:?usage: shims.sh FOLDER}" '*.so'
get_source
build src/intel/tools/libintel_noop_drm_shim.so -Dtools=drm-shim,intel -Dgallium-drivers= -Dvulkan-drivers= -Dllvm=disabled -Dzstd=disabled
[ ! -d source/mesa/src/nouveau/vulkan ] || # NVK
    build src/nouveau/drm-shim/libnouveau_noop_drm_shim.so -Dtools=drm-shim -Dgallium-drivers=nouveau -Dvulkan-drivers= -Dllvm=disabled -Dzstd=disabled
built '*.so'
