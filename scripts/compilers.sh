#!/usr/bin/env bash
# Usage: compilers.sh [COMPILER...]
# Compiles every source of build/release, with its flags and warnings as errors, by compilers other than the
# one that builds: gcc to assembly, since it warns of what optimization shows, clang no further than it warns.
# Without names: all of the range in docs/contributing.md that are installed. Nothing is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/commands.sh
. scripts/commands.sh
compilers=("$@")
if [ $# -eq 0 ]; then
    for name in gcc-{12..14} clang-{14..19}; do
        if command -v "$name" >/dev/null; then
            compilers+=("$name")
        fi
    done
fi

# The commands of build/release without the compiler, the output and what only one of them knows. One processor is
# the same as any: clang 19 warns of some that it is asked to find out.
commands=$(clang_commands | sed -nE 's/^ *"command": "(.*)",?$/\1/p' |
    grep -v ' -c [^ ]*/build/' | sed -E 's/\\(.)/\1/g; s/-march=native/-march=x86-64-v4/; s/^[^-]*( -.*) -o [^ ]+ -c ([^ ]+)$/\1 \2/')

passed=0 failed=0
for compiler in "${compilers[@]}"; do
    case $compiler in
    # clang's OpenMP is a package of its own; without it, cmake leaves these files out.
    *clang*) how=(-fsyntax-only) own=$(grep -v -e ' -fopenmp' <<<"$commands") ;;
    *) how=(-S -o /dev/null) own=$commands ;;
    esac
    start=$SECONDS
    if awk -v compiler="$compiler ${how[*]} -Werror" '{ print compiler $0 }' <<<"$own" |
        tr '\n' '\0' | xargs -0 -P "$(nproc)" -I{} sh -c '{}'; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    echo "$("$compiler" --version | head -n 1): $(wc -l <<<"$own") files, $((SECONDS - start)) s"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
