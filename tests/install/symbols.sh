#!/usr/bin/env bash
# Usage: symbols.sh BUILD_DIR. Neither form of the library may export a name other than tssa_*.
set -euo pipefail
build=$1
status=0
for library in "-D $build/libtssa.so" "$build/libtssa.a"; do
    # shellcheck disable=SC2086
    names=$(nm -g --defined-only $library | awk 'NF == 3 { print $3 }')
    if foreign=$(grep -v '^tssa_' <<<"$names" | grep .); then
        printf '%s exports names that are not its own:\n%s\n' "${library#-D }" "$foreign"
        status=1
    fi
done
exit $status
