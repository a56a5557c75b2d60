# Installs the build into a scratch folder, then builds and runs each tiny project against it as a stranger would:
# a C program and a host that uses volk itself, each with the static and with the shared library.
# Last, as a makefile would with pkg-config, the C program and the one that README.md shows.
# Run with BUILD, C_FLAGS, CXX_FLAGS, PAIR.
cmake_minimum_required(VERSION 3.25)

set(scratch ${BUILD}/tests/consumers)
set(prefix ${scratch}/prefix)
file(REMOVE_RECURSE ${scratch})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

foreach(project plain volk_host)
    foreach(kind static shared)
        set(build ${scratch}/${project}_${kind})
        message(STATUS "${project}, ${kind}")
        execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR}/${project} -B ${build}
                -D CMAKE_BUILD_TYPE=Debug -D CMAKE_PREFIX_PATH=${prefix} -D LIBRARY=auspex::auspex_${kind}
                "-DCMAKE_C_FLAGS=${C_FLAGS}" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
            OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
        execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} COMMAND_ERROR_IS_FATAL ANY)
        execute_process(COMMAND ${build}/consumer ${PAIR}/target ${PAIR}/draft COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
endforeach()

find_program(PKG_CONFIG pkg-config REQUIRED)
file(GLOB_RECURSE found ${prefix}/*/auspex.pc)
cmake_path(GET found PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} ${folder})
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs auspex OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "plain, pkg-config")
separate_arguments(flags UNIX_COMMAND "${C_FLAGS} ${flags}")
cmake_path(GET folder PARENT_PATH folder)
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../README.md readme)
string(REGEX MATCH "\n```c\n([^`]+)\n```\n" found "${readme}")
file(WRITE ${scratch}/readme.c "${CMAKE_MATCH_1}")
foreach(source ${CMAKE_CURRENT_LIST_DIR}/plain/main.c ${scratch}/readme.c)
    execute_process(COMMAND cc ${source} -o ${scratch}/consumer ${flags} -Wl,-rpath,${folder} COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${scratch}/consumer ${PAIR}/target ${PAIR}/draft OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
    if(said STREQUAL "")
        message(FATAL_ERROR "${source} says nothing")
    endif()
endforeach()
