#!/usr/bin/env bash
# Everything that wants a CUDA card, on a machine that has one, in eight minutes at most: tests of the device on
# the card and under compute-sanitizer, the workloads in tssa-bench, and the peers (bench/peers), in that order;
# the probe (docs/cuda.md) when it is asked for. Nothing is fetched.
#
# Usage: bench/on-gpu.sh [--parts LIST] [--probe] [--pack FILE] [SECONDS]        (480 seconds when left out)
#
#   --parts LIST   of tests,sanitizer,bench,peers,probe; all but the probe when left out
#   --probe        the probe, too, after the others
#   --pack FILE    what bench/pack-for-gpu.sh made elsewhere (build/card/card.tar.xz when left out, if it is
#                  there). It is unpacked where build/release is not a build of this machine
#
# The parts run build/release, of make build or of the pack, on models of build/models; those of the workloads
# that are not there are built where there are numpy and onnx. The peers want PyTorch: build/peers-venv is used if it
# is there (scripts/peers_venv.sh makes it), else python3.
#
# Results go to $OUT, or else to bench/results/DATE-gpu: summary.txt (a line per part, also printed), log.txt
# (what the parts said), peers-cuda.json, -more, -compiled and -autotune, and of the probe probe.json and
# device-properties.json. Each part has a limit of its own, so that a slow one does not take the others' time;
# the peers get what is left.
#
# Status: 0 every part did well; 1 some did not; 2 wrong usage; 3 there is no card, and what needs none was
# done; 130 interrupted, after the summary was written.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

usage() {
    echo "usage: bench/on-gpu.sh [--parts LIST] [--probe] [--pack FILE] [SECONDS]; parts: tests,sanitizer,bench,peers,probe" >&2
    exit 2
}

total=480
parts=tests,sanitizer,bench,peers
with_probe=
pack=build/card/card.tar.xz
while [ $# -gt 0 ]; do
    case $1 in
    --probe) with_probe=,probe ;;
    --parts | --pack)
        [ $# -gt 1 ] || usage
        declare "${1#--}=$2"
        shift
        ;;
    *)
        if ! [[ $1 =~ ^[0-9]+$ ]] || [ $# -gt 1 ]; then
            usage
        fi
        total=$1
        ;;
    esac
    shift
done
parts+=$with_probe
for name in ${parts//,/ }; do
    [[ ,tests,sanitizer,bench,peers,probe, == *,$name,* ]] || usage
done
[ -f "$pack" ] || [ "$pack" = build/card/card.tar.xz ] || usage

out=${OUT:-bench/results/$(date -u +%F)-gpu}
mkdir -p "$out" build || exit 2
out=$(cd "$out" && pwd)
said=$(mktemp -d) # a file for each command: all that it said
probe=build/release/bench/cuda_probe
workloads=(yolov3_loop ssd_loop yolact_loop fcos_loop nasrnn lstm seq2seq_50 attention)
sanitized=(yolov3_loop_small lstm_small attention_nd_small)
with_libraries=(env) # before a program of build/release: what the pack has for it (set_libraries)
declare -A child=() begun=() # by name, of commands that run
status=0
: >"$out/summary.txt"
: >"$out/log.txt"

# The summary, and the worst of the parts: a failure is worse than a missing card.
tell() { printf '%-30s %s\n' "$1" "$2" | tee -a "$out/summary.txt"; }
note() { [ "$status" = 1 ] || status=$1; }
skip() { tell "$1" "skipped: $2"; }
wants() { [[ ,$parts, == *,$1,* ]]; }

# shellcheck disable=SC2317 # called by the trap
stop() {
    [ ${#child[@]} = 0 ] || kill -TERM "${child[@]}" 2>/dev/null
    tell interrupted "after $SECONDS s"
    rm -rf "$said"
    exit 130
}
trap stop INT TERM

# ---- Commands with a limit, one or several at a time -----------------------------------------------------------

# Starts a command for LIMIT seconds at most, and no longer than is left but RESERVE.
start() { # NAME LIMIT RESERVE COMMAND...
    local name=$1 limit=$2 left=$((total - SECONDS - $3))
    shift 3
    begun[$name]=$SECONDS
    [ "$limit" -le "$left" ] || limit=$left
    echo "== $name:" "${@/#LD_LIBRARY_PATH=*/LD_LIBRARY_PATH=...}" >>"$out/log.txt"
    if [ "$limit" -lt 1 ]; then
        echo "no time was left" >"$said/$name"
        return
    fi
    timeout --kill-after=10 "$limit" "$@" </dev/null >"$said/$name" 2>&1 &
    child[$name]=$!
}

# Waits for it. Its output is in $said and, as much as is read, in the log. Returns its status.
finish() { # NAME
    local result=124
    if [ -n "${child[$1]:-}" ]; then
        result=0
        wait "${child[$1]}" || result=$?
        unset "child[$1]"
    fi
    { echo "== $1, status $result, $((SECONDS - begun[$1])) s:" && tail -c 1000000 "$said/$1" && echo; } >>"$out/log.txt"
    return "$result"
}

last_line() { # NAME
    grep -v '^[[:space:]]*$' "$said/$1" | tail -n 1 | cut -c 1-160
}

# What a command's status and output come to, in one line.
verdict() { # NAME STATUS
    local seconds=$((SECONDS - begun[$1]))
    case $2 in
    0) echo "done in $seconds s" ;;
    124 | 137) echo "stopped after $seconds s, its time was up; last line: $(last_line "$1")" ;;
    *) echo "failed with status $2 after $seconds s: $(last_line "$1")" ;;
    esac
}

# Waits, with its line in the summary.
report() { # NAME
    local result=0
    finish "$1" || result=$?
    tell "$1" "$(verdict "$1" "$result")"
    [ "$result" = 0 ] || note 1
    return "$result"
}

run() { # NAME LIMIT RESERVE COMMAND...
    start "$@"
    report "$1"
}

# ---- The machine, and what is built on it ---------------------------------------------------------------------

# shellcheck disable=SC2317 # called in a shell of its own
describe() {
    nvidia-smi || echo "no nvidia-smi"
    nvcc --version || echo "no nvcc"
    uname -a
    grep -s PRETTY_NAME /etc/os-release
    lscpu || echo "no lscpu"
    free -g
    "$1" -c '
import importlib.metadata as metadata, sys
print(sys.version)
for name in "torch torchvision triton numpy onnx onnxruntime onnxruntime-gpu matplotlib".split():
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        print(name, "is not there")'
    return 0
}
export -f describe

# shellcheck disable=SC2317 # called in a shell of its own
extract() { # PACK PYTHON
    rm -rf build/release build/cases
    mkdir -p build
    if command -v xz >/dev/null; then
        tar -C build -xJf "$1"
    else
        "$2" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall("build", filter="data")' "$1"
    fi && sha256sum <"$1" >build/release/pack.sum
}
export -f extract

# What this machine built stays; what came of another pack does not.
unpack() {
    if [ ! -f "$pack" ]; then
        [ -d build/release ] || skip unpack "there is no build/release and no $pack"
    elif [ -f build/release/CMakeCache.txt ]; then
        skip unpack "build/release is a build of this machine"
    elif sha256sum <"$pack" | cmp -s - build/release/pack.sum; then
        skip unpack "it was, before"
    else
        run unpack 90 0 bash -c 'extract "$@"' - "$pack" "$python"
    fi
}

# Tests read models of the folder that they were built in; here that is this one by another name.
link_source() {
    local built
    [ -f build/release/source-folder ] || return
    built=$(cat build/release/source-folder)
    if [ -e "$built" ] && [ "$(cd "$built" && pwd -P)" != "$(pwd -P)" ]; then
        tell source-folder "tests read models of $built, which is another folder than this"
    elif [ ! -e "$built" ] && ! { mkdir -p "$(dirname "$built")" && ln -sfn "$PWD" "$built"; } 2>>"$out/log.txt"; then
        tell source-folder "tests want their models in $built, which cannot be made"
        note 1
    fi
}

# shellcheck disable=SC2317 # called in a shell of its own
build_probe() {
    cmake -S bench/cuda_probe -B build/cuda_probe -DCMAKE_BUILD_TYPE=Release && cmake --build build/cuda_probe
}
export -f build_probe

# Sets `card` when there is one.
find_card() {
    local result=0
    if [ ! -x "$probe" ]; then
        probe=build/cuda_probe/bench/cuda_probe
        run build 60 0 bash -c build_probe || return
    fi
    start card 30 0 "${with_libraries[@]}" "$probe" --only device
    finish card || result=$?
    if [ "$result" = 0 ]; then
        tell card "$(sed -n 's/^ *card  *//p' "$said/card")"
        card=yes
    elif [ "$result" = 3 ]; then
        tell card "no card: $(last_line card)"
        note 3
    else
        tell card "$(verdict card "$result")"
        note 1
    fi
}

# Those of the workloads that are not there.
build_models() {
    local missing=() model absent
    for model in "${workloads[@]}"; do
        [ -f "build/models/$model/model.onnx" ] || missing+=("$model")
    done
    [ ${#missing[@]} -gt 0 ] || return
    absent=$(absent_modules numpy onnx)
    if [ -n "$absent" ]; then
        skip models "${missing[*]}: ${python:-python3} lacks $absent"
        note 1
        return
    fi
    run models 100 0 "$python" models/build.py --out build/models --no-crosscheck "${missing[@]}"
}

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
    if [ -z "$python" ]; then
        echo "all"
        return
    fi
    "$python" -c '
import importlib.util, sys
print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])' "$@"
}

find_libraries() { # PYTHON
    "$1" -c '
import glob, nvidia
print(":".join(d for p in nvidia.__path__ for d in glob.glob(p + "/*/lib")))' 2>/dev/null
}

# Python gets what libtssa.so wants; the pack's tools get all that they want.
set_libraries() {
    local of_python=
    [ -z "$python" ] || of_python=$(find_libraries "$python")
    # The last is where containers find the driver, if the loader does not.
    export LD_LIBRARY_PATH=$PWD/build/release/lib${of_python:+:$of_python}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:/usr/local/nvidia/lib64
    export TSSA_PLUGIN_DIR=$PWD/build/release
    with_libraries=(env "LD_LIBRARY_PATH=$PWD/build/release/lib/tools:$LD_LIBRARY_PATH")
}

# ---- The parts ------------------------------------------------------------------------------------------------

# Whether a program of build/release is there; or else its part is skipped.
has() { # PART PROGRAM
    [ -x "build/release/$2" ] && return
    skip "$1" "there is no build/release/$2"
    note 1
    return 1
}

find_cases() {
    local folder
    for folder in build/cases build/venv/lib/python3*/site-packages/onnx/backend/test/data; do
        if [ -d "$folder/node" ]; then
            echo "$folder"
            return
        fi
    done
}

# All at once: they wait for compilers and for the host more than for the card.
test_device() {
    local test cases names=(test_cuda_models test_grid_texts test_grid_ranked test_grid_unique test_grid_products test_cuda_random test_cuda_recorded test_cuda_bound test_cuda_conditions
        test_cuda_values test_cuda_library test_cuda_convolution test_grid_windows test_grid_shapes test_grid_indices test_grid_turned
        test_grid_long_rows test_devices)
    has tests tests/test_cuda_models || return
    for test in "${names[@]}"; do
        start "$test" 150 20 "${with_libraries[@]}" TSSA_TEST_CARD=1 "build/release/tests/$test"
    done
    cases=$(find_cases)
    if [ -n "$cases" ]; then
        names+=(conformance)
        start conformance 120 20 "${with_libraries[@]}" build/release/tssa-conformance "$cases" --device=cuda --every=6 \
            --jobs=8 --expect=tests/conformance/passing.txt
    else
        skip conformance "there are no official cases in build/cases or build/venv"
    fi
    for test in "${names[@]}"; do
        report "$test" && tell "" "$(last_line "$test")"
    done
}

sanitize() {
    local tool model names=()
    has sanitizer tssa-run || return
    if ! command -v compute-sanitizer >/dev/null; then
        skip sanitizer "there is no compute-sanitizer"
        return
    fi
    for tool in memcheck racecheck; do
        for model in "${sanitized[@]}"; do
            names+=("$tool-$model")
            start "$tool-$model" 60 20 "${with_libraries[@]}" compute-sanitizer --tool "$tool" \
                build/release/tssa-run "models/$model/model.onnx" --device=cuda
        done
    done
    for name in "${names[@]}"; do
        tell_sanitized "$name"
    done
}

tell_sanitized() { # NAME
    local result=0
    finish "$1" || result=$?
    if grep -qE 'ERROR SUMMARY: [1-9]|RACECHECK SUMMARY: [1-9]' "$said/$1"; then
        tell "$1" "found: $(grep -m 1 -E 'SUMMARY: [1-9]' "$said/$1" | sed 's/^=* *//')"
        note 1
    elif [ "$result" = 0 ] && grep -qE 'ERROR SUMMARY: 0|RACECHECK SUMMARY: 0' "$said/$1"; then
        tell "$1" "nothing found in $((SECONDS - begun[$1])) s"
    else
        tell "$1" "$(verdict "$1" "$result")"
        note 1
    fi
}

measure_workloads() {
    local model reserve=5
    has bench tssa-bench || return
    ! wants peers || reserve=60
    for model in "${workloads[@]}"; do
        [ -f "build/models/$model/model.onnx" ] || continue
        run "bench-$model" 20 "$reserve" "${with_libraries[@]}" build/release/tssa-bench "build/models/$model" --device=cuda -d 1 &&
            tell "" "$(sed -n 's/^ *latency ms .*\(median [^,]*\),.*/\1 ms/p; s/^ *device *//p' "$said/bench-$model" | paste -sd ';')"
    done
}

# Figures for all workloads first; what takes minutes to compile comes last.
measure_peers() {
    local absent reserve=5
    wants probe && reserve=100
    absent=$(absent_modules torch numpy onnx)
    if [ -n "$absent" ]; then
        skip peers "${python:-python3} lacks $absent"
        note 1
        return
    fi
    peers peers-cuda 200 "$reserve" --patience 5 --limit 40 --modes eager tssa-O2 tssa-card
    peers peers-cuda-more 150 "$reserve" --patience 5 --limit 40 --modes eager tssa-card script eager-graph ort
    peers peers-cuda-compiled 240 "$reserve" --patience 15 --limit 40 --modes eager tssa-card compile compile-graphs
    peers peers-cuda-autotune 420 "$reserve" --patience 15 --limit 60 --modes eager tssa-card autotune autotune-graphs
}

# One run of the peers: its record is a result, its tables are in the log and the medians in the summary.
peers() { # NAME LIMIT RESERVE OPTION...
    local name=$1 limit=$2 reserve=$3 stem=build/peers/on-gpu/$1
    shift 3
    mkdir -p build/peers/on-gpu
    rm -f "$stem".*
    run "$name" "$limit" "$reserve" "$python" bench/peers/run.py --device cuda --quick --record "$stem" \
        --only yolov3 ssd yolact fcos nasrnn lstm seq2seq_50 attention "$@"
    [ -f "$stem.json" ] || return
    cp "$stem.json" "$out"
    cat "$stem.md" >>"$out/log.txt"
    sed -n '/ copy |$/,/^$/p' "$stem.md" | tee -a "$out/summary.txt"
}

compile_kernels() {
    local result=0
    start kernels 30 0 "${with_libraries[@]}" "$probe" --compile 90
    finish kernels || result=$?
    if [ "$result" = 3 ]; then
        skip kernels "$(last_line kernels)"
        return
    fi
    tell kernels "$(verdict kernels "$result")"
    [ "$result" = 0 ] || note 1
}

ask_probe() {
    local result=0
    start probe 150 0 "${with_libraries[@]}" "$probe" --json "$out/probe.json" --limit 40
    finish probe || result=$?
    case $result in
    0) tell probe "every question answered in $((SECONDS - begun[probe])) s" ;;
    1)
        tell probe "without an answer: $(grep -c 'no answer:' "$said/probe"); the first:$(
            sed -n 's/.*no answer://p' "$said/probe" | head -n 1)"
        note 1
        ;;
    *)
        tell probe "$(verdict probe "$result")"
        note 1
        ;;
    esac
    [ -z "$python" ] || keep_properties || tell device-properties "none: see log.txt"
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

# Whether a part was asked for and there is a card.
may() { # PART [REASON]
    wants "$1" || return
    [ $card = yes ] && return
    skip "$1" "no card${2:-}"
    return 1
}

card=no
python=$(find_python)
run machine 30 0 bash -c 'describe "$@"' - "${python:-python3}"
unpack
set_libraries
find_card
[ $card = no ] || build_models
[ $card = no ] || link_source
may tests && test_device
may sanitizer && sanitize
may bench && measure_workloads
may peers "; make peers measures them on the CPU" && measure_peers
wants probe && [ -x "$probe" ] && compile_kernels
may probe && ask_probe
rm -rf "$said"
echo "results: $out, $SECONDS s"
exit "$status"
