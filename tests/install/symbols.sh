#!/usr/bin/env bash
# Usage: symbols.sh BUILD_DIR. Neither form of the library may export a name other than tssa_*, nor call a function of
# libm whose last bits the C standard leaves open: what computes them is in src/ir/scalar.
set -euo pipefail
build=$1
open='(a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p|b)?|pow|cbrt|hypot|erfc?|[lt]?gamma(_r)?|[jy][01n])[fl]?'
status=0
for library in "-D $build/libtssa.so" "$build/libtssa.a"; do
    # shellcheck disable=SC2086
    names=$(nm -g --defined-only $library | awk 'NF == 3 { print $3 }')
    if foreign=$(grep -v '^tssa_' <<<"$names" | grep .); then
        printf '%s exports names that are not its own:\n%s\n' "${library#-D }" "$foreign"
        status=1
    fi
    # shellcheck disable=SC2086
    called=$(nm -u $library | awk 'NF == 2 { sub(/@.*/, "", $2); print $2 }' | sort -u)
    if inexact=$(grep -xE "$open" <<<"$called"); then
        printf '%s calls functions whose bits depend on libm:\n%s\n' "${library#-D }" "$inexact"
        status=1
    fi
done
exit $status
