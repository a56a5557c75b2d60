# Shader variants beyond the plain ones: every shaders/<name>.comp is built once as "<name>" without being listed here.
#
# auspex_shader(<variant> SOURCE <file.comp> [OP <Op>] [DEFINES A=1 ...] [UNROLL] [PREBUILT])

# Reductions by shuffles where the subgroup size is known, instead of through shared memory; the same trees.
foreach(op rmsnorm prenorm attention vocab_partials pick accept_race accept_candidates logprobs_partials logprobs_rows)
  auspex_shader(${op}.subgroup SOURCE ${op}.comp DEFINES SUBGROUP=1)
endforeach()

# Where the head has already found the best token of each of its workgroups.
auspex_shader(pick.best SOURCE pick.comp DEFINES BEST=1)
auspex_shader(pick.best.subgroup SOURCE pick.comp DEFINES BEST=1 SUBGROUP=1)

# In rounds after which texts are searched.
auspex_shader(accept_commit.searches SOURCE accept_commit.comp OP AcceptCommitSearches DEFINES SEARCHES=1)

# Weights in the block formats of shared/weight_format.h.
foreach(op matmul embed)
  auspex_shader(${op}.quant SOURCE ${op}.comp DEFINES QUANT=1)
endforeach()

# Prompts on GPUs without matrix units that are quick at halves.
auspex_shader(matmul.halves SOURCE matmul.comp DEFINES HALVES=1)
auspex_shader(matmul.quant.halves SOURCE matmul.comp DEFINES QUANT=1 HALVES=1)

# Matrix units: GL_KHR_cooperative_matrix needs a newer glslang than many a machine has.
auspex_shader(matmul_matrix SOURCE shaders/matrix/matmul_matrix.comp OP Matmul PREBUILT)
auspex_shader(matmul_matrix.quant SOURCE shaders/matrix/matmul_matrix.comp OP Matmul DEFINES QUANT=1 PREBUILT)
auspex_shader(prompt_attention_matrix SOURCE shaders/matrix/prompt_attention_matrix.comp OP PromptAttention PREBUILT)

# The mat-vec family, each member for plain and block formats, through shared memory and by shuffles.
# ".wide" is for llvmpipe: 64-bit fetches (shaderInt64), and loops unrolled here, because it gives up on large ones.
foreach(op matvec normed_matvec qkv gate_up)
  foreach(quant "" .quant)
    set(variant ${op}${quant})
    set(defines)
    set(built_rows 1 2 3 4 5 6 7 8)
    set(outs 16)
    if(quant)
      set(defines QUANT=1)
      set(built_rows 1 2 4 6 8)
      set(outs 8)
      auspex_shader(${variant} SOURCE ${op}.comp DEFINES ${defines})
    endif()
    auspex_shader(${variant}.subgroup SOURCE ${op}.comp DEFINES ${defines} SUBGROUP=1)
    if(quant) # of passes that only draft, on devices that multiply four bytes at once
      auspex_shader(${variant}.int8.subgroup SOURCE ${op}.comp DEFINES ${defines} SUBGROUP=1 INT8_X=1)
    endif()
    foreach(rows ${built_rows})
      auspex_shader(${variant}.wide.rows${rows} SOURCE ${op}.comp UNROLL
        DEFINES ${defines} SUBGROUP=1 WIDE=1 UNROLLED=1 UNROLLED_ROWS=${rows} UNROLLED_OUTS=${outs})
    endforeach()
  endforeach()
endforeach()
auspex_shader(prenorm.wide SOURCE prenorm.comp DEFINES SUBGROUP=1 WIDE=1)
# The same for attention, by the dimension of a head and by how many queries share what is read.
foreach(head_dim 32 64 128)
  foreach(queries 1 2 3 4 6)
    auspex_shader(attention.wide.dim${head_dim}.queries${queries} SOURCE attention.comp UNROLL
      DEFINES SUBGROUP=1 WIDE=1 UNROLLED=1 UNROLLED_HEAD_DIM=${head_dim} UNROLLED_QUERIES=${queries})
  endforeach()
endforeach()
