#!/usr/bin/env bash
# SwiftShader out of the distribution's chromium-common, which is not installed for it: prints the path of its ICD file.
#   get.sh FOLDER     where it is kept. Exit code 77: it cannot be had here, and stderr says why.
set -euo pipefail
mkdir -p "$1"
cd "$1"
find_icd() { find "$PWD" -name 'vk_swiftshader_icd.json' | head -n 1; }
if [ -z "$(find_icd)" ]; then
    if ! apt-get download -q chromium-common > download.log 2>&1; then
        echo "SwiftShader was not tried: no package chromium-common can be had ($(tail -n 1 download.log))" >&2
        exit 77
    fi
    dpkg-deb --fsys-tarfile chromium-common_*.deb | tar x --wildcards '*swiftshader*'
    rm chromium-common_*.deb
fi
icd=$(find_icd)
if [ -z "$icd" ]; then
    echo "SwiftShader was not tried: chromium-common of this distribution holds none" >&2
    exit 77
fi
echo "$icd"
