# cmake --install: the library in both forms, the public header, the tools with man pages, completion and the
# runner of --check-runtime, tssa.pc and a CMake package.
include(CMakePackageConfigHelpers)
set(TSSA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tssa)

install(TARGETS tssa EXPORT tssaTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/libtssa.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/tssa.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# For tssa-opt --check-runtime.
install(PROGRAMS scripts/ort_runner.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tssa)

# tssa.pc finds its prefix from where it lies, and so does the package: an installed tree can be moved.
file(RELATIVE_PATH TSSA_PC_UP /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" TSSA_PC_UP ${TSSA_PC_UP})
configure_file(cmake/tssa.pc.in tssa.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tssa.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT tssaTargets NAMESPACE tssa:: DESTINATION ${TSSA_CMAKE_DIR})
configure_package_config_file(cmake/tssaConfig.cmake.in tssaConfig.cmake
                              INSTALL_DESTINATION ${TSSA_CMAKE_DIR})
write_basic_package_version_file(tssaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tssaConfig.cmake ${CMAKE_BINARY_DIR}/tssaConfigVersion.cmake
        DESTINATION ${TSSA_CMAKE_DIR})

# A program that an instrumented build has made is not asked for its help.
find_program(HELP2MAN help2man)
mark_as_advanced(HELP2MAN)
if(NOT HELP2MAN)
  message(STATUS "help2man not found: no man pages")
endif()
foreach(program IN LISTS TSSA_PROGRAMS)
  install(FILES cmake/completion.bash RENAME ${program}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  if(HELP2MAN AND NOT TSSA_SANITIZE)
    set(page ${CMAKE_BINARY_DIR}/${program}.1)
    add_custom_command(OUTPUT ${page}
      COMMAND ${CMAKE_SOURCE_DIR}/cmake/man.sh ${HELP2MAN} $<TARGET_FILE:${program}> ${page}
      DEPENDS ${program} ${CMAKE_SOURCE_DIR}/cmake/man.sh VERBATIM)
    add_custom_target(${program}-man ALL DEPENDS ${page})
    add_dependencies(product ${program}-man)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endforeach()
