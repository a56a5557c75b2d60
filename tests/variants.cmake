# Shader variants that only tests link, found with test_shader("<variant>") from tests/test_shaders.h.
# Every tests/<folder>/<name>.comp is built as "<name>" without being listed here.
#
# auspex_shader(accept_test.fault3 SOURCE accept_test.comp DEFINES FAULT=3)

# Planted faults of the acceptance; tests/accept/faults_test.cpp says what each one is, and not_finite_test.cpp of the last.
foreach(fault 2 3 4 5 7 12 13 15 21 22 24 25)
  auspex_shader(accept_test.fault${fault} SOURCE accept_test.comp DEFINES FAULT=${fault})
endforeach()
foreach(fault 1 3 6 8 9 10 11 14 18 19 20 26)
  auspex_shader(accept_race.fault${fault} SOURCE accept_race.comp DEFINES FAULT=${fault})
  auspex_shader(accept_race.subgroup.fault${fault} SOURCE accept_race.comp DEFINES FAULT=${fault} SUBGROUP=1)
endforeach()
auspex_shader(accept_commit.searches.fault1 SOURCE accept_commit.comp DEFINES FAULT=1 SEARCHES=1) # tests/kernels/text_index_test.cpp
foreach(op_fault pick.17 vocab_partials.16 vocab_partials.23)
  string(REPLACE "." ";" op_fault ${op_fault})
  list(GET op_fault 0 op)
  list(GET op_fault 1 fault)
  auspex_shader(${op}.fault${fault} SOURCE ${op}.comp DEFINES FAULT=${fault})
  auspex_shader(${op}.subgroup.fault${fault} SOURCE ${op}.comp DEFINES FAULT=${fault} SUBGROUP=1)
endforeach()

# Planted faults of the transforms; tests/session/transforms_test.cpp says what each one is.
foreach(fault 1 2)
  auspex_shader(edit_logits.fault${fault} SOURCE edit_logits.comp DEFINES FAULT=${fault})
endforeach()
auspex_shader(vocab_partials.fault1 SOURCE vocab_partials.comp DEFINES FAULT=1)
auspex_shader(vocab_partials.subgroup.fault1 SOURCE vocab_partials.comp DEFINES FAULT=1 SUBGROUP=1)

# Planted faults of several candidates; tests/accept/candidates_test.cpp says what each one is.
foreach(fault 1 2 3 4 5)
  auspex_shader(accept_candidates.fault${fault} SOURCE accept_candidates.comp DEFINES FAULT=${fault})
  auspex_shader(accept_candidates.subgroup.fault${fault} SOURCE accept_candidates.comp DEFINES FAULT=${fault} SUBGROUP=1)
endforeach()

# Row counts that do not agree; tests/tuning/tuning_test.cpp says what each fault is.
foreach(fault 1 2)
  auspex_shader(matvec.fault${fault} SOURCE matvec.comp DEFINES FAULT=${fault})
  auspex_shader(matvec.subgroup.fault${fault} SOURCE matvec.comp DEFINES FAULT=${fault} SUBGROUP=1)
endforeach()
foreach(case 4.16.1 8.16.2) # rows, outputs as shaders/variants.cmake has them, fault
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)\\.([0-9]+)$" _ ${case})
  auspex_shader(matvec.wide.rows${CMAKE_MATCH_1}.fault${CMAKE_MATCH_3} SOURCE matvec.comp UNROLL
    DEFINES FAULT=${CMAKE_MATCH_3} SUBGROUP=1 WIDE=1 UNROLLED=1 UNROLLED_ROWS=${CMAKE_MATCH_1} UNROLLED_OUTS=${CMAKE_MATCH_2})
endforeach()
