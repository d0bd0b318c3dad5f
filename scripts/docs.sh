#!/usr/bin/env bash
# Usage: docs.sh [--check] BUILD_DIR
# Writes docs/passes.md from what the program says (tssa-opt --print-passes=markdown) and from the comment at
# the top of each src/passes/*/NAME.c, and docs/hazards.md from tssa-opt --print-hazards=markdown and the comments in
# onnx/hazards. With --check: only says whether the files are up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
if [ $# -gt 1 ]; then
    echo "docs.sh: $2: only one folder is wanted, and --check before it" >&2
    exit 2
fi
opt=${1:-build/release}/tssa-opt
if [ ! -x "$opt" ]; then
    echo "docs.sh: there is no $opt; make build makes it" >&2
    exit 2
fi

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

passes_page() {
    cat <<'END'
# The passes

<!-- Written by `make docs` (scripts/docs.sh) from src/passes: edit the comments there. After a merge
     conflict take either side and run `make docs` again. -->

What `tssa-opt` and `tssa-run -O` do to a graph, one pass after the other. A pass is one file in a
folder of `src/passes`, whose first comment is printed below: what it does, what it *needs* to hold before, what it
*keeps* as it is, and what it *breaks*, that is, what has to be run or inferred again. All of them keep the
bits of element-wise results, the sign of a zero included: where a rewriting would lose it, it is done where
`zero_sign.h` proves that there is no -0.0 (`recover`), and where another runtime's operator would, the file says it
in another way ([hazards.md](hazards.md#where_zero_sign)). Only sums of floats and matrix products that are added up
in another order may differ in the sign of a zero, as in their last bits, and `fold_scales` rounds the factors
beside a product together with its weights; [contributing.md](contributing.md) tells how to add one, and
[tools.md](tools.md#tssa-opt) how to run them one by one.

END
    "$opt" --print-passes=markdown
    "$opt" --print-passes | awk 'NF == 0 { done = 1 } !done { print $1 }' | while read -r pass; do
        printf '\n## %s\n\n' "$pass"
        contract src/passes/*/"$pass.c"
    done
}

# The rows, each with the comment of its file behind it.
hazards_page() {
    cat <<'END'
# Hazards

<!-- Written by `make docs` (scripts/docs.sh) from onnx/hazards.def and onnx/hazards: edit these. After a merge
     conflict take either side and run `make docs` again. -->

What is legal ONNX, and yet computed wrongly, refused, or unbearably slow in a runtime that people use. What
`tssa-opt` writes goes around each; `--keep-hazard NAME` writes it as it is, for runtimes that have no trouble with
it. Nodes of the model that are still there stay what they were: a runtime that computes a ReduceSum of the
model's own in double did so before.

What is slow alone is written in another way wherever passes made it and the opset can say so;
`tests/hazards/check.py TSSA_OPT --time` says what that brings.

At an old opset that is asked for, which cannot say the way around (CumSum came with 11, the reductions of
ScatterElements with 16), what passes made is written as it is, and the log has a warning. An opset that is not asked
for is raised.

`tests/hazards/check.py` runs a model of each in ONNX Runtime with and without the way around, and fails when one is
no longer needed. A new one is a row in `onnx/hazards.def`, a function in a file of its own in `onnx/hazards`, and a
model in `tests/hazards/models.py`.
END
    local line
    "$opt" --print-hazards=markdown | while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in
        '## '*)
            echo
            contract "onnx/hazards/${line#\#\# }.c"
            ;;
        esac
    done
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT

# Standard input becomes the page, or is what it should be.
put() { # FILE
    cat >"$new"
    if [ $check = no ]; then
        cp "$new" "$1"
    elif ! cmp -s "$new" "$1"; then
        echo "$1 is not what the sources say: run make docs, and commit it"
        return 1
    fi
}

status=0
passes_page | put docs/passes.md || status=1
hazards_page | put docs/hazards.md || status=1
exit $status
