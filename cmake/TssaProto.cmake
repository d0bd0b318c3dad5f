# Compiles onnx/*.proto with protoc-c into the build folder; include as "onnx/NAME.pb-c.h".
function(tssa_compile_proto out_sources)
  file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/onnx/*.proto)
  set(gen ${CMAKE_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${gen}/onnx)
  set(sources)
  foreach(proto IN LISTS protos)
    cmake_path(GET proto STEM name)
    set(out ${gen}/onnx/${name}.pb-c)
    add_custom_command(
      OUTPUT ${out}.c ${out}.h
      COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR} --c_out=${gen} ${proto}
      DEPENDS ${proto}
      VERBATIM)
    set_source_files_properties(${out}.c PROPERTIES COMPILE_OPTIONS -w)
    list(APPEND sources ${out}.c)
  endforeach()
  set(${out_sources} ${sources} PARENT_SCOPE)
endfunction()
