# What scripts share that build a part of the Mesa whose mesa-vulkan-drivers are installed. To be sourced by bash; `made` says what is
# made, in a sentence such as "no drm-shims were made".
. "$(dirname "${BASH_SOURCE[0]}")/../source_package.sh"
PATH=/usr/bin:$PATH # the distribution's python3, which has mako, and no other

# Begins in the folder where they are kept, which is emptied unless they are of the version installed; then prints them and ends.
keep_in() { # FOLDER FILES
    mkdir -p "$1"
    cd "$1"
    version=$(dpkg-query -W -f '${source:Version}' mesa-vulkan-drivers 2> /dev/null) || no "mesa-vulkan-drivers is not installed"
    if [ "$(cat version 2> /dev/null)" = "$version" ]; then
        find "$PWD" -maxdepth 1 -name "$2"
        exit
    fi
    find . -maxdepth 1 -name "$2" -delete
    rm -rf version source
}

# The source of that version, as source/mesa.
get_source() {
    for tool in meson ninja cc c++ pkg-config flex bison dpkg-source; do command -v $tool > /dev/null || no "$tool is missing (tests/mesa/README.md has the packages)"; done
    python3 -c 'import mako, packaging, yaml' 2> /dev/null || no "python3-mako, python3-packaging or python3-yaml is missing"
    pkg-config --exists libdrm expat zlib || no "libdrm-dev, libexpat1-dev or zlib1g-dev is missing"
    source_package mesa mesa-vulkan-drivers
}

build() { # TARGET OPTIONS…: what source/mesa makes of it is copied here
    local name
    name=$(basename "$1")
    if ! { meson setup "source/build-$name" source/mesa --buildtype=release -Dplatforms= -Dglx=disabled -Degl=disabled -Dgbm=disabled -Dopengl=false \
        -Dgles1=disabled -Dgles2=disabled -Dvalgrind=disabled -Dlibunwind=disabled "${@:2}" && ninja -C "source/build-$name" "$1"; } > source/log 2>&1; then
        tail -n 20 source/log >&2
        exit 1
    fi
    cp "source/build-$name/$1" .
}

built() { # FILES: they are there, and can be kept
    rm -rf source
    echo "$version" > version
    find "$PWD" -maxdepth 1 -name "$1"
}
