# Turns OUT.opt.spv into OUT.words.inc (numbers for a C++ array), and the struct layouts found in OUT.spv, which still has
# its names, into OUT.layout.inc (static_asserts). Run once per shader variant, with NAME, OUT, SPIRV_DIS, SHARED_HEADERS;
# NO_LAYOUT: without the layouts, of modules that an old spirv-dis cannot read.
cmake_minimum_required(VERSION 3.25)

file(READ ${OUT}.opt.spv hex HEX) # little-endian words
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
string(REPEAT "..........." 10 ten)
string(REGEX REPLACE "(${ten})" "\\1\n" words "${words}")
file(WRITE ${OUT}.words.inc "${words}\n")
if(NO_LAYOUT)
    file(WRITE ${OUT}.layout.inc "")
    return()
endif()

# ---- names of the shared structs --------------------------------------------------------------------------------------
file(GLOB headers ${SHARED_HEADERS}/*.h)
set(shared_structs)
foreach(header IN LISTS headers)
    file(STRINGS ${header} lines REGEX "^ *struct +[A-Za-z0-9_]+")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "^ *struct +([A-Za-z0-9_]+).*" "\\1" struct "${line}")
        list(APPEND shared_structs ${struct})
    endforeach()
endforeach()

# ---- what the module says ------------------------------------------------------------------------------------------------
execute_process(COMMAND ${SPIRV_DIS} --raw-id --no-color ${OUT}.spv OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" " " text "${text}")

# struct_<id> = name for types whose name is that of a shared struct
set(ids)
string(REGEX MATCHALL "OpName %[0-9]+ \"[A-Za-z0-9_]+\"" names "${text}")
foreach(entry IN LISTS names)
    string(REGEX MATCH "OpName %([0-9]+) \"([A-Za-z0-9_]+)\"" entry "${entry}")
    if(CMAKE_MATCH_2 IN_LIST shared_structs)
        set(id ${CMAKE_MATCH_1})
        set(struct ${CMAKE_MATCH_2})
        if(text MATCHES "%${id} = OpTypeStruct" AND text MATCHES "OpMemberDecorate %${id} 0 Offset")
            list(APPEND ids ${id})
            set(struct_${id} ${struct})
        endif()
    endif()
endforeach()

set(asserts "// ${NAME}\n")
foreach(id IN LISTS ids)
    set(struct ${struct_${id}})
    set(type auspex::gpu::${struct})
    string(REGEX MATCHALL "OpMemberName %${id} [0-9]+ \"[A-Za-z0-9_]+\"" members "${text}")
    foreach(member IN LISTS members)
        string(REGEX MATCH "OpMemberName %${id} ([0-9]+) \"([A-Za-z0-9_]+)\"" member "${member}")
        set(index ${CMAKE_MATCH_1})
        set(member ${CMAKE_MATCH_2})
        string(REGEX MATCH "OpMemberDecorate %${id} ${index} Offset ([0-9]+)" offset "${text}")
        set(offset ${CMAKE_MATCH_1})
        string(APPEND asserts "static_assert(offsetof(${type}, ${member}) == ${offset}, "
            "\"shader ${NAME}: C++ and GLSL disagree where ${struct}.${member} is\");\n")
    endforeach()

    # Size: 4 bytes after the last member, or 4 n when it is an array of n 4-byte elements.
    set(bytes 4)
    string(REGEX MATCH "%${id} = OpTypeStruct[ %0-9]* %([0-9]+)\n" last "${text}")
    set(last_type ${CMAKE_MATCH_1})
    if(text MATCHES "%${last_type} = OpTypeArray %[0-9]+ %([0-9]+)\n")
        string(REGEX MATCH "%${CMAKE_MATCH_1} = OpConstant %[0-9]+ ([0-9]+)\n" length "${text}")
        math(EXPR bytes "4 * ${CMAKE_MATCH_1}")
    elseif(NOT text MATCHES "%${last_type} = OpType(Int|Float) 32")
        message(FATAL_ERROR "shader ${NAME}: the last member of ${struct} is not uint, int, float or an array of these")
    endif()
    math(EXPR bytes "${offset} + ${bytes}")
    string(APPEND asserts "static_assert(sizeof(${type}) == ${bytes}, \"shader ${NAME}: C++ and GLSL disagree on the size of ${struct}\");\n")
    # Elements of a buffer of structs lie as far apart as in a C++ array.
    if(text MATCHES "%([0-9]+) = OpType(RuntimeArray|Array) %${id}[ \n]")
        if(text MATCHES "OpDecorate %${CMAKE_MATCH_1} ArrayStride ([0-9]+)")
            string(APPEND asserts "static_assert(sizeof(${type}) == ${CMAKE_MATCH_1}, "
                "\"shader ${NAME}: C++ and GLSL disagree on the array stride of ${struct}\");\n")
        endif()
    endif()
endforeach()

# ---- push constants: one shared struct, at most the 128 bytes every device has ---------------------------------------------
if(text MATCHES "%([0-9]+) = OpVariable %([0-9]+) PushConstant")
    string(REGEX MATCH "%${CMAKE_MATCH_2} = OpTypePointer PushConstant %([0-9]+)" pointer "${text}")
    string(REGEX MATCH "%${CMAKE_MATCH_1} = OpTypeStruct %([0-9]+)\n" block "${text}")
    if(NOT CMAKE_MATCH_1 IN_LIST ids)
        message(FATAL_ERROR "shader ${NAME}: a push_constant block holds one member, `<Name>Args args`, "
            "whose struct is defined in shaders/shared/*.h")
    endif()
    set(struct ${struct_${CMAKE_MATCH_1}})
    string(APPEND asserts "static_assert(sizeof(auspex::gpu::${struct}) <= 128, \"${struct}: more than the 128 bytes of push constants every device has\");\n")
endif()
file(WRITE ${OUT}.layout.inc "${asserts}")
