# Writes the page's files into one C++ file, page_files[] of apps/server/page/page_files.h. Run as a script, with FILES, INTO.
# Included, it offers auspex_embed_page(<target>), which has that done whenever one of them has changed.
# Bodies are raw strings in pieces of at most 8,000 bytes: MSVC takes 16,380 in one literal, and 65,535 joined, which no file may exceed.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(auspex_embed_page_script ${CMAKE_CURRENT_LIST_FILE})
    function(auspex_embed_page target)
        set(folder ${PROJECT_SOURCE_DIR}/apps/server/page)
        file(GLOB files CONFIGURE_DEPENDS ${folder}/*.html ${folder}/*.css ${folder}/*.js)
        set(into ${PROJECT_BINARY_DIR}/page/page_files.cpp)
        add_custom_command(OUTPUT ${into} VERBATIM COMMENT "Embedding the page"
            COMMAND ${CMAKE_COMMAND} -D "FILES=${files}" -D INTO=${into} -P ${auspex_embed_page_script}
            DEPENDS ${files} ${auspex_embed_page_script})
        target_sources(${target} PRIVATE ${into})
        set_source_files_properties(${into} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
    endfunction()
    return()
endif()
cmake_minimum_required(VERSION 3.25)

set(type_html "text/html")
set(type_css "text/css")
set(type_js "text/javascript")
set(piece_bytes 8000)
set(special_codes 91 93 59 92) # [ ] ; and the backslash

set(bodies "")
set(rows "")
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    get_filename_component(suffix ${file} LAST_EXT)
    string(SUBSTRING ${suffix} 1 -1 suffix)
    string(MAKE_C_IDENTIFIER ${name} identifier)
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 16 hash)
    set(path "/${name}")
    if(name STREQUAL "index.html")
        set(path "/")
    endif()

    file(SIZE ${file} bytes)
    if(bytes GREATER 65535)
        message(FATAL_ERROR "${file}: ${bytes} bytes, at most 65535; cut it in two modules")
    endif()
    file(READ ${file} text)
    string(FIND "${text}" ")page\"" closing)
    if(NOT closing EQUAL -1)
        message(FATAL_ERROR "${file}: holds )page\", which would end its raw string")
    endif()

    # Lines are gathered until a piece is full. What CMake's lists would take for their own is replaced meanwhile.
    foreach(i RANGE 3)
        list(GET special_codes ${i} code)
        string(ASCII ${code} character)
        math(EXPR code "${i} + 1")
        string(ASCII ${code} stand_in_${i})
        set(character_${i} "${character}")
        string(REPLACE "${character_${i}}" "${stand_in_${i}}" text "${text}")
    endforeach()
    string(REPLACE "\n" ";" lines "${text}")
    set(pieces "R\"page(")
    set(size 0)
    set(between "")
    foreach(line IN LISTS lines)
        string(LENGTH "${line}" length)
        math(EXPR size "${size} + ${length} + 1")
        string(APPEND pieces "${between}")
        if(size GREATER piece_bytes)
            string(APPEND pieces ")page\"\n    R\"page(")
            set(size ${length})
        endif()
        string(APPEND pieces "${line}")
        set(between "\n")
    endforeach()
    string(APPEND pieces ")page\"")
    foreach(i RANGE 3)
        string(REPLACE "${stand_in_${i}}" "${character_${i}}" pieces "${pieces}")
    endforeach()
    string(APPEND bodies "constexpr char ${identifier}[] =\n    ${pieces};\nstatic_assert(sizeof ${identifier} == ${bytes} + 1);\n\n")
    string(APPEND rows "    {\"${path}\", \"${type_${suffix}}; charset=utf-8\", ${identifier}, ${bytes}, \"\\\"${hash}\\\"\"},\n")
endforeach()

file(WRITE ${INTO} "// Generated from apps/server/page. Do not edit.
#include \"server/page/page_files.h\"

namespace auspex::server {

namespace {

${bodies}} // namespace

const PageFile page_files[] = {
${rows}    {nullptr, nullptr, nullptr, 0, nullptr},
};

} // namespace auspex::server
")
