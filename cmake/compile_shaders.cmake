# GLSL -> SPIR-V 1.3 -> validated -> every rounding kept -> optimised -> words in the program, and layout checks against the C++ structs.
# One custom command per variant; what each step writes is decided in embed_shader.cmake.

# auspex_shader(<variant name> SOURCE <file.comp> [OP <Op>] [DEFINES A=1 ...] [UNROLL] [PREBUILT])
# The only thing shaders/variants.cmake contains. SOURCE is relative to shaders/, or to the top folder when it has a slash.
# OP: auspex::ops::<Op>, which must say what the module takes; of <some_op>.comp it is SomeOp unless told otherwise.
# UNROLL unrolls every loop marked [[unroll]] before the other optimisations. PREBUILT takes <variant name>.spv from
# beside the source, as prebuilt_shaders.cmake made it, because many a glslang could not; its structs are those of other
# variants, which check them.
function(auspex_shader name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "UNROLL;PREBUILT" "SOURCE;OP" "DEFINES")
    if(NOT arg_SOURCE OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "auspex_shader(${name} SOURCE <file.comp> [OP <Op>] [DEFINES ...] [UNROLL] [PREBUILT]): what is ${arg_UNPARSED_ARGUMENTS}?")
    endif()
    set(source ${PROJECT_SOURCE_DIR}/shaders/${arg_SOURCE})
    if(IS_ABSOLUTE ${arg_SOURCE})
        set(source ${arg_SOURCE})
    elseif(arg_SOURCE MATCHES "/")
        set(source ${PROJECT_SOURCE_DIR}/${arg_SOURCE})
    endif()
    if(NOT EXISTS ${source})
        message(FATAL_ERROR "shader variant ${name}: no such file ${source}")
    endif()

    get_property(library GLOBAL PROPERTY auspex_shader_library)
    get_property(known GLOBAL PROPERTY auspex_shaders_${library})
    if(name IN_LIST known)
        message(FATAL_ERROR "shader variant ${name} is listed twice")
    endif()
    set_property(GLOBAL APPEND PROPERTY auspex_shaders_${library} ${name})
    if(NOT arg_OP)
        cmake_path(GET source STEM stem)
        string(REPLACE "_" ";" parts ${stem})
        foreach(part IN LISTS parts)
            string(SUBSTRING ${part} 0 1 first)
            string(SUBSTRING ${part} 1 -1 rest)
            string(TOUPPER ${first} first)
            string(APPEND arg_OP ${first}${rest})
        endforeach()
    endif()
    set(options OP ${arg_OP})
    if(arg_UNROLL)
        list(APPEND options UNROLL)
    endif()
    if(arg_DEFINES)
        list(APPEND options DEFINES ${arg_DEFINES})
    endif()
    set_property(GLOBAL PROPERTY auspex_source_of_${name} ${source}) # for tests that build the same from a changed text
    set_property(GLOBAL PROPERTY auspex_options_of_${name} ${options})

    set(out ${PROJECT_BINARY_DIR}/shaders/${library}/${name})
    if(arg_PREBUILT)
        cmake_path(GET source PARENT_PATH folder)
        add_custom_command(
            OUTPUT ${out}.words.inc ${out}.layout.inc
            COMMAND ${CMAKE_COMMAND} -E copy ${folder}/${name}.spv ${out}.opt.spv
            COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D OP=${arg_OP} -D OUT=${out} -D SOURCE=${source}
                    -P ${PROJECT_SOURCE_DIR}/cmake/embed_shader.cmake
            DEPENDS ${folder}/${name}.spv ${source} ${PROJECT_SOURCE_DIR}/cmake/embed_shader.cmake COMMENT "Shader ${name}" VERBATIM)
        return()
    endif()
    list(TRANSFORM arg_DEFINES PREPEND -D)
    set(unroll)
    set(unrolled ${out}.spv)
    if(arg_UNROLL) # twice: a loop around branches on specialisation constants unrolls only once equal values are one
        # Dead code goes before the first: the unroller walks the whole function once a copy, so it would take four times as long.
        set(unrolled ${out}.unrolled.spv)
        set(unroll COMMAND ${AUSPEX_spirv_opt} --target-env=vulkan1.1 --merge-return --inline-entry-points-exhaustive --private-to-local
            --ssa-rewrite --ccp --eliminate-dead-branches --eliminate-dead-code-aggressive --merge-blocks
            --loop-unroll --eliminate-dead-branches --ccp --merge-blocks --scalar-replacement=0 --ssa-rewrite --ccp
            --redundancy-elimination --loop-unroll --ccp --scalar-replacement=0 --ssa-rewrite --ccp
            --eliminate-dead-code-aggressive ${out}.spv -o ${unrolled})
    endif()
    # Before the optimiser, so that it folds none; and again for what it copied.
    set(keep_roundings ${CMAKE_COMMAND} -D SPIRV_DIS=${AUSPEX_spirv_dis} -D SPIRV_AS=${AUSPEX_spirv_as})
    set(script ${PROJECT_SOURCE_DIR}/cmake/keep_roundings.cmake)
    add_custom_command(
        OUTPUT ${out}.spv ${out}.words.inc ${out}.layout.inc
        COMMAND ${AUSPEX_glslangValidator} --quiet --target-env vulkan1.1 -V -S comp -I${PROJECT_SOURCE_DIR}/shaders
                ${arg_DEFINES} --depfile ${out}.d -o ${out}.spv ${source}
        COMMAND ${AUSPEX_spirv_val} --target-env vulkan1.1 ${out}.spv
        ${unroll}
        COMMAND ${keep_roundings} -D IN=${unrolled} -D OUT=${out}.exact.spv -P ${script}
        COMMAND ${AUSPEX_spirv_opt} --target-env=vulkan1.1 -O --strip-debug ${out}.exact.spv -o ${out}.opt.spv
        COMMAND ${keep_roundings} -D IN=${out}.opt.spv -D OUT=${out}.opt.spv -P ${script}
        COMMAND ${AUSPEX_spirv_val} --target-env vulkan1.1 ${out}.opt.spv
        COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D OP=${arg_OP} -D OUT=${out} -D SPIRV_DIS=${AUSPEX_spirv_dis}
                -D SHARED_HEADERS=${PROJECT_SOURCE_DIR}/shaders/shared -P ${PROJECT_SOURCE_DIR}/cmake/embed_shader.cmake
        DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/embed_shader.cmake ${script}
        DEPFILE ${out}.d
        COMMENT "Shader ${name}" VERBATIM)
endfunction()

# auspex_embed_shaders(<target> <function> <header> <variants file> [<glob>...])
# Adds to <target> the definition of std::span<const uint32_t> auspex::<function>(std::string_view), declared in <header>:
# every variant of the variants file, and every shader the globs find under the name of its file. Their ops are in engine/kernels/*.h
# or in <header>.
function(auspex_embed_shaders target function header variants_file)
    set_property(GLOBAL PROPERTY auspex_shader_library ${function})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/shaders/${function})
    file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM LAST_ONLY name)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
        string(REGEX REPLACE "^shaders/" "" path ${path})
        auspex_shader(${name} SOURCE ${path})
    endforeach()
    include(${variants_file})

    get_property(names GLOBAL PROPERTY auspex_shaders_${function})
    set(words "")
    set(rows "")
    set(layouts "")
    set(outputs "")
    foreach(name IN LISTS names)
        string(MAKE_C_IDENTIFIER ${name} identifier)
        string(APPEND words "constexpr uint32_t ${identifier}_words[] = {\n#include \"${function}/${name}.words.inc\"\n};\n")
        string(APPEND rows "    {\"${name}\", ${identifier}_words},\n")
        string(APPEND layouts "#include \"${function}/${name}.layout.inc\"\n")
        list(APPEND outputs ${PROJECT_BINARY_DIR}/shaders/${function}/${name}.words.inc
                            ${PROJECT_BINARY_DIR}/shaders/${function}/${name}.layout.inc)
    endforeach()

    # The struct definitions that the checks speak of.
    file(GLOB shared_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/shaders ${PROJECT_SOURCE_DIR}/shaders/shared/*.h)
    file(GLOB op_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/engine ${PROJECT_SOURCE_DIR}/engine/kernels/*.h)
    set(includes "")
    foreach(included IN LISTS shared_headers op_headers ITEMS ${header})
        string(APPEND includes "#include \"${included}\"\n")
    endforeach()

    configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded_shaders.cpp.in ${PROJECT_BINARY_DIR}/shaders/${function}.cpp @ONLY)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/shader_layouts.cpp.in ${PROJECT_BINARY_DIR}/shaders/${function}_layouts.cpp @ONLY)
    target_sources(${target} PRIVATE
        ${PROJECT_BINARY_DIR}/shaders/${function}.cpp ${PROJECT_BINARY_DIR}/shaders/${function}_layouts.cpp)
    target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/shaders)
    set_property(SOURCE ${PROJECT_BINARY_DIR}/shaders/${function}.cpp ${PROJECT_BINARY_DIR}/shaders/${function}_layouts.cpp
        PROPERTY OBJECT_DEPENDS ${outputs})
endfunction()
