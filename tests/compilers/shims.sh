#!/usr/bin/env bash
# Mesa's drm-shims, with which the packaged drivers of Intel and NVIDIA (NVK) believe in a GPU: built from the source package of the
# mesa-vulkan-drivers that are installed. Prints the paths.
#   shims.sh FOLDER     where they are kept. Exit code 77: they cannot be made here, and stderr says why.
set -euo pipefail
PATH=/usr/bin:$PATH # the distribution's python3, which has mako, and no other
mkdir -p "${1:?usage: shims.sh FOLDER}"
cd "$1"
no() {
    echo "no drm-shims were made: $1" >&2
    exit 77
}
version=$(dpkg-query -W -f '${source:Version}' mesa-vulkan-drivers 2> /dev/null) || no "mesa-vulkan-drivers is not installed"
if [ "$(cat version 2> /dev/null)" = "$version" ]; then
    ls "$PWD"/*.so
    exit
fi
rm -rf ./*.so version source
for tool in meson ninja cc c++ pkg-config flex bison dpkg-source; do command -v $tool > /dev/null || no "$tool is missing (README.md has the packages)"; done
python3 -c 'import mako, packaging, yaml' 2> /dev/null || no "python3-mako, python3-packaging or python3-yaml is missing"
pkg-config --exists libdrm expat zlib || no "libdrm-dev, libexpat1-dev or zlib1g-dev is missing"

# The system's sources of packages, as sources of sources; apt's own lists stay as they are.
mkdir -p source/lists source/parts
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ ! -f "$list" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$list" > "source/parts/$(basename "$list")"
done
apt=(apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$PWD/source/parts" -o Dir::State::Lists="$PWD/source/lists"
    -o Dir::Cache="$PWD/source")
cd source
"${apt[@]}" update > log 2>&1 || true # a source of packages without sources matters only if it is Mesa's
"${apt[@]}" source --download-only "mesa=$version" > log 2>&1 || no "the source of Mesa $version cannot be had ($(grep -m 1 ^E: log))"
mkdir mesa
tar xf mesa_*.orig.tar.?z -C mesa --strip-components=1

build() { # TARGET OPTIONS…
    local name
    name=$(basename "$1")
    if ! { meson setup "build-$name" mesa --buildtype=release -Dplatforms= -Dglx=disabled -Degl=disabled -Dgbm=disabled -Dopengl=false -Dgles1=disabled \
        -Dgles2=disabled -Dllvm=disabled -Dvalgrind=disabled -Dlibunwind=disabled -Dzstd=disabled "${@:2}" && ninja -C "build-$name" "$1"; } > log 2>&1; then
        tail -n 20 log >&2
        exit 1
    fi
    cp "build-$name/$1" ..
}
build src/intel/tools/libintel_noop_drm_shim.so -Dtools=drm-shim,intel -Dgallium-drivers= -Dvulkan-drivers=
[ ! -d mesa/src/nouveau/vulkan ] || # NVK
    build src/nouveau/drm-shim/libnouveau_noop_drm_shim.so -Dtools=drm-shim -Dgallium-drivers=nouveau -Dvulkan-drivers=
cd ..
rm -rf source
echo "$version" > version
ls "$PWD"/*.so
