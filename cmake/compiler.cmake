# Compiler settings common to everything we build: warnings are errors where we develop, floating point is not contracted,
# symbols hidden. What GCC's optimiser says of copies and bounds is off: in every version it misreads another use of std::string
# or std::vector (GCC bugs 105329, 100366), so that code which compiles with one fails with the next.
add_library(auspex_warnings INTERFACE)
if(MSVC)
    target_compile_options(auspex_warnings INTERFACE /W4 $<$<BOOL:${AUSPEX_WARNINGS_ARE_ERRORS}>:/WX> /permissive- /utf-8 /fp:precise)
    target_compile_definitions(auspex_warnings INTERFACE NOMINMAX _CRT_SECURE_NO_WARNINGS)
else()
    target_compile_options(auspex_warnings INTERFACE
        -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Wpedantic -Wundef -Wvla
        $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
        $<$<BOOL:${AUSPEX_WARNINGS_ARE_ERRORS}>:-Werror> -ffp-contract=off
        $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi>)
endif()
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# Headers of others that most files of a target include, read once. Not beneath ccache, which keeps nothing that comes of such a
# file unless told to look less closely; and every file goes on including what it uses, as it is compiled without them there.
# auspex_precompile(<target> <header>... | REUSE_FROM <target compiled with the same flags>)
function(auspex_precompile target)
    if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
        return()
    endif()
    if(NOT ARGV1 STREQUAL "REUSE_FROM")
        list(PREPEND ARGN PRIVATE)
    endif()
    target_precompile_headers(${target} ${ARGN})
endfunction()

# The files of a folder are compiled as one, because what they include takes longer than what they say; so no two of them may give one
# local name to two things. Not beneath ccache, which keeps more of files apart, and shows that each includes what it uses.
# auspex_compile_by_folder(<target> [EXCEPT <file>...])
function(auspex_compile_by_folder target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
    if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
        return()
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    get_target_property(sources ${target} SOURCES)
    list(REMOVE_ITEM sources "" ${arg_EXCEPT})
    foreach(source IN LISTS sources)
        cmake_path(GET source PARENT_PATH folder)
        cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
        string(MAKE_C_IDENTIFIER "${folder}" group)
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endforeach()
endfunction()

# The same n files at a time, for one large folder.
# auspex_compile_together(<target> <n>)
function(auspex_compile_together target n)
    if(NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${n})
    endif()
endfunction()

# The shared library exports auspex_* and nothing else, whatever templates the standard library instantiates.
function(auspex_export_only_api target)
    if(APPLE)
        file(WRITE ${PROJECT_BINARY_DIR}/auspex.exports "_auspex_*\n")
        target_link_options(${target} PRIVATE -Wl,-exported_symbols_list,${PROJECT_BINARY_DIR}/auspex.exports)
    elseif(NOT WIN32)
        target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    endif()
endfunction()
