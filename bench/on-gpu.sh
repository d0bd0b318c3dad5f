#!/usr/bin/env bash
# Everything that wants a CUDA card, on a machine that has one, in eight minutes at most: the probe
# (docs/cuda.md), the same under compute-sanitizer, and the peers (bench/peers). Needs a C compiler, CMake and
# a Python with PyTorch, numpy and onnx; nothing is fetched.
#
# Usage: bench/on-gpu.sh [SECONDS]        (480 when left out)
#
# Results go to $OUT, or else to bench/results/DATE-gpu: summary.txt (a line per part, also printed), log.txt
# (what the parts said), probe.json, device-properties.json, peers-cuda.json, .md and .png, and
# peers-autotune.json. Each part has a limit of its own, so that a slow one does not take the others' time.
#
# The peers want the workloads' models in build/models, which is not in git: bring the folder along (170 MB),
# or they are built (models/build.py) where there are numpy and onnx. build/peers-venv is used if it is
# there (scripts/peers_venv.sh makes it), else python3.
#
# Status: 0 every part did well; 1 some did not; 2 wrong usage; 3 there is no card, and what needs none was
# done; 130 interrupted, after the summary was written.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

total=${1:-480}
if ! [[ $total =~ ^[0-9]+$ ]] || [ $# -gt 1 ]; then
    echo "usage: bench/on-gpu.sh [SECONDS]" >&2
    exit 2
fi
out=${OUT:-bench/results/$(date -u +%F)-gpu}
mkdir -p "$out" build || exit 2
out=$(cd "$out" && pwd)
part=$(mktemp)
probe=build/cuda_probe/bench/cuda_probe
child=
status=0
: >"$out/summary.txt"
: >"$out/log.txt"

# The summary, and the worst of the parts: a failure is worse than a missing card.
tell() { printf '%-22s %s\n' "$1" "$2" | tee -a "$out/summary.txt"; }
note() { [ "$status" = 1 ] || status=$1; }
skip() { tell "$1" "skipped: $2"; }

# shellcheck disable=SC2317 # called by the trap
stop() {
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
    tell interrupted "after $SECONDS s"
    rm -f "$part"
    exit 130
}
trap stop INT TERM

# What a part's status and output come to, in one line.
verdict() { # STATUS SECONDS
    local last
    last=$(grep -v '^[[:space:]]*$' "$part" | tail -n 1 | cut -c 1-160)
    case $1 in
    0) echo "done in $2 s" ;;
    124 | 137) echo "stopped after $2 s, its time was up; last line: $last" ;;
    *) echo "failed with status $1 after $2 s: $last" ;;
    esac
}

# Runs a command for LIMIT seconds at most, and no longer than is left but RESERVE; its output is in $part
# and in the log. Returns its status.
attempt() { # NAME LIMIT RESERVE COMMAND...
    local name=$1 limit=$2 left=$((total - SECONDS - $3)) result=0
    shift 3
    [ "$limit" -le "$left" ] || limit=$left
    if [ "$limit" -lt 1 ]; then
        echo "no time was left" >"$part"
        return 124
    fi
    timeout --kill-after=10 "$limit" "$@" </dev/null >"$part" 2>&1 &
    child=$!
    wait "$child" || result=$?
    child=
    { echo "== $name: $*" && cat "$part" && echo; } >>"$out/log.txt"
    return "$result"
}

# The same, with its line in the summary.
run() { # NAME LIMIT RESERVE COMMAND...
    local start=$SECONDS result=0
    attempt "$@" || result=$?
    tell "$1" "$(verdict "$result" $((SECONDS - start)))"
    [ "$result" = 0 ] || note 1
    return "$result"
}

# ---- The machine, and what is built on it ---------------------------------------------------------------------

# shellcheck disable=SC2317 # called in a shell of its own
describe() {
    nvidia-smi || echo "no nvidia-smi"
    nvcc --version || echo "no nvcc"
    cmake --version || echo "no cmake"
    uname -a
    lscpu || echo "no lscpu"
}
export -f describe

# shellcheck disable=SC2317 # called in a shell of its own
build_probe() {
    cmake -S bench/cuda_probe -B build/cuda_probe -DCMAKE_BUILD_TYPE=Release && cmake --build build/cuda_probe
}
export -f build_probe

# ---- Python: its modules, and the CUDA libraries that came with PyTorch ----------------------------------------

find_python() {
    local candidate
    for candidate in build/peers-venv/bin/python python3; do
        if "$candidate" -c 'pass' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

absent_modules() { # NAME...
    "$python" -c '
import importlib.util, sys
print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])' "$@"
}

find_libraries() { # PYTHON
    "$1" -c '
import glob, nvidia
print(":".join(d for p in nvidia.__path__ for d in glob.glob(p + "/*/lib")))' 2>/dev/null
}

# ---- The parts ------------------------------------------------------------------------------------------------

compile_kernels() {
    local start=$SECONDS result=0
    attempt kernels 30 0 "$probe" --compile 90 || result=$?
    if [ "$result" = 3 ]; then
        skip kernels "$(tail -n 1 "$part")"
        return
    fi
    tell kernels "$(verdict "$result" $((SECONDS - start)))"
    [ "$result" = 0 ] || note 1
}

# Sets `card` when there is one.
ask_probe() {
    local start=$SECONDS result=0
    attempt probe 150 0 "$probe" --json "$out/probe.json" --limit 40 || result=$?
    case $result in
    0) tell probe "every question answered in $((SECONDS - start)) s" ;;
    1)
        tell probe "without an answer: $(grep -c 'no answer:' "$part"); the first:$(
            sed -n 's/.*no answer://p' "$part" | head -n 1)"
        note 1
        ;;
    3)
        tell probe "no card: $(tail -n 1 "$part")"
        note 3
        ;;
    *)
        tell probe "$(verdict "$result" $((SECONDS - start)))"
        note 1
        ;;
    esac
    [ "$result" = 3 ] || card=yes
}

# cuDNN's own description of the card, as it is kept for tests.
keep_properties() {
    "$python" -c '
import json, sys
facts = [p["facts"] for p in json.load(open(sys.argv[1]))["probes"] if p["name"] == "device_json"]
properties = json.loads(facts[0]["device properties"])
json.dump(properties, open(sys.argv[2], "w"), indent=2)
print(properties["deviceName"])' "$out/probe.json" "$out/device-properties.json" >>"$out/log.txt" 2>&1
}

sanitize() { # TOOL LIMIT
    local start=$SECONDS result=0
    attempt "sanitizer-$1" "$2" 0 compute-sanitizer --tool "$1" --target-processes all "$probe" --limit "$2" \
        --only math --only conditional_cubin --only conditional_ptx --only nested_if || result=$?
    if grep -qE 'ERROR SUMMARY: [1-9]|RACECHECK SUMMARY: [1-9]' "$part"; then
        tell "sanitizer-$1" "found: $(grep -m 1 -E 'SUMMARY: [1-9]' "$part" | sed 's/^=* *//')"
        note 1
    elif grep -qE 'ERROR SUMMARY: 0|RACECHECK SUMMARY: 0' "$part"; then
        tell "sanitizer-$1" "nothing found, $((SECONDS - start)) s"
    else
        tell "sanitizer-$1" "$(verdict "$result" $((SECONDS - start)))"
        note 1
    fi
}

# The last part but the sanitizer: it gets what is left.
measure_peers() {
    local absent
    if [ ! -f bench/peers/run.py ]; then
        skip peers "there is no bench/peers/run.py"
        return
    fi
    if [ ! -d build/models ]; then
        run models 100 200 "$python" models/build.py --out build/models --no-crosscheck
    fi
    absent=$(absent_modules torch numpy onnx)
    if [ -n "$absent" ]; then
        skip peers "$python lacks $absent"
        note 1
        return
    fi
    run peers-check 60 200 "$python" bench/peers/run.py --device cuda --quick --check-only --modes eager
    # What takes minutes to compile comes last, so that there are figures for every workload first.
    run peers 420 100 "$python" bench/peers/run.py --device cuda --quick --limit 40 \
        --modes eager script compile compile-graphs eager-graph ort --record "$out/peers-cuda"
    run peers-autotune 420 100 "$python" bench/peers/run.py --device cuda --quick --limit 60 \
        --modes eager autotune autotune-graphs --record build/peers-autotune
    cp build/peers-autotune.json "$out" 2>/dev/null || true # its line says why there is none
}

card=no
run machine 30 0 bash -c describe
run build 60 0 bash -c build_probe
python=$(find_python)
libraries=$([ -z "$python" ] || find_libraries "$python")
# The last is where containers find the driver, if the loader does not.
export LD_LIBRARY_PATH=${libraries:+$libraries:}${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64
if [ -x "$probe" ]; then
    compile_kernels
    ask_probe
else
    skip probe "it was not built"
fi
if [ $card = yes ] && [ -n "$python" ]; then
    keep_properties || tell device-properties "none: see log.txt"
    measure_peers
elif [ $card = yes ]; then
    skip peers "there is no Python"
    note 1
else
    skip peers "no card; make peers measures them on the CPU"
fi
if [ $card = yes ] && command -v compute-sanitizer >/dev/null; then
    sanitize memcheck 40
    for tool in racecheck initcheck synccheck; do
        sanitize "$tool" 20
    done
else
    skip sanitizer "$([ $card = yes ] && echo 'there is no compute-sanitizer' || echo 'no card')"
fi
rm -f "$part"
echo "results: $out"
exit "$status"
