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

# The HTTP side of a server. Boost's headers are all it needs, and everything else is built without it where they are missing.
set(Boost_NO_WARN_NEW_VERSIONS ON)
if(POLICY CMP0167)
    cmake_policy(SET CMP0167 NEW) # Boost says itself where it is
endif()
find_package(Boost 1.74 QUIET)
if(Boost_FOUND)
    file(GLOB http_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/server/http/*.cpp)
    add_library(auspex_http STATIC ${http_sources})
    target_include_directories(auspex_http PUBLIC ${PROJECT_SOURCE_DIR}/apps)
    target_include_directories(auspex_http SYSTEM PRIVATE ${Boost_INCLUDE_DIRS})
    target_compile_definitions(auspex_http PRIVATE
        BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION $<$<BOOL:${WIN32}>:_WIN32_WINNT=0x0A00>)
    target_compile_options(auspex_http PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O1>) # it waits, too
    target_compile_options(auspex_http PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>) # Asio's fences, which one thread does not need
    auspex_compile_by_folder(auspex_http EXCEPT ${PROJECT_SOURCE_DIR}/apps/server/http/asio.cpp)
    target_link_libraries(auspex_http PRIVATE auspex_warnings PUBLIC Threads::Threads $<$<BOOL:${WIN32}>:ws2_32;mswsock>)
else()
    message(STATUS "Boost 1.74 or later was not found (libboost-dev): building without the HTTP server")
endif()

file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/cli/*.cpp)
if(NOT cli_sources)
    return()
endif()

# What programs make of OpenAI's requests.
file(GLOB openai_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/openai/*.cpp)
add_library(auspex_openai STATIC ${openai_sources})
target_include_directories(auspex_openai PUBLIC ${PROJECT_SOURCE_DIR}/apps)
target_link_libraries(auspex_openai PRIVATE auspex_warnings PUBLIC auspex::auspex nlohmann_json::nlohmann_json)
auspex_compile_by_folder(auspex_openai)

# The server around an engine, which it does not know: a backend stands for it, so that tests put another there.
if(TARGET auspex_http)
    include(${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake)
    file(GLOB server_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/server/*.cpp ${PROJECT_SOURCE_DIR}/apps/server/engine/*.cpp)
    add_library(auspex_server STATIC ${server_sources} ${PROJECT_SOURCE_DIR}/apps/cli/common/input/values.cpp)
    auspex_compile_by_folder(auspex_server)
    auspex_embed_page(auspex_server)
    target_link_libraries(auspex_server PRIVATE auspex_warnings PUBLIC auspex_openai auspex_http)
    list(REMOVE_ITEM cli_sources ${PROJECT_SOURCE_DIR}/apps/cli/common/input/values.cpp)
    foreach(library IN ITEMS auspex_openai auspex_server)
        target_compile_options(${library} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O1>)
    endforeach()
else()
    list(FILTER cli_sources EXCLUDE REGEX "/cli/serve/")
endif()

find_package(CLI11 REQUIRED)
add_executable(auspex_cli ${cli_sources})
target_link_libraries(auspex_cli PRIVATE auspex_warnings auspex_openai CLI11::CLI11)
if(TARGET auspex_server)
    target_link_libraries(auspex_cli PRIVATE auspex_server)
    target_compile_definitions(auspex_cli PRIVATE AUSPEX_HAS_SERVER=1)
else()
    target_compile_definitions(auspex_cli PRIVATE AUSPEX_HAS_SERVER=0)
endif()
set_target_properties(auspex_cli PROPERTIES OUTPUT_NAME auspex)

# The program waits for the library: compiling it takes longer than running it. The files that declare flags are compiled as one,
# beneath ccache, too, because what CLI11's header brings takes as long as all they say.
target_compile_options(auspex_cli PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O1>)
auspex_precompile(auspex_cli <algorithm> <array> <chrono> <cmath> <cstdio> <functional> <map> <memory> <optional> <span> <string> <vector>)
auspex_compile_by_folder(auspex_cli)
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
