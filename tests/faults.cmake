# Planted faults: product shaders with one thing wrong, which a test must notice. They are data beside those tests, in
# tests/<folder>/faults.cmake; the shaders themselves know nothing of them. A fault is found with test_shader("<variant>.fault<number>").

# auspex_fault(<number> "<variant>[;<variant>...]" <text> <instead> [<text> <instead>...])
# Builds each variant as the product does, from a source in which every <text> has become <instead>. Every text must be there exactly
# once, so that no fault ends unseen when a shader changes.
function(auspex_fault number variants)
    foreach(variant IN LISTS variants)
        get_property(source GLOBAL PROPERTY auspex_source_of_${variant})
        get_property(options GLOBAL PROPERTY auspex_options_of_${variant})
        if(NOT source)
            message(FATAL_ERROR "fault ${number}: no shader variant ${variant}")
        endif()
        file(READ ${source} code)
        math(EXPR last "${ARGC} - 1")
        foreach(i RANGE 2 ${last} 2)
            math(EXPR next "${i} + 1")
            set(text "${ARGV${i}}")
            set(instead "${ARGV${next}}")
            string(FIND "${code}" "${text}" first)
            string(FIND "${code}" "${text}" other REVERSE)
            if(first EQUAL -1 OR NOT first EQUAL other)
                message(FATAL_ERROR "fault ${number} of ${variant}: ${source} must have this text exactly once: ${text}")
            endif()
            string(REPLACE "${text}" "${instead}" code "${code}")
        endforeach()
        set(faulty ${PROJECT_BINARY_DIR}/shaders/faults/${variant}.fault${number}.comp)
        file(CONFIGURE OUTPUT ${faulty} CONTENT "${code}" @ONLY) # written only where it changes
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
        auspex_shader(${variant}.fault${number} SOURCE ${faulty} ${options})
    endforeach()
endfunction()

file(GLOB fault_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*/faults.cmake)
foreach(fault_file IN LISTS fault_files)
    include(${fault_file})
endforeach()
