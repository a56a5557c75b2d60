# sentencepiece's header includes abseil's from 0.2.2 on; what it calls there, its callers link themselves.
# HEADERS: the folder of sentencepiece_processor.h. Sets AUSPEX_ABSEIL to the target to link, or to nothing.
function(auspex_find_abseil headers)
    set(AUSPEX_ABSEIL "" PARENT_SCOPE)
    file(STRINGS ${headers}/sentencepiece_processor.h included REGEX "^#include [<\"]absl/status/")
    if(NOT included)
        return()
    endif()
    find_package(absl QUIET GLOBAL)
    if(NOT TARGET absl::status)
        message(FATAL_ERROR "abseil, which sentencepiece's header includes, not found: install libabsl-dev (see "
            "cmake/packages.txt)")
    endif()
    set(AUSPEX_ABSEIL absl::status PARENT_SCOPE)
endfunction()
