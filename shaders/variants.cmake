# Shader variants beyond the plain ones: every shaders/<name>.comp is built once as "<name>" without being listed here.
#
# auspex_shader(<variant> SOURCE <file.comp> [DEFINES A=1 ...] [UNROLL])

# Reductions by shuffles where the subgroup size is known, instead of through shared memory; the same trees.
foreach(op matvec rmsnorm attention vocab_partials pick accept_race)
  auspex_shader(${op}.subgroup SOURCE ${op}.comp DEFINES SUBGROUP=1)
endforeach()
