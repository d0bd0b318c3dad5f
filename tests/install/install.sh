#!/usr/bin/env bash
# Usage: install.sh BUILD_DIR CC, in the project root.
#
# Installs into a fresh prefix, then compiles every examples/*.c against what was installed, once with the
# shared and once with the static library. An example with a line
#   /* ctest-args: models/NAME/model.onnx ... */
# is run with these arguments.
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

for tool in tssa-run tssa-opt tssa-bench; do
    "$prefix/bin/$tool" --version
done

for example in examples/*.c; do
    echo "== $example"
    "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror "${cflags[@]}" "$example" \
        -o "$prefix/shared" "${shared[@]}" -Wl,-rpath,"$lib"
    "$cc" -std=c17 "${cflags[@]}" "$example" -o "$prefix/static" "${static[@]}"
    if args=$(sed -n 's,^/\* ctest-args: *\(.*[^ ]\) *\*/.*,\1,p' "$example" | grep .); then
        read -ra argv <<<"$args"
        "$prefix/shared" "${argv[@]}"
        "$prefix/static" "${argv[@]}" >/dev/null
    fi
done
