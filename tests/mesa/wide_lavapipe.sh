#!/usr/bin/env bash
# lavapipe with subgroups of up to 64 invocations: LP_NATIVE_VECTOR_WIDTH / 32 of them, 1024 for NVIDIA's and Apple's, 2048 for GCN's.
# The packaged one says so, too, and then computes with 16. Built from the source package of the mesa-vulkan-drivers that are installed.
# Prints the path of its ICD file.
#   wide_lavapipe.sh FOLDER     where it is kept. Exit code 77: it cannot be made here, and stderr says why.
made="wide drivers"
. "$(dirname "$0")/source.sh"
keep_in "${1:?usage: wide_lavapipe.sh FOLDER}" '*.json'
compgen -c llvm-config > /dev/null || no "llvm-dev is missing"
get_source
# Mesa's limit, which its arrays of 64 elements do not need.
find source/mesa/src/gallium -name '*.c' -exec sed -i 's|MIN2(lp_native_vector_width / 32, 16)|MIN2(lp_native_vector_width / 32, 64)|' {} +
grep -qF 'MIN2(lp_native_vector_width / 32, 64)' source/mesa/src/gallium/drivers/llvmpipe/lp_state_cs.c || no "this Mesa limits its vectors in another way"
gallium=llvmpipe # swrast before 24.2
grep -q "'llvmpipe'" source/mesa/meson_options.txt source/mesa/meson.options 2> /dev/null || gallium=swrast
build src/gallium/targets/lavapipe/libvulkan_lvp.so -Dgallium-drivers=$gallium -Dvulkan-drivers=swrast -Dllvm=enabled -Dshared-llvm=enabled
printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s/libvulkan_lvp.so", "api_version": "1.3.0"}}\n' "$PWD" > wide_lavapipe.json
built '*.json'
