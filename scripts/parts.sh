# shellcheck shell=bash
# To be sourced, in the project root. Runs the parts of a check one after the other, keeps going when one
# fails, and adds up what really ran.
#
#   part NAME COMMAND...     when the command's last line is `N passed, N failed, N skipped`, these are its
#                            counts; otherwise the command is one test and its exit status the result
#   part_ctest NAME PRESET   the counts of ctest
#   part_skip NAME WHY       one skipped test
#   parts_end                prints the table and the totals; its status is 0 when nothing failed
#
# Scripts that use this can call each other: the outermost makes the tally and prints it.

mkdir -p build/logs

# Sanitizers of gcc 12 and clang 14 do not know the address space of newer kernels (mmap_rnd_bits = 32);
# programs they instrument are started without address randomisation where that is allowed.
fixed_addresses=()
if setarch --addr-no-randomize true 2>/dev/null; then
    fixed_addresses=(setarch --addr-no-randomize)
fi
parts_outermost=no
if [ -z "${TSSA_TALLY:-}" ]; then
    export TSSA_TALLY=$PWD/build/logs/tally
    parts_outermost=yes
    : >"$TSSA_TALLY"
fi
parts_failed=0

parts_record() { # NAME PASSED FAILED SKIPPED SECONDS
    printf '%s\t%d\t%d\t%d\t%d\n' "$@" >>"$TSSA_TALLY"
    [ "$3" -eq 0 ] || parts_failed=1
}

part() {
    local name=$1 start=$SECONDS status=0 counts passed failed skipped
    shift
    echo "== $name"
    "$@" </dev/null 2>&1 | tee "build/logs/$name.log" || status=$?
    counts=$(tail -n 1 "build/logs/$name.log" |
        sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p')
    if [ -z "$counts" ]; then
        counts=$([ $status -eq 0 ] && echo "1 0 0" || echo "0 1 0")
    fi
    read -r passed failed skipped <<<"$counts"
    if [ $status -ne 0 ]; then
        echo "== $name failed with status $status"
        [ "$failed" -ne 0 ] || failed=1
    fi
    parts_record "$name" "$passed" "$failed" "$skipped" $((SECONDS - start))
}

parts_ctest_run() { # NAME PRESET
    local junit=$PWD/build/logs/$1.xml status=0 total failed skipped
    rm -f "$junit"
    "${fixed_addresses[@]}" ctest --preset "$2" --parallel "$(nproc)" --output-junit "$junit" || status=$?
    [ -f "$junit" ] || return 1
    total=$(sed -nE 's/.*[^a-z]tests="([0-9]+)".*/\1/p' "$junit" | head -n 1)
    failed=$(sed -nE 's/.*[^a-z]failures="([0-9]+)".*/\1/p' "$junit" | head -n 1)
    skipped=$(sed -nE 's/.*[^a-z]skipped="([0-9]+)".*/\1/p' "$junit" | head -n 1)
    echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
    return "$status"
}

part_ctest() { part "$1" parts_ctest_run "$1" "$2"; }

part_skip() {
    echo "== $1: skipped, $2"
    parts_record "$1" 0 0 1 0
}

parts_end() {
    if [ $parts_outermost = yes ]; then
        awk -F '\t' '
            NR == 1 { printf "\n%-24s %7s %7s %7s %6s\n", "", "passed", "failed", "skipped", "s" }
            { printf "%-24s %7d %7d %7d %6d\n", $1, $2, $3, $4, $5; p += $2; f += $3; s += $4 }
            END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$TSSA_TALLY"
    fi
    return $parts_failed
}
