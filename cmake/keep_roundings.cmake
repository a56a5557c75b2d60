# Decorates every float sum, product, quotient and fma of a SPIR-V module with NoContraction: nothing is fused or regrouped, and by
# the specification of GLSL.std.450 all fmas give one result for one input, whatever pipeline they are in. GLSL's `precise` is
# not enough: glslang does not decorate fma, and spirv-opt forgets decorations where it copies the body of an unrolled loop.
#   cmake -D IN=a.spv -D OUT=b.spv -D SPIRV_DIS=… -D SPIRV_AS=… -P cmake/keep_roundings.cmake
#   cmake -D CHECK=FOLDER -D SPIRV_DIS=… -P cmake/keep_roundings.cmake    fails unless every *.opt.spv below is decorated
cmake_minimum_required(VERSION 3.25)

# Sets `ids` of the caller: the results that are rounded; and `text`, the module's.
function(find_rounded module)
    execute_process(COMMAND ${SPIRV_DIS} --raw-id --no-color --no-indent ${module} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL
        "%[0-9]+ = (Op(FAdd|FSub|FMul|FDiv|Dot|VectorTimesScalar|VectorTimesMatrix|MatrixTimesVector) |OpExtInst %[0-9]+ %[0-9]+ Fma )" ids "${text}")
    list(TRANSFORM ids REPLACE " .*" "")
    set(ids "${ids}" PARENT_SCOPE)
    set(text "${text}" PARENT_SCOPE)
endfunction()

if(CHECK)
    file(GLOB_RECURSE modules ${CHECK}/*.opt.spv)
    set(n 0)
    foreach(module IN LISTS modules)
        string(REGEX REPLACE "\\.opt\\.spv$" ".exact.spv" made_here "${module}")
        if(NOT EXISTS ${made_here})
            continue() # prebuilt, decorated when it was made; an old spirv-dis cannot read it
        endif()
        find_rounded(${module})
        string(REGEX MATCHALL "OpDecorate %[0-9]+ NoContraction" decorated "${text}")
        list(TRANSFORM decorated REPLACE ".*(%[0-9]+).*" "\\1")
        list(LENGTH ids n_ids)
        list(REMOVE_ITEM ids ${decorated} "")
        list(LENGTH ids n_bare)
        if(n_bare GREATER 0)
            message(SEND_ERROR "${module}: ${n_bare} of ${n_ids} roundings lack NoContraction")
        endif()
        math(EXPR n "${n} + ${n_ids}")
    endforeach()
    if(n EQUAL 0)
        message(FATAL_ERROR "${CHECK}: no *.opt.spv with arithmetic")
    endif()
    message(STATUS "${n} roundings")
    return()
endif()

find_rounded(${IN})
list(TRANSFORM ids PREPEND "OpDecorate ")
list(TRANSFORM ids APPEND " NoContraction\n")
list(JOIN ids "" decorations)
string(REGEX REPLACE "OpDecorate %[0-9]+ NoContraction\n" "" text "${text}")
string(FIND "${text}" "OpDecorate " at)
string(SUBSTRING "${text}" 0 ${at} head)
string(SUBSTRING "${text}" ${at} -1 tail)
file(WRITE ${OUT}.txt "${head}${decorations}${tail}")
execute_process(COMMAND ${SPIRV_AS} --target-env vulkan1.1 --preserve-numeric-ids ${OUT}.txt -o ${OUT} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${OUT}.txt)
