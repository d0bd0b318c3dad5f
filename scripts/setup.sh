#!/usr/bin/env bash
# Installs the Debian/Ubuntu packages the project needs and lacks.
#
# Usage: scripts/setup.sh [--test] [--dev] [--compilers] [--llvm] [--opencl]
#   (nothing)  what building and running needs
#   --test     and what `make test` needs (Python, for the tests alone)
#   --dev      and what lint, formatting and fuzzing need
#   --compilers  and the other compilers of Debian 12 that CI tries
#   --llvm     and what compiles kernels (--compile): 26 MB to download, 130 MB installed
#   --opencl   and PoCL, which is a device of OpenCL without a card, for tests
#
# Says what it will install before it does; does nothing and says nothing when all is there.
set -euo pipefail

build=(cmake ninja-build gcc libc6-dev pkg-config
    libprotobuf-c-dev protobuf-c-compiler libjansson-dev libzip-dev libxxhash-dev libdnnl-dev
    libcmocka-dev help2man)
# One clang version for everybody: clang-format differs between versions.
dev=(clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev cppcheck shellcheck)

compilers=(clang-15 clang-16 clang-19)

wanted=("${build[@]}")
test=no
for option in "$@"; do
    case $option in
    --test) test=yes ;;
    --dev) wanted+=("${dev[@]}") ;;
    --compilers) wanted+=("${compilers[@]}") ;;
    --llvm) wanted+=(libllvm19) ;;
    --opencl) wanted+=(pocl-opencl-icd ocl-icd-libopencl1 opencl-c-headers) ;;
    *)
        echo "setup.sh: unknown option $option" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup.sh: not a Debian or Ubuntu system; these are needed and not checked: ${wanted[*]}" >&2
    exit 0
fi

# Any Python will do that can make an environment; Debian's comes without that part.
if [ $test = yes ] && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    wanted+=(python3 python3-venv)
fi

installed=$(dpkg-query -W -f='${Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for package in "${wanted[@]}"; do
    grep -qx "install ok installed $package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "setup.sh: installing with apt-get: ${missing[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup.sh: not root and no sudo; as root, run: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    sudo=(sudo)
fi
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
