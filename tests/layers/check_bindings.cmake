# What C++ and GLSL say of an op differs, and the build fails: each case changes one text of a copy, and the checks that the build writes
# of that shader must not compile then, but must of the texts as they are.
#   cmake -D ROOT=<top> -D WORK=<folder> -D CXX=<compiler> -D VULKAN=<its headers> -D GLSLANG=<program> -D SPIRV_DIS=<program> -P this
cmake_minimum_required(VERSION 3.25)

# A copy of the shaders, and of what engine code is changed; what it holds comes first wherever a text includes another.
set(copy ${WORK}/copy)
macro(begin)
    file(REMOVE_RECURSE ${copy})
    file(MAKE_DIRECTORY ${copy}/engine/kernels)
    file(COPY ${ROOT}/shaders DESTINATION ${copy})
endmacro()

# change(<file> <text> <instead>): a text that is there exactly once.
function(change file text instead)
    if(NOT EXISTS ${copy}/${file})
        configure_file(${ROOT}/${file} ${copy}/${file} COPYONLY)
    endif()
    file(READ ${copy}/${file} code)
    string(FIND "${code}" "${text}" first)
    string(FIND "${code}" "${text}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "${file} must have this text exactly once: ${text}")
    endif()
    string(REPLACE "${text}" "${instead}" code "${code}")
    file(WRITE ${copy}/${file} "${code}")
endfunction()

# The module of the copy, by the build's own steps but the optimiser's, and what the checks of it say; -D definitions behind.
function(check name op header)
    set(out ${WORK}/${name})
    execute_process(COMMAND ${GLSLANG} --quiet --target-env vulkan1.1 -V -S comp -I${copy}/shaders ${ARGN} -o ${out}.spv
        ${copy}/shaders/${name}.comp COMMAND_ERROR_IS_FATAL ANY)
    file(COPY_FILE ${out}.spv ${out}.opt.spv)
    execute_process(COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D OP=${op} -D OUT=${out} -D SPIRV_DIS=${SPIRV_DIS}
        -D SHARED_HEADERS=${copy}/shaders/shared -P ${ROOT}/cmake/embed_shader.cmake COMMAND_ERROR_IS_FATAL ANY)
    compile(${name} ${header})
    set(said "${said}" PARENT_SCOPE)
endfunction()
function(check_prebuilt name op header)
    set(out ${WORK}/${name})
    file(COPY_FILE ${copy}/shaders/matrix/${name}.spv ${out}.opt.spv)
    execute_process(COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D OP=${op} -D OUT=${out} -D SOURCE=${copy}/shaders/matrix/${name}.comp
        -P ${ROOT}/cmake/embed_shader.cmake COMMAND_ERROR_IS_FATAL ANY)
    compile(${name} ${header})
    set(said "${said}" PARENT_SCOPE)
endfunction()
function(compile name header)
    set(includes "#include \"shared/texels.h\"\n#include \"${header}\"\n#include <cstddef>\n#include <string_view>\n#include <type_traits>\n")
    file(WRITE ${WORK}/${name}.cpp "${includes}#include \"${WORK}/${name}.layout.inc\"\n")
    execute_process(COMMAND ${CXX} -std=c++20 -fsyntax-only -I${copy}/engine -I${copy}/shaders -I${ROOT}/engine -idirafter ${VULKAN} ${WORK}/${name}.cpp
        ERROR_VARIABLE said OUTPUT_VARIABLE said)
    set(said "${said}" PARENT_SCOPE)
endfunction()

function(expect case words)
    if(words STREQUAL "" AND NOT said STREQUAL "")
        message(FATAL_ERROR "${case}: this should compile:\n${said}")
    endif()
    string(FIND "${said}" "${words}" at)
    if(at EQUAL -1)
        message(FATAL_ERROR "${case}: the build should say \"${words}\", and says:\n${said}")
    endif()
    message(STATUS "${case}: as it should be")
endfunction()

begin()
check(accept_test AcceptTest kernels/accept.h)
expect("as it is" "")

change(engine/kernels/accept.h "state, round_slots, target_rows, plans;" "round_slots, state, target_rows, plans;")
compile(accept_test kernels/accept.h)
expect("two members of Bindings are swapped" "shader accept_test: C++ and GLSL disagree where state is bound")

begin()
change(engine/kernels/accept.h "round_slots, target_rows, plans;" "round_slots, target_rows, plans, more;")
compile(accept_test kernels/accept.h)
expect("a member of Bindings is nobody's" "AcceptTest::Bindings has more or fewer members than the shader has buffers")

begin()
change(shaders/shared/accept_args.h "struct AcceptTestArgs {\n    uint batch;\n    uint draft_len;" "struct AcceptTestArgs {\n    uint draft_len;\n    uint batch;")
compile(accept_test kernels/accept.h)
expect("two members of an argument struct are swapped, in C++ alone" "C++ and GLSL disagree where AcceptTestArgs.batch is")

begin()
change(shaders/shared/accept_args.h "kTestState = 4u" "kTestState = 5u")
change(shaders/shared/accept_args.h "kTestRoundSlots = 5u" "kTestRoundSlots = 4u")
check(accept_test AcceptTest kernels/accept.h)
expect("two slots are swapped" "shader accept_test: C++ and GLSL disagree where state is bound")

begin()
change(shaders/prenorm.comp "kPrenormX, x_texels" "kPrenormX, other_texels")
change(shaders/prenorm.comp "kPrenormWeight, weight_texels" "kPrenormWeight, x_texels")
change(shaders/prenorm.comp "kPrenormX, other_texels" "kPrenormX, weight_texels")
check(prenorm Prenorm kernels/prenorm.h -DSUBGROUP=1 -DWIDE=1)
expect("texels of two buffers are swapped" "shader prenorm: C++ and GLSL disagree where x_texels is bound")

begin()
change(shaders/shared/matmul_args.h "kMatmulX = 1u" "kMatmulX = 2u")
change(shaders/shared/matmul_args.h "kMatmulY = 2u" "kMatmulY = 1u")
check_prebuilt(matmul_matrix Matmul kernels/matmul.h)
expect("two slots of a checked-in module are swapped" "shader matmul_matrix: C++ and GLSL disagree where x is bound")
