"""Stubs (`.pyi`) of modules with exported functions, for type checkers and editors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from typing_extensions import assert_never

from ferrule import specs
from ferrule.runtime.exporting.headers import Described
from ferrule.specs import params
from ferrule.specs._version import __version__
from ferrule.specs.literals import literal_text

_TENSOR: Final = """\
class _Tensor(Protocol):
    \"\"\"An array of NumPy, PyTorch, JAX, CuPy, or another one with DLPack.\"\"\"

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
"""

_WORDS: Final = re.compile(r"(?<![\w.\"'])(?:int|float|bool|str|bytes|tuple|list|dict)(?=[^\w=]|$)")
"""The builtin types in an annotation."""


def stub(functions: Sequence[Described]) -> str:
    """The text of the stub."""
    names = frozenset(signature.name for signature, _ in functions)
    written = [_function(*each, names) for each in functions]
    has_builtins = any("_builtins." in each for each in written)
    parts = [
        f"# Made by ferrule {__version__}.",
        *(["import builtins as _builtins"] if has_builtins else []),
        "from collections.abc import Callable, Sequence",
        "from typing import Any, Protocol",
        "",
        f"__all__ = {sorted(names)!r}",
        "",
        *([_TENSOR] if any("_Tensor" in each for each in written) else []),
        *written,
    ]
    return "\n".join(parts)


def _qualified(annotation: str, names: frozenset[str]) -> str:
    """An annotation that means the builtin types, also beside functions of these names."""

    def replaced(found: re.Match[str]) -> str:
        return f"_builtins.{found[0]}" if found[0] in names else found[0]

    return _WORDS.sub(replaced, annotation)


def _function(signature: specs.Signature, doc: str | None, names: frozenset[str]) -> str:
    result = "None" if signature.result is None else _qualified(_result(signature.result), names)
    requires = "".join(f"\nrequires: {each}" for each in signature.required())
    said = f"{signature}{requires}\n\n{doc}" if doc else f"{signature}{requires}"
    quoted = said.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace("\0", "\\0")
    lines = [f'"""{line}' if i == 0 else line for i, line in enumerate(quoted.splitlines())]
    if len(lines) == 1:
        lines[0] += '"""'
    else:
        lines.append('"""')
    body = "\n".join(f"    {line}".rstrip() for line in lines)
    return (
        f"def {signature.name}({', '.join(_parameters(signature, names))}) -> {result}:\n{body}\n"
    )


def _parameters(signature: specs.Signature, names: frozenset[str]) -> Iterator[str]:
    """The parameters; required ones after a default are keyword-only, as in the callable."""
    had_default = keyword_only = False
    for position, param in enumerate(signature.arguments):
        if signature.unnamed and position == signature.unnamed:
            yield "/"
        if position == signature.positional and not keyword_only:
            keyword_only = True
            yield "*"
        required = param.default is specs.REQUIRED
        if required and had_default and not keyword_only:
            keyword_only = True
            yield "*"
        had_default = had_default or not required
        tail = "" if required else f" = {_default(param.default, names)}"
        yield f"{param.name}: {_qualified(_kind(param), names)}{tail}"
    if signature.unnamed and signature.unnamed == len(signature.arguments):
        yield "/"


def _default(value: object, names: frozenset[str]) -> str:
    """A default; one that is a call does not call a function of the module."""
    calls = isinstance(value, float) and not math.isfinite(value) and "float" in names
    return f"{'_builtins.' if calls else ''}{default_text(value)}"


def default_text(value: object) -> str:
    """A default in Python's syntax; `...` for an object without a literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return literal_text(value)


def _kind(param: params.Param) -> str:
    """The Python type of a parameter; Any for values that have a protocol of their own."""
    match param:
        case params.Scalar(dtype=dtype):
            return {"float": "float", "bool": "bool"}.get(dtype.kind, "int")
        case params.Shape():
            return "Sequence[int]"
        case params.Tuple(items=items):
            return f"tuple[{', '.join(map(_kind, items)) or '()'}]"
        case params.Optional(item=item):
            kind = _kind(item)
            return kind if kind == "Any" else f"{kind} | None"
        case params.Union(members=members):
            kinds = list(dict.fromkeys(map(_kind, members)))
            return "Any" if "Any" in kinds else " | ".join(kinds)
        case params.Constant(value=value):
            return type(value).__name__
        case params.Tensor():
            return "_Tensor"
        case params.WithTraits():
            return param.traits.python
        case _:
            assert_never(param)


def _result(param: params.Param) -> str:
    """The Python type of a result; a tensor comes back as one of tvm-ffi or of the caller's."""
    if isinstance(param, params.Shape):
        return "Any"
    return _kind(param).replace("_Tensor", "Any")
