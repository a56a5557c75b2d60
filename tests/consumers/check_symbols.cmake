# What our libraries define and ask for: the shared one shows auspex_* only, the static one brings no Vulkan entry point of
# its own (a host may have volk's), and the engine never ends or interrupts the host's process.
# Run with NM, STATIC, SHARED.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${NM} -D --defined-only --format=posix ${SHARED} OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${NM} -g --format=posix ${STATIC} OUTPUT_VARIABLE static COMMAND_ERROR_IS_FATAL ANY)

set(faults "")
string(REGEX MATCHALL "[^\n]+" shown "${shown}")
foreach(line IN LISTS shown)
    if(NOT line MATCHES "^auspex_")
        string(APPEND faults "the shared library shows: ${line}\n")
    endif()
endforeach()

string(REGEX MATCHALL "[^\n]+" static "${static}")
foreach(line IN LISTS static)
    if(line MATCHES "^(vk|volk)[A-Za-z0-9]* ")
        string(APPEND faults "the static library defines or asks for: ${line}\n")
    endif()
    if(line MATCHES "^(abort|exit|_exit|_Exit|quick_exit|raise|kill|longjmp|_longjmp|signal|sigaction|getenv|secure_getenv|setenv|printf|puts|putchar|stdout|_ZSt4cout|_ZSt4cerr) U")
        string(APPEND faults "the engine may not use: ${line}\n")
    endif()
endforeach()

if(faults)
    message(FATAL_ERROR "${faults}")
endif()
message(STATUS "symbols are in order")
