"""The forms in which a module may be given: its text, bytecode, a file of either, an object of the
bindings."""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.diagnostics import UNNAMED
from ferrule.frontends.sources import is_text, read_file
from ferrule.specs.deferred import dataclass


def has_stablehlo(text: str) -> bool:
    """Whether the text of a module may have operations of StableHLO or its extension CHLO."""
    return "stablehlo." in text or "chlo." in text


def is_lowered(module: object) -> bool:
    """Whether an object is what `jax.jit(f).lower(…)` returns."""
    return type(module).__module__.startswith("jax.") and hasattr(module, "compiler_ir")


_ONNX: Final = (
    "torch-mlir makes a module of it: `python -m torch_mlir.tools.import_onnx`, then its passes "
    "torch-onnx-to-torch-backend-pipeline and torch-backend-to-linalg-on-tensors-backend-pipeline"
)
_ONNX_VERSION: Final = b"\x08"
"""A model of ONNX begins with the field of its version; a text of MLIR has no such character."""
_BYTECODE: Final = b"ML\xefR"


@dataclass(frozen=True, slots=True)
class Given:
    """A module's text or bytecode; `name` is its name in messages."""

    source: str | bytes = field(repr=False)
    name: str = UNNAMED


def read_module(module: object) -> Given:
    """The text or bytecode of the given module.

    Raises OSError for a file that cannot be read, CompileError for data that is neither text nor
    bytecode, ValueError for an empty text, TypeError for an object that is not a module.
    """
    match module:
        case bytes():
            return _read(module, UNNAMED)
        case os.PathLike():
            return _read(Path(module).read_bytes(), os.fspath(module))
        case str() if is_text(module):
            return Given(module)
        case str():
            path, data = read_file(module)
            return _read(data, str(path))
    if hasattr(module, "operation"):
        return Given(_text_of(module))
    if is_lowered(module):  # by JAX
        return read_module(module.compiler_ir("stablehlo"))  # type: ignore[attr-defined]
    raise TypeError(
        f"expected the text of an MLIR module, its bytecode, a path or a module, got {module!r}"
        f"{_how_to_lower(module)}"
    )


def _how_to_lower(module: object) -> str:
    """How to make a module of an object of another library."""
    library = type(module).__module__.partition(".")[0]
    if library == "onnx":
        return f"; {_ONNX}"
    if callable(module) and hasattr(module, "lower"):
        return "; of a function of JAX give what its lower(…) returns"
    if any(each.__module__.partition(".")[0] == "torch" for each in type(module).__mro__):
        return (
            "; torch-mlir makes a module of it: "
            'torch_mlir.fx.export_and_import(…, output_type="linalg-on-tensors")'
        )
    return ""


def _text_of(module: Any) -> str:
    """The text of a module object; that of StableHLO has locations, in which JAX has the names of
    parameters."""
    text = str(module)
    if not has_stablehlo(text):
        return text
    return str(module.operation.get_asm(enable_debug_info=True))


def _read(data: bytes, name: str) -> Given:
    if data.startswith(_BYTECODE):
        return Given(data, name)
    if data.startswith(_ONNX_VERSION) or name.endswith(".onnx"):
        raise CompileError(Diagnostic(f"{name} is no MLIR module but a model of ONNX", hint=_ONNX))
    try:
        # Without the byte-order mark that some editors write first, which MLIR refuses.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CompileError(
            f"{name} is no MLIR module: expected text in UTF-8, or bytecode, which begins with "
            f"{_BYTECODE!r}, but got {error.reason} at {error.start}"
        ) from None
    return Given(text.replace("\r\n", "\n"), name)
