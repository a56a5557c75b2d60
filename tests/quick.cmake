# What `ctest --preset quick` runs in two minutes (three on a driver that has kept no shader yet): every program that takes a few
# seconds and every check, and of the slow programs excerpts that touch each of their layers. An excerpt is an entry of its own,
# which no other preset runs. In a filter of Google Test all that follows a '-' is left out: "*-A.*:B.*" is all but A and B.
set(excerpts
    "accept|Faults.*:Noise.philox*:OneCandidate.*:Coupled.texts*:RulesTest.lenience_of_one*:RulesTest.proposals*"
    "cli|CliRun.TellsAStory*:CliRun.JsonHas*:CliErrors.WordsAndFlags:CliErrors.Numbers:CliErrors.MissingModels:CliChat.OnlyNewTokens*:CliTokenize.*:CliScore.Refusals:CliTerminal.JsonIs*"
    "device|Device*:Adopt*:Memory*:Recording*:VkInjector*:FaultInjection.Nothing*"
    "kernels|Accept.*:ApplyCommands.*:*Attention.agrees*native*:BestTokens.*:Copy.*:EditLogits.*:*Embed.*:GateUp.*f32*:KernelLibrary*:*Logprob*:*Matvec.agrees*native*:Propose.*:Rows.*:ReplayRows.*:TextIndex.*:Tuning.*:Vocab.*native*"
    "model|*-Release.*:FormatGoldens.*:*survives_random_damage*:*in_any_chunks*:*company/gqa3_shared:*company/gqa4*:*company/gqa5*"
    "session|Speculation*:TurnSlices.*:PromptRows*:Trace.*:Plan.*:StopTexts*:*BundledGreedyAlone.*:*Goldens*target_f16:Append.held*:Append.a_conversation*:Lifecycle.*:Logprobs.are_given*:Logprobs.end*:Score.refusals:Devices.compiling*:BackgroundCompile.an_engine*:BackgroundCompile.two*-TurnSlices.chunks*"
    "tuning|Tuning.hostile*:Tuning.entries*:Tuning.only*:Tuning.nothing*")
set(slow_programs "")
foreach(excerpt IN LISTS excerpts)
    string(REGEX MATCH "^([a-z]+)\\|(.*)$" _ ${excerpt})
    list(APPEND slow_programs ${CMAKE_MATCH_1})
    add_test(NAME quick_${CMAKE_MATCH_1} COMMAND test_${CMAKE_MATCH_1} --gtest_filter=${CMAKE_MATCH_2} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(quick_${CMAKE_MATCH_1} PROPERTIES TIMEOUT 1800 LABELS "quick;excerpt" ENVIRONMENT LP_NUM_THREADS=0)
endforeach()

get_property(entries DIRECTORY PROPERTY TESTS)
foreach(entry IN LISTS entries)
    string(REGEX REPLACE "_[01]$" "" program ${entry})
    if(NOT program IN_LIST slow_programs AND NOT entry MATCHES "^(quick_.*|.*_long|profile_.*|wide_.*|order_.*|consumers|swiftshader)$")
        set_property(TEST ${entry} APPEND PROPERTY LABELS quick)
    endif()
endforeach()
