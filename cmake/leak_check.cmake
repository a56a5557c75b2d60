# AUSPEX_LEAK_CHECK: modules stay loaded in every program, so that a leak or a race in a driver is known by its module. See tests/lsan
# and tests/tsan.
foreach(folder ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        get_target_property(type ${target} TYPE)
        if(type STREQUAL "EXECUTABLE")
            target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/lsan/modules_stay.cpp)
            target_link_options(${target} PRIVATE LINKER:--export-dynamic-symbol=dlclose)
        endif()
    endforeach()
endforeach()
