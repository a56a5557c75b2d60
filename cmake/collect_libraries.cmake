# Copies the shared libraries PROGRAM needs, except the C library's own, into INTO (option AUSPEX_PORTABLE).
cmake_minimum_required(VERSION 3.25)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAM} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so")
if(missing)
    message(FATAL_ERROR "${PROGRAM}: not found: ${missing}")
endif()
foreach(library IN LISTS found)
    file(COPY ${library} DESTINATION ${INTO} FOLLOW_SYMLINK_CHAIN)
endforeach()
