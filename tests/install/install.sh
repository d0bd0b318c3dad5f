#!/usr/bin/env bash
# Usage: install.sh BUILD_DIR CC, in the project root.
#
# Installs into a fresh prefix, then compiles every examples/*.c against what was installed: with the shared
# and the static library of pkg-config, and with those of the CMake package. An example with a line
#   /* ctest-args: models/NAME/model.onnx ... */
# is run with these arguments. Then looks at what else is installed: tools, completion, man pages, licence.
set -euo pipefail
build=$1 cc=$2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$build" --prefix "$prefix" >/dev/null
pc=$(find "$prefix" -name tssa.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*}
read -ra cflags <<<"$(pkg-config --cflags tssa)"
read -ra shared <<<"$(pkg-config --libs tssa)"
read -ra static <<<"$(pkg-config --static --libs tssa | sed 's/-ltssa/-l:libtssa.a/')"

CMAKE_PREFIX_PATH=$prefix cmake -S tests/install/find_package -B "$prefix/package" -G Ninja \
    -DCMAKE_C_COMPILER="$cc" -DEXAMPLES="$PWD/examples" >/dev/null
cmake --build "$prefix/package" | tail -n 1

for example in examples/*.c; do
    echo "== $example"
    name=$(basename "$example" .c)
    "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" "$example" \
        -o "$prefix/shared" "${shared[@]}" -Wl,-rpath,"$lib"
    "$cc" -std=c17 "${cflags[@]}" "$example" -o "$prefix/static" "${static[@]}"
    if args=$(sed -n 's,^/\* ctest-args: *\(.*[^ ]\) *\*/.*,\1,p' "$example" | grep .); then
        read -ra argv <<<"$args"
        for program in shared static "package/$name" "package/${name}_static"; do
            "$prefix/$program" "${argv[@]}" 2>&1
        done
    fi
done

# What a word is completed to: complete PROGRAM WORD...
complete_words() {
    bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tssa "$1"
        printf "%s\n" "${COMPREPLY[@]}"' - "$completion" "$@"
}
expect() { # WHAT PATTERN, on standard input
    grep -q -- "$2" || {
        echo "$1: no $2"
        exit 1
    }
}
for tool in "$prefix"/bin/*; do
    name=${tool##*/}
    "$tool" --version
    completion=$prefix/share/bash-completion/completions/$name
    complete_words "$tool" --thr | expect "completion of $name" '^--threads$'
    complete_words "$tool" model.onnx --ver | expect "completion of $name" '^--version$'
    if command -v help2man >/dev/null; then
        expect "man page of $name" "^$name .- " <"$prefix/share/man/man1/$name.1"
        expect "man page of $name" '^Exit status' <"$prefix/share/man/man1/$name.1"
    fi
done
completion=$prefix/share/bash-completion/completions/tssa-opt
complete_words "$prefix/bin/tssa-opt" m.onnx --skip-pass = dead | expect "a pass" '^dead_code$'
complete_words "$prefix/bin/tssa-run" m.onnx --output-format = n | expect "a word" '^npy$'
complete_words "$prefix/bin/tssa-run" LICEN | expect "a file" '^LICENSE$'
cmp LICENSE "$prefix"/share/doc/tssa/LICENSE
"$prefix/share/tssa/ort_runner.py" --help | expect "the runner of --check-runtime" 'MODEL IN_DIR OUT_DIR'
complete_words "$prefix/bin/tssa-opt" m.onnx --outp | expect "an option" '^--outputs$'
