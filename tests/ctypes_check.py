# SPDX-License-Identifier: Apache-2.0
"""Do the structs of bench/tssa_ctypes.py have the members of the header's, in their order?

The library writes to some of them, so one that lacks a member is memory overwritten.

Usage: ctypes_check.py TSSA_H
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import tssa_ctypes  # noqa: E402


def name_in_c(name: str) -> str:
    """_SessionWork is tssa_session_work; a member pass_, a keyword of Python, is pass."""
    return "tssa" + re.sub(r"([A-Z])", r"_\1", name[1:]).lower()


def members_in_c(header: str, name: str) -> list[str] | None:
    found = re.search(rf"typedef struct {name} \{{(.*?)\}} {name};", header, re.DOTALL)
    if not found:
        return None
    body = re.sub(r"/\*.*?\*/", "", found[1], flags=re.DOTALL)
    return [m for declaration in body.split(";") for m in members(declaration)]


def members(declaration: str) -> list[str]:
    """A pointer to a function is (*name)(...), an array name[...]."""
    pointer = re.search(r"\(\*(\w+)\)", declaration)
    if pointer:
        return [pointer[1]]
    return re.findall(r"(\w+)\s*(?:\[\w+\])*\s*(?:,|$)", declaration.strip())


def is_as_in_c(own: list[str], theirs: list[str] | None) -> bool:
    """Who says the struct's size may leave out the last ones."""
    if theirs and own[0] == "struct_size":
        return own == theirs[: len(own)]
    return own == theirs


def main() -> int:
    header = Path(sys.argv[1]).read_text()
    passed = failed = 0
    for name, struct in vars(tssa_ctypes).items():
        if not isinstance(struct, type) or not issubclass(struct, ctypes.Structure):
            continue
        if not hasattr(struct, "_fields_"):
            continue
        own = [field[0].removesuffix("_") for field in struct._fields_]
        theirs = members_in_c(header, name_in_c(name))
        passed += is_as_in_c(own, theirs)
        failed += not is_as_in_c(own, theirs)
        if not is_as_in_c(own, theirs):
            print(f"FAILED: {name} has {own}, {name_in_c(name)} has {theirs}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return int(failed > 0 or not passed)


if __name__ == "__main__":
    sys.exit(main())
