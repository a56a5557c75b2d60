# The programs under apps/. They see the public headers only.
# The bundled pair lies at <program>/../share/auspex/pair, in the build folder as after installation.
if(NOT AUSPEX_BUILD_APPS)
    return()
endif()

set(pair_parent ${PROJECT_BINARY_DIR}/share/auspex)
file(MAKE_DIRECTORY ${pair_parent})
if(WIN32 OR AUSPEX_PORTABLE)
    file(REMOVE ${pair_parent}/pair)
    if(EXISTS ${PROJECT_SOURCE_DIR}/apps/pair)
        file(COPY ${PROJECT_SOURCE_DIR}/apps/pair DESTINATION ${pair_parent})
    endif()
elseif(NOT IS_DIRECTORY ${pair_parent}/pair)
    file(RELATIVE_PATH pair_link ${pair_parent} ${PROJECT_SOURCE_DIR}/apps/pair)
    file(CREATE_LINK ${pair_link} ${pair_parent}/pair SYMBOLIC)
endif()

file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/cli/*.cpp ${PROJECT_SOURCE_DIR}/apps/openai/*.cpp)
if(NOT cli_sources)
    return()
endif()
find_package(CLI11 REQUIRED)
add_executable(auspex_cli ${cli_sources})
target_include_directories(auspex_cli PRIVATE ${PROJECT_SOURCE_DIR}/apps)
target_link_libraries(auspex_cli PRIVATE auspex_warnings auspex::auspex CLI11::CLI11 nlohmann_json::nlohmann_json)
set_target_properties(auspex_cli PROPERTIES OUTPUT_NAME auspex)

# The program waits for the library: compiling it takes longer than running it. The files that declare flags are compiled as one,
# because what CLI11's header brings takes as long as all they say.
target_compile_options(auspex_cli PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O1>)
auspex_precompile(auspex_cli <algorithm> <array> <chrono> <cmath> <cstdio> <functional> <map> <memory> <optional> <span> <string> <vector>)
set_target_properties(auspex_cli PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
set(flag_files ${cli_sources})
list(FILTER flag_files INCLUDE REGEX "(flags|command_line)\\.cpp$")
set_source_files_properties(${flag_files} PROPERTIES UNITY_GROUP flags)

if(AUSPEX_PORTABLE)
    set_target_properties(auspex_cli PROPERTIES BUILD_RPATH "\$ORIGIN/../lib" BUILD_RPATH_USE_ORIGIN ON)
    target_link_options(auspex_cli PRIVATE -Wl,--disable-new-dtags) # our copies also serve the copies' own needs
    add_custom_command(TARGET auspex_cli POST_BUILD VERBATIM COMMENT "Collecting the libraries auspex needs"
        COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:auspex_cli> -D INTO=${PROJECT_BINARY_DIR}/lib
                -P ${PROJECT_SOURCE_DIR}/cmake/collect_libraries.cmake)
endif()
