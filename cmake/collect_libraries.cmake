# Copies the shared libraries PROGRAM needs, except the C library's own, into INTO (option AUSPEX_PORTABLE). Where an earlier build has
# left copies there, they are not what is copied.
cmake_minimum_required(VERSION 3.25)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAM} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
    CONFLICTING_DEPENDENCIES_PREFIX twice PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so")
if(missing)
    message(FATAL_ERROR "${PROGRAM}: not found: ${missing}")
endif()
foreach(name IN LISTS twice_FILENAMES)
    list(APPEND found ${twice_${name}})
endforeach()
file(REAL_PATH ${INTO} into)
foreach(library IN LISTS found)
    cmake_path(GET library PARENT_PATH folder)
    file(REAL_PATH ${folder} folder)
    if(NOT folder STREQUAL into)
        file(COPY ${library} DESTINATION ${INTO} FOLLOW_SYMLINK_CHAIN)
    endif()
endforeach()
