# Writes `out`: the lines of `files` as C strings, each followed by a comma, for the initializer of an array; without
# #includes of files of the project.
set(text "/* Made by cmake/embed_lines.cmake. */\n")
foreach(file IN LISTS files)
  file(READ ${file} lines)
  string(REGEX REPLACE "\n#include \"[^\n]*" "" lines "${lines}")
  string(REGEX REPLACE "\n+$" "" lines "${lines}")
  string(REPLACE "\\" "\\\\" lines "${lines}")
  string(REPLACE "\"" "\\\"" lines "${lines}")
  string(REPLACE "\n" "\\n\",\n\"" lines "${lines}")
  string(APPEND text "\"${lines}\\n\",\n")
endforeach()
file(WRITE ${out} "${text}")
