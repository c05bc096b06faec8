"""Calls a C function in a process of its own: `python -I isolated.py FOLDER`.

The folder holds `kernel.so` and `call.json`: the function's name and its arguments, numbers with
their C type or files that are mapped into memory. What the function writes is in the files then.
This script needs nothing but Python itself.
"""

import ctypes
import json
import mmap
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    call = json.loads((folder / "call.json").read_text())
    function = getattr(ctypes.CDLL(str(folder / "kernel.so")), call["function"])
    function.restype = None
    held: list[Any] = []
    arguments: list[Any] = []
    for each in call["arguments"]:
        if "file" in each:
            with (folder / each["file"]).open("r+b") as file:
                memory = mmap.mmap(file.fileno(), 0)
            held.append((ctypes.c_char * len(memory)).from_buffer(memory))
            arguments.append(ctypes.byref(held[-1]))
        else:
            arguments.append(getattr(ctypes, each["type"])(each["value"]))
    function(*arguments)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
