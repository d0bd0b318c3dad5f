#!/usr/bin/env python3
"""Runs a model in ONNX Runtime, as `tssa-opt --check N --check-runtime COMMAND` wants it run.

Usage: ort_runner.py [--no-optimizations] MODEL IN_DIR OUT_DIR

Reads IN_DIR/input_K.pb for the model's K-th input (one without a file keeps its default) and
writes OUT_DIR/output_K.pb. ONNX Runtime, and onnx for the files, are those of the Python that
runs this.

Exit status: 0 done, 2 wrong arguments, 3 the model cannot be loaded, 4 no ONNX Runtime here,
5 the run failed, 6 a file cannot be read or written. An error is one line on standard error.
"""

import argparse
import os
import sys

USAGE, MODEL, NO_RUNTIME, RUN, FILE = 2, 3, 4, 5, 6


class Failure(Exception):
    def __init__(self, status: int, why: object) -> None:
        super().__init__(" ".join(str(why).split()))
        self.status = status


def import_all() -> tuple:
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        why = f"{error} (in {sys.executable}; pip install onnxruntime onnx)"
        raise Failure(NO_RUNTIME, why) from error
    return onnx, onnxruntime


def message_of(onnx, value_info):
    """The kind of message that a file of a value of this type holds."""
    kind = value_info.type.WhichOneof("value")
    kinds = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
    return kinds.get(kind, onnx.TensorProto)()


def read_input(onnx, path: str, value_info):
    message = message_of(onnx, value_info)
    try:
        with open(path, "rb") as file:
            message.ParseFromString(file.read())
        if isinstance(message, onnx.SequenceProto):
            return onnx.numpy_helper.to_list(message)
        if isinstance(message, onnx.OptionalProto):
            return onnx.numpy_helper.to_optional(message)
        return onnx.numpy_helper.to_array(message)
    except Exception as error:
        raise Failure(FILE, f"{path}: {error}") from error


def write_output(onnx, path: str, value_info, value) -> None:
    helper = onnx.numpy_helper
    message = message_of(onnx, value_info)
    try:
        if isinstance(message, onnx.SequenceProto):
            message = helper.from_list(value, value_info.name)
        elif isinstance(message, onnx.OptionalProto):
            message = helper.from_optional(value, value_info.name)
        else:
            message = helper.from_array(value, value_info.name)
    except Exception as error:
        raise Failure(RUN, f"output {value_info.name}: no file can hold it: {error}") from error
    try:
        with open(path, "wb") as file:
            file.write(message.SerializeToString())
    except OSError as error:
        raise Failure(FILE, error) from error


def load(onnx, onnxruntime, path: str, optimized: bool):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what is wrong comes as an exception
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        graph = onnx.load(path, load_external_data=False).graph
        return graph, onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    except Exception as error:
        raise Failure(MODEL, f"{path}: {error}") from error


def run(arguments: argparse.Namespace) -> None:
    onnx, onnxruntime = import_all()
    graph, session = load(onnx, onnxruntime, arguments.model, not arguments.no_optimizations)
    feeds = {}
    for k, value_info in enumerate(graph.input):
        path = os.path.join(arguments.in_dir, f"input_{k}.pb")
        if os.path.exists(path):
            feeds[value_info.name] = read_input(onnx, path, value_info)
    try:
        values = session.run([output.name for output in graph.output], feeds)
    except Exception as error:
        raise Failure(RUN, error) from error
    for k, (value_info, value) in enumerate(zip(graph.output, values)):
        write_output(onnx, os.path.join(arguments.out_dir, f"output_{k}.pb"), value_info, value)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        raise Failure(USAGE, f"{message}; see --help")


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--no-optimizations", action="store_true", help="run the graph as it is"
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("in_dir", metavar="IN_DIR")
    parser.add_argument("out_dir", metavar="OUT_DIR")
    try:
        run(parser.parse_args())
    except Failure as failure:
        print(f"ort_runner.py: {failure}", file=sys.stderr)
        return failure.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
