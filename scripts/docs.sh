#!/usr/bin/env bash
# Usage: docs.sh [--check] BUILD_DIR
# Writes docs/passes.md from what the program says (tssa-opt --print-passes=markdown) and from the comment at
# the top of each src/passes/NAME.c. With --check: only says whether the file is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
file=docs/passes.md
check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
opt=${1:-build/release}/tssa-opt

# The comment after the licence line. The lines of the contract become a list.
contract() {
    awk '
        NR == 1 { next }
        /^\/\*$/ { next }
        /^ \*\/$/ { exit }
        /^\/\*.*\*\/$/ { sub(/^\/\* */, ""); sub(/ *\*\/$/, ""); print; exit }
        !/^ \*/ { exit }
        {
            sub(/^ \* ?/, "")
            if (match($0, /^  (needs|keeps|breaks) +/)) {
                word = $1
                print "- *" word "* " substr($0, RLENGTH + 1)
            } else {
                print
            }
        }' "$1"
}

page() {
    cat <<'END'
# The passes

<!-- Written by `make docs` (scripts/docs.sh) from src/passes: edit the comments there. After a merge
     conflict take either side and run `make docs` again. -->

What `tssa-opt` and `tssa-run -O` do to a graph, one pass after the other. A pass is one file in
`src/passes`, whose first comment is printed below: what it does, what it *needs* to hold before, what it
*keeps* as it is, and what it *breaks*, that is, what has to be run or inferred again. All of them keep the
bits of element-wise results; [contributing.md](contributing.md) tells how to add one, and
[tools.md](tools.md#tssa-opt) how to run them one by one.

END
    "$opt" --print-passes=markdown
    "$opt" --print-passes | awk 'NF == 0 { done = 1 } !done { print $1 }' | while read -r pass; do
        printf '\n## %s\n\n' "$pass"
        contract "src/passes/$pass.c"
    done
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
page >"$new"
if [ $check = no ]; then
    cp "$new" "$file"
elif ! cmp -s "$new" "$file"; then
    echo "$file is not what src/passes says: run make docs, and commit it"
    exit 1
fi
