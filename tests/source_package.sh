# What scripts share that build something from a package's source. To be sourced by bash; `made` says what is made, in a sentence such
# as "no drm-shims were made".
set -euo pipefail

no() { # WHY: ends the script. 77: it cannot be made here
    echo "no $made were made: $1" >&2
    exit 77
}

# Downloads the source of the version of a binary package that is installed, from where the system's packages come, and unpacks it as
# source/NAME, without the distribution's patches. NAME: the source package's.
source_package() { # NAME BINARY
    local version
    command -v dpkg-source > /dev/null || no "dpkg-dev is missing"
    version=$(dpkg-query -W -f '${source:Version}' "$2" 2> /dev/null) || no "$2 is not installed"
    # The system's sources of packages, as sources of sources; apt's own lists stay as they are.
    mkdir -p source/lists source/parts
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [ ! -f "$list" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$list" > "source/parts/$(basename "$list")"
    done
    cd source
    local apt=(apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$PWD/parts" -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD")
    "${apt[@]}" update > log 2>&1 || true # a source of packages without sources matters only if it is this one's
    # Patches of a security update may be gone where what they patch is not.
    "${apt[@]}" source --download-only "$1=$version" > log 2>&1 || compgen -G "$1_*.orig.tar.?z" > /dev/null ||
        no "the source of $1 $version cannot be had ($(grep -m 1 ^E: log))"
    mkdir "$1"
    tar xf "$1"_*.orig.tar.?z -C "$1" --strip-components=1
    cd ..
}
