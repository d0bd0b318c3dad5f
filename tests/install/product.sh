#!/usr/bin/env bash
# Usage: product.sh BUILD_DIR. What `make run` builds, the target `product`, is all that is installed.
set -euo pipefail
build=$1
words=$(ninja -C "$build" -t commands product | tr ' ' '\n' | sed "s,^$build/,," | sort -u)
status=0 count=0
while read -r file; do
    count=$((count + 1))
    if ! grep -qxF "$file" <<<"$words"; then
        echo "$file is installed, but the target product does not build it"
        status=1
    fi
done < <(sed -nE "s,^.*\"$build/([^/\$]*)\".*$,\1,p" "$build/cmake_install.cmake" |
    grep -vxE 'tssa(\.pc|Config.*\.cmake)|install_local_manifest\.txt' | sort -u) # made when the build is configured, or installed
echo "$count files"
[ "$count" -ge 4 ] && exit $status
