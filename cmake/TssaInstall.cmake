# cmake --install: the library in both forms, the public header, the tools, and tssa.pc.
install(TARGETS tssa LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_BINARY_DIR}/libtssa.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/tssa.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# tssa.pc finds its prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH TSSA_PC_UP /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" TSSA_PC_UP ${TSSA_PC_UP})
configure_file(cmake/tssa.pc.in tssa.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tssa.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
