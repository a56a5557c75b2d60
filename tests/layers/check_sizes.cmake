# Files and folders stay small enough to be read at one sitting. Run as: cmake -D ROOT=<top> -P this.
cmake_minimum_required(VERSION 3.25)

set(faults "")
function(check_lines limit)
    file(GLOB_RECURSE files RELATIVE ${ROOT} ${ARGN})
    foreach(file IN LISTS files)
        if(file MATCHES "^engine/api/include/")
            continue() # public headers carry their documentation
        endif()
        file(READ ${ROOT}/${file} text)
        string(REGEX REPLACE "[^\n]" "" text "${text}")
        string(LENGTH "${text}" lines)
        if(lines GREATER limit)
            string(APPEND faults "${file}: ${lines} lines, at most ${limit}\n")
        endif()
    endforeach()
    set(faults "${faults}" PARENT_SCOPE)
endfunction()

check_lines(600 ${ROOT}/engine/*.cpp ${ROOT}/apps/*.cpp ${ROOT}/apps/*.c ${ROOT}/tests/*.cpp)
check_lines(250 ${ROOT}/engine/*.h ${ROOT}/apps/*.h ${ROOT}/shaders/shared/*.h ${ROOT}/tests/*.h)
check_lines(300 ${ROOT}/shaders/*.comp ${ROOT}/shaders/*.glsl)

file(GLOB folders RELATIVE ${ROOT} ${ROOT}/engine/* ${ROOT}/apps/*)
foreach(folder IN LISTS folders)
    if(IS_DIRECTORY ${ROOT}/${folder} AND NOT folder STREQUAL "engine/kernels") # kernels: two files per op
        file(GLOB files LIST_DIRECTORIES false ${ROOT}/${folder}/*)
        list(LENGTH files count)
        if(count GREATER 16)
            string(APPEND faults "${folder}: ${count} files, at most 16\n")
        endif()
    endif()
endforeach()

if(faults)
    message(FATAL_ERROR "too large:\n${faults}")
endif()
message(STATUS "all files and folders within their limits")
