# Shader variants beyond the plain ones: every shaders/<name>.comp is built once as "<name>" without being listed here.
#
# auspex_shader(<variant> SOURCE <file.comp> [DEFINES A=1 ...] [UNROLL] [PREBUILT])

# Reductions by shuffles where the subgroup size is known, instead of through shared memory; the same trees.
foreach(op matvec rmsnorm attention vocab_partials pick accept_race accept_candidates)
  auspex_shader(${op}.subgroup SOURCE ${op}.comp DEFINES SUBGROUP=1)
endforeach()

# Weights in the block formats of shared/weight_format.h.
foreach(op matvec matmul embed)
  auspex_shader(${op}.quant SOURCE ${op}.comp DEFINES QUANT=1)
endforeach()
auspex_shader(matvec.quant.subgroup SOURCE matvec.comp DEFINES QUANT=1 SUBGROUP=1)

# Matrix units: GL_KHR_cooperative_matrix needs a newer glslang than many a machine has.
auspex_shader(matmul_matrix SOURCE shaders/matrix/matmul_matrix.comp PREBUILT)
auspex_shader(matmul_matrix.quant SOURCE shaders/matrix/matmul_matrix.comp DEFINES QUANT=1 PREBUILT)

# llvmpipe: 64-bit fetches (shaderInt64), and loops unrolled here, because it gives up on large ones.
foreach(rows 1 2 3 4 5 6 7 8 12 16)
  set(outs 16)
  if(rows GREATER 8)
    set(outs 8)
  endif()
  auspex_shader(matvec.wide.rows${rows} SOURCE matvec.comp UNROLL
    DEFINES SUBGROUP=1 WIDE=1 UNROLLED=1 UNROLLED_ROWS=${rows} UNROLLED_OUTS=${outs})
endforeach()
foreach(rows 1 2 4 6 8)
  auspex_shader(matvec.quant.wide.rows${rows} SOURCE matvec.comp UNROLL
    DEFINES QUANT=1 SUBGROUP=1 WIDE=1 UNROLLED=1 UNROLLED_ROWS=${rows} UNROLLED_OUTS=8)
endforeach()
auspex_shader(attention.wide SOURCE attention.comp DEFINES SUBGROUP=1 WIDE=1)
