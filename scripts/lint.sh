#!/usr/bin/env bash
# Format, layers, generated docs, ruff, clang-tidy, cppcheck and shellcheck over the whole tree. Needs a configured and built
# build/release (for compile_commands.json and the generated headers) and build/venv.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/parts.sh
. scripts/parts.sh
# shellcheck source=scripts/commands.sh
. scripts/commands.sh

mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.c' '*.h')
mapfile -t shells < <(git ls-files --cached --others --exclude-standard '*.sh' '*.bash' .ci/run)
# What is compiled, without what protoc-c wrote.
mapfile -t units < <(sed -nE 's/^ *"file": "(.*)",?$/\1/p' build/release/compile_commands.json |
    grep -v '^'"$PWD"'/build/' | sort -u)

part lint-format clang-format-14 --dry-run --Werror "${sources[@]}"
part lint-python build/venv/bin/ruff check models bench tests scripts
part lint-python-format build/venv/bin/ruff format --check --quiet models bench tests scripts
part lint-layers scripts/check_layers.sh
part lint-docs scripts/docs.sh --check build/release
part lint-shell shellcheck --external-sources "${shells[@]}"
mkdir -p build/cppcheck
part lint-cppcheck cppcheck --project=build/release/compile_commands.json -i build/release/gen \
    --cppcheck-build-dir=build/cppcheck --enable=warning,performance,portability --inline-suppr \
    --suppressions-list=scripts/cppcheck-suppressions.txt --error-exitcode=1 --quiet -j "$(nproc)"
# One file per process: with several, clang-tidy 14 loses track of va_list. Assertions are on: they tell
# the analyzer what holds. It explores 225,000 states of a function where nobody says otherwise, which takes three
# times as long as a third of them.
tidy() {
    mkdir -p build/tidy
    clang_commands >build/tidy/compile_commands.json
    local arguments=(-UNDEBUG -Xclang -analyzer-config -Xclang "max-nodes=${TSSA_TIDY_STATES:-75000}")
    printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/tidy \
        --quiet "${arguments[@]/#/--extra-arg=}" 2>&1 |
        { grep -vE '^[0-9]+ warnings? generated' || true; }
}
part lint-tidy tidy
parts_end
