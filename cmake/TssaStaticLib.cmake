# A static library that leaks no internal name: the objects are linked into one, and every hidden symbol
# of it is made local.
function(tssa_add_static_lib target objects file)
  set(merged ${CMAKE_BINARY_DIR}/${target}.o)
  set(archive ${CMAKE_BINARY_DIR}/${file})
  add_custom_command(
    OUTPUT ${archive}
    COMMAND ${CMAKE_LINKER} -r -o ${merged} $<TARGET_OBJECTS:${objects}>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${merged}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${merged}
    DEPENDS $<TARGET_OBJECTS:${objects}> ${objects}
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${archive})
endfunction()
