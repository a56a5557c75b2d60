#!/usr/bin/env bash
# The program as Windows has it: MinGW compiles it, warnings are errors, and Wine runs it on the Vulkan driver that is here.
#   run.sh BUILD FOLDER     BUILD: of this system, whose texts are compared. FOLDER: where the libraries and the Windows build are kept.
# Exit code 77: a tool is missing, and stderr says which.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD FOLDER}")
made="Windows programs"
. "$here/../source_package.sh"
tools=x86_64-w64-mingw32
for tool in $tools-g++-posix wine Xvfb curl; do
    command -v $tool > /dev/null || no "$tool is missing (Debian: g++-mingw-w64-x86-64-posix wine64 wine xvfb curl dpkg-dev)"
done
mkdir -p "${2:?usage: run.sh BUILD FOLDER}"
cd "$2"
folder=$PWD
for_windows=(-G Ninja -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=$tools-g++-posix
    -DCMAKE_FIND_ROOT_PATH="$folder/root" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY
    -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY
    -DCMAKE_EXE_LINKER_FLAGS=-static -DCMAKE_SHARED_LINKER_FLAGS=-static)

library() { # NAME BINARY FILE OPTIONS…: FILE, made from the source of a package, becomes root/lib/FILE
    source_package "$1" "$2"
    if ! { cmake -S "source/$1" -B "source/build-$1" "${for_windows[@]}" -DCMAKE_C_COMPILER=$tools-gcc-posix -DCMAKE_RC_COMPILER=$tools-windres "${@:4}" &&
        cmake --build "source/build-$1"; } > source/log 2>&1; then
        no "$1 does not compile: $(grep -m 1 -E 'error|Error' source/log)"
    fi
    cp "$(find "source/build-$1" -name "$3")" root/lib/
}

if [ ! -e root/ready ]; then
    rm -rf root source
    mkdir -p root/include root/lib/cmake root/share/cmake
    library pcre2 libpcre2-dev libpcre2-8.a -DBUILD_SHARED_LIBS=OFF -DPCRE2_SUPPORT_JIT=ON -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF
    library sentencepiece libsentencepiece-dev libsentencepiece.a -DSPM_ENABLE_SHARED=OFF
    cp source/sentencepiece/src/sentencepiece_processor.h source/build-pcre2/pcre2.h root/include/
    # Of these the headers are all, and every system's are the same; their CMake files look for them beside themselves.
    for headers in vulkan vk_video nlohmann CLI boost; do ln -s "/usr/include/$headers" root/include/; done
    ln -sfn root/include include # Boost's files, which Debian has one folder deeper
    cp -r /usr/share/cmake/nlohmann_json /usr/share/cmake/CLI11 root/share/cmake/
    cp -r /usr/lib/*/cmake/[Bb]oost* root/lib/cmake/
    rm -rf source
    touch root/ready
fi
cmake -S "$here/../.." -B build "${for_windows[@]}" -DAUSPEX_BUILD_TESTS=OFF -DCMAKE_CXX_FLAGS=-DPCRE2_STATIC > log
cmake --build build >> log || { tail -n 40 log >&2; exit 1; }

# Wine reaches Vulkan by the X server.
exec 3< <(exec Xvfb -displayfd 1 -screen 0 640x480x24 2> /dev/null)
x_server=$!
trap 'wineserver=$(ls /usr/lib/wine/wineserver 2> /dev/null) && WINEPREFIX="$folder/wine" "$wineserver" -k || true; kill $x_server' EXIT
read -r display <&3
in_wine() { # PROGRAM ARGUMENTS…
    env -u VK_DRIVER_FILES DISPLAY=":$display" WINEPREFIX="$folder/wine" WINEDEBUG=-all LC_ALL=C.UTF-8 wine "$@"
}
windows() { in_wine "$folder/build/bin/auspex.exe" "$@"; }
here_too() { HOME="$folder" XDG_CACHE_HOME="$folder" "$build/bin/auspex" "$@"; }

[ -e wine/system.reg ] || in_wine wineboot -i > /dev/null 2>&1
windows info | head -n 1

# Texts are this system's bit for bit, with drafts and without, whatever the models' folder is called.
models='models of Jörg 模型'
rm -rf "$models" texts
mkdir texts
cp -r "$here/../../apps/pair" "$models"
story=(run --no-stop --color never --temp 0 -n 60 -p "Once upon a time")
for drafts in 0 3; do
    here_too "${story[@]}" -m "$models/target" -md "$models/draft" --draft-len $drafts < /dev/null > texts/here.$drafts 2> texts/log
    windows "${story[@]}" -m "$models/target" -md "$models/draft" --draft-len $drafts < /dev/null > texts/windows.$drafts 2> texts/log ||
        { cat texts/log >&2; exit 1; }
    cmp texts/here.$drafts texts/windows.$drafts
done
[ -s texts/windows.0 ]
cmp texts/windows.0 texts/windows.3

# Files that it writes, under such names, have the same bytes as here; and it reads a prompt from one.
windows quantize "$models/target" "$models/ziel.gguf" --type q4_0 > texts/log 2>&1 || { cat texts/log >&2; exit 1; }
here_too quantize "$models/target" texts/here.gguf --type q4_0 > texts/log 2>&1
cmp "$models/ziel.gguf" texts/here.gguf
echo "Once upon a time" > "$models/anfang.txt"
continued=(run --no-stop --color never --temp 0 -n 20 -m "$models/ziel.gguf" --drafter none -f "$models/anfang.txt")
windows "${continued[@]}" < /dev/null > texts/windows.file 2> texts/log || { cat texts/log >&2; exit 1; }
here_too "${continued[@]}" < /dev/null > texts/here.file 2> texts/log
[ -s texts/here.file ]
cmp texts/here.file texts/windows.file
windows bench -m "$models/target" -md "$models/draft" --draft-len 2 -n 8 -p 0 -r 1 --plot "$models/bild.svg" > texts/log 2>&1 || { cat texts/log >&2; exit 1; }
grep -q '</svg>' "$models/bild.svg"

# The server answers those who have a key.
echo secret > "$models/keys"
windows serve --port 0 --api-key-file "$models/keys" > texts/server 2>&1 &
server=$!
for _ in $(seq 200); do
    url=$(grep -o -m 1 'http://127.0.0.1:[0-9]*' texts/server) && curl -sf "$url/health" > /dev/null && break
    sleep 0.3
done
ask() { curl -s -o texts/answer -w '%{http_code}' "$url/v1/chat/completions" -H 'Content-Type: application/json' "$@" -d '{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}'; }
[ "$(ask)" = 401 ]
[ "$(ask -H 'Authorization: Bearer secret')" = 200 ]
grep -q '"completion_tokens":4' texts/answer
kill $server
echo "Windows: the program compiles, and its texts and files are this system's"
