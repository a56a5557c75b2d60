# Shader variants that only tests link, found with test_shader("<variant>") from tests/test_shaders.h.
# Every tests/<folder>/<name>.comp is built as "<name>" without being listed here.
#
# auspex_shader(accept_test.fault3 SOURCE accept_test.comp DEFINES FAULT=3)

# Planted faults of the acceptance; tests/accept/faults_test.cpp says what each one is, of 8 session/proposed_sampling_test.cpp.
foreach(fault 2 3 4 5 7)
  auspex_shader(accept_test.fault${fault} SOURCE accept_test.comp DEFINES FAULT=${fault})
endforeach()
foreach(fault 1 3 6 8)
  auspex_shader(accept_race.fault${fault} SOURCE accept_race.comp DEFINES FAULT=${fault})
  auspex_shader(accept_race.subgroup.fault${fault} SOURCE accept_race.comp DEFINES FAULT=${fault} SUBGROUP=1)
endforeach()
