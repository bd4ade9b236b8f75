"""Stubs (`.pyi`) of modules with exported functions, for type checkers and editors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from typing_extensions import assert_never

from ferrule import specs
from ferrule.runtime.exporting.headers import Described
from ferrule.specs import params
from ferrule.specs._version import __version__
from ferrule.specs.literals import literal_text


def stub(functions: Sequence[Described]) -> str:
    """The text of the stub."""
    parts = [
        f"# Made by ferrule {__version__}.",
        "from collections.abc import Callable, Sequence",
        "from typing import Any",
        "",
        *(_function(*described) for described in functions),
    ]
    return "\n".join(parts)


def _function(signature: specs.Signature, doc: str | None) -> str:
    result = "None" if signature.result is None else _result(signature.result)
    said = f"{signature}\n\n{doc}" if doc else str(signature)
    quoted = said.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace("\0", "\\0")
    lines = [f'"""{line}' if i == 0 else line for i, line in enumerate(quoted.splitlines())]
    if len(lines) == 1:
        lines[0] += '"""'
    else:
        lines.append('"""')
    body = "\n".join(f"    {line}".rstrip() for line in lines)
    return f"def {signature.name}({', '.join(_parameters(signature))}) -> {result}:\n{body}\n"


def _parameters(signature: specs.Signature) -> Iterator[str]:
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
        tail = "" if required else f" = {default_text(param.default)}"
        yield f"{param.name}: {_kind(param)}{tail}"
    if signature.unnamed and signature.unnamed == len(signature.arguments):
        yield "/"


def default_text(value: object) -> str:
    """A default in Python's syntax; `...` for an object without a literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return literal_text(value)


def _kind(param: params.Param) -> str:
    """The Python type of a parameter; Any for tensors and other values that have a protocol."""
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
            return "Any"
        case params.WithTraits():
            return param.traits.python
        case _:
            assert_never(param)


def _result(param: params.Param) -> str:
    if isinstance(param, params.Shape):
        return "Any"
    return _kind(param)
