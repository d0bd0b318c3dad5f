# Language, warnings and sanitizers, for every target of the project.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# POSIX and the few GNU calls (mmap, dladdr, open_memstream): -std=c17 hides them otherwise.
add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wpedantic -Wstrict-prototypes -Wmissing-prototypes -Wvla)
if(TSSA_WERROR)
  add_compile_options(-Werror)
endif()
# One result for one operation: no fused multiply-add across operators. Nobody reads errno of sqrt or the
# exception flags of comparisons; with them, loops that select could not become vectors.
add_compile_options(-ffp-contract=off -fno-math-errno -fno-trapping-math)
# A step of a plan takes 50 ns, and GCC clears and copies its few hundred bytes by rep stos and rep movs, which take 10 to
# begin.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(stores unrolled_loop:512:noalign,libcall:-1:noalign)
  add_compile_options(-mmemset-strategy=${stores} -mmemcpy-strategy=${stores})
endif()
# Messages name files from the project root, also where ccache has made the path relative.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/= -fmacro-prefix-map=../../=)

if(TSSA_SANITIZE)
  add_compile_options(-fsanitize=${TSSA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TSSA_SANITIZE})
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized) # instrumentation makes it guess
  endif()
endif()
if(TSSA_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TSSA_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()
