# Installation: libraries, public headers, the program with its pair, find_package(auspex) and pkg-config files.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/auspex)

install(TARGETS auspex_static auspex_shared EXPORT auspex_targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT auspex_targets NAMESPACE auspex:: DESTINATION ${config_folder})
install(DIRECTORY engine/api/include/auspex DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} OPTIONAL FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/auspex-config.cmake.in auspex-config.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(auspex-config-version.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH AUSPEX_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(AUSPEX_PC_ABSEIL "")
if(AUSPEX_ABSEIL)
    set(AUSPEX_PC_ABSEIL " -labsl_status")
endif()
configure_file(cmake/auspex.pc.in auspex.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/auspex-config.cmake ${PROJECT_BINARY_DIR}/auspex-config-version.cmake
    DESTINATION ${config_folder})
install(FILES ${PROJECT_BINARY_DIR}/auspex.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE third_party.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/auspex)

if(TARGET auspex_cli)
    set_target_properties(auspex_cli PROPERTIES INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS auspex_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY apps/pair DESTINATION share/auspex OPTIONAL) # the program looks in ../share/auspex/pair
endif()
