"""Runs one program, or the cells of one notebook, with ferrule for `cutlass`.

    python child.py RESULT FILE ARGUMENT...

RESULT gets a line of JSON for each cell, or one for a program: its number, "passed" or the error,
and where in the file it was raised.
"""

from __future__ import annotations

import importlib
import json
import linecache
import os
import re
import runpy
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any


def _line_of(error: BaseException, file: str) -> int | None:
    """The last line of the file that the error came through."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__)]
    names = [each.filename for each in traceback.extract_tb(error.__traceback__)]
    found = [line for line, name in zip(lines, names, strict=True) if name == file]
    return found[-1] if found else None


def _failure(error: BaseException, file: str) -> dict[str, Any]:
    return {"error": f"{type(error).__name__}: {error}"[:1500], "line": _line_of(error, file)}


def _program(path: Path, arguments: list[str]) -> dict[str, Any]:
    sys.argv = [str(path), *arguments]
    text = path.read_text()
    try:
        if (edited := _edited(text, path)) == text:
            runpy.run_path(str(path), run_name="__main__")
        else:
            _run_text(edited, path)
    except SystemExit as end:
        if end.code in (None, 0):
            return {"passed": True}
        return {"error": f"SystemExit: {end.code}", "line": None}
    except BaseException as error:
        traceback.print_exc()
        return _failure(error, str(path))
    return {"passed": True}


def _run_text(text: str, path: Path) -> None:
    """Runs an edited program, whose lines are where they were."""
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / path.name
        changed.write_text(text.replace("__file__", repr(str(path))))
        runpy.run_path(str(changed), run_name="__main__")


def _cells(path: Path) -> list[str]:
    cells = json.loads(path.read_text())["cells"]
    return ["".join(each["source"]) for each in cells if each["cell_type"] == "code"]


def _edited(text: str, path: Path) -> str:
    """The text with the changes for this file, which make it small."""
    for name, old, new in json.loads(os.environ.get("CUTE_PROGRAM_EDITS", "[]")):
        if str(path).endswith(name):
            text = text.replace(old, new)
    return text


def _cell(number: int, text: str, path: Path, scope: dict[str, Any]) -> dict[str, Any]:
    name = f"{path}[{number}]"
    text = re.sub(r"^[%!].*$", "pass", _edited(text, path), flags=re.MULTILINE)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    try:
        exec(compile(text, name, "exec", dont_inherit=True), scope)
    except BaseException as error:
        traceback.print_exc()
        return _failure(error, name)
    return {"passed": True}


def _stand_ins(folder: Path) -> None:
    """What notebooks ask of the machine and of the package: a program and a version."""
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 9.0\n")
    program.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    metadata = folder / "nvidia_cutlass_dsl-4.8.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: nvidia-cutlass-dsl\nVersion: 4.8.1\n")
    sys.path.append(str(folder))


def main() -> None:
    """Runs it."""
    with tempfile.TemporaryDirectory() as folder:
        _stand_ins(Path(folder))
        _main()


def _main() -> None:
    result, path = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    os.chdir(os.environ.get("CUTE_PROGRAM_FOLDER", "."))
    # Before tvm-ffi is imported: else it reads a subclass of tensors as PyTorch's own, on the CPU.
    os.environ["TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API"] = "1"
    importlib.import_module("ferrule.as_cutlass")
    if os.environ.get("FERRULE_GPU"):
        import cuda_torch

        cuda_torch.install()
    sys.path.insert(0, str(path.parent))
    with result.open("w") as out:
        if path.suffix == ".ipynb":
            scope: dict[str, Any] = {"__name__": "__main__"}
            for number, text in enumerate(_cells(path)):
                print(f"---- cell {number}", flush=True)
                found = {"cell": number, **_cell(number, text, path, scope)}
                print(json.dumps(found), file=out, flush=True)
        else:
            print(json.dumps({"cell": 0, **_program(path, sys.argv[3:])}), file=out, flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
