# Writes OUT, a C file in which each of FILES is an array `kernel_source_STEM`, ended by a zero.
set(text "/* Made by embed.cmake. */\n#include \"bench/cuda_probe/kernels.h\"\n")
foreach(file IN LISTS FILES)
  cmake_path(GET file STEM name)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)"
         "\\1\n" bytes "${bytes}")
  string(APPEND text "const char kernel_source_${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
