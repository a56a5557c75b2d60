# Finds what third_party.txt lists. A missing piece stops here, with the package that brings it.
# The engine needs the Vulkan headers only: the loader is opened when a device is asked for.
find_path(AUSPEX_VULKAN_INCLUDE_DIR vulkan/vulkan_core.h HINTS $ENV{VULKAN_SDK}/include)
find_path(AUSPEX_SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h)
find_library(AUSPEX_SENTENCEPIECE_LIBRARY sentencepiece)
find_path(AUSPEX_PCRE2_INCLUDE_DIR pcre2.h)
find_library(AUSPEX_PCRE2_LIBRARY pcre2-8)
foreach(tool glslangValidator spirv-val spirv-opt spirv-dis spirv-as)
    string(MAKE_C_IDENTIFIER ${tool} variable)
    find_program(AUSPEX_${variable} ${tool} HINTS $ENV{VULKAN_SDK}/bin)
endforeach()

foreach(need
        "AUSPEX_VULKAN_INCLUDE_DIR|vulkan/vulkan_core.h|libvulkan-dev"
        "AUSPEX_SENTENCEPIECE_INCLUDE_DIR|sentencepiece_processor.h|libsentencepiece-dev"
        "AUSPEX_SENTENCEPIECE_LIBRARY|the sentencepiece library|libsentencepiece-dev"
        "AUSPEX_PCRE2_INCLUDE_DIR|pcre2.h|libpcre2-dev"
        "AUSPEX_PCRE2_LIBRARY|the 8-bit pcre2 library|libpcre2-dev"
        "AUSPEX_glslangValidator|glslangValidator|glslang-tools"
        "AUSPEX_spirv_val|spirv-val|spirv-tools"
        "AUSPEX_spirv_opt|spirv-opt|spirv-tools"
        "AUSPEX_spirv_dis|spirv-dis|spirv-tools"
        "AUSPEX_spirv_as|spirv-as|spirv-tools")
    string(REPLACE "|" ";" need "${need}")
    list(GET need 0 variable)
    list(GET need 1 what)
    list(GET need 2 package)
    if(NOT ${variable})
        message(FATAL_ERROR "${what} not found: install ${package} (see cmake/packages.txt), or set ${variable}")
    endif()
    mark_as_advanced(${variable})
endforeach()

include(cmake/abseil.cmake)
auspex_find_abseil(${AUSPEX_SENTENCEPIECE_INCLUDE_DIR})
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
