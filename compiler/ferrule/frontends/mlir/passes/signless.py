"""In the process of MLIR: integers with a sign in their types become those without.

Operations of upstream compute with integers of no sign.  Passes that make them of operations with
signs, such as those of StableHLO, convert at the borders: `ui32` to `i32` and back, by
`builtin.unrealized_conversion_cast`, which nothing lowers.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.reading import find_function, walk

_CAST: Final = "builtin.unrealized_conversion_cast"
_STRING: Final = re.compile(r'("(?:[^"\\]|\\.)*")')
_SIGNED: Final = re.compile(r"(?<![\w.#%@!])((?:\?x|\d+x)*)[us]i(8|16|32|64)(?![\w.])")


def without_signs(session: Session, module: Any, function: Any) -> tuple[Any, Any]:
    """The module, and the function in it, without conversions between such types."""
    if not any(each.name == _CAST and _changes_sign(each) for each in walk(module.operation)):
        return module, function
    name = str(function.attributes["sym_name"].value)
    parts = _STRING.split(module.operation.get_asm(enable_debug_info=True))
    parts[::2] = [_SIGNED.sub(r"\1i\2", part) for part in parts[::2]]
    made = session.parse("".join(parts))
    for each in list(walk(made.operation)):
        if each.name == _CAST and _types(each.operands) == _types(each.results):
            for old, new in zip(each.results, each.operands, strict=True):
                old.replace_all_uses_with(new)
            each.erase()
    return made, find_function(made, name)


def _changes_sign(cast: Any) -> bool:
    """Whether the operands and results of a conversion differ in their signs alone."""
    given, made = (
        [_SIGNED.sub(r"\1i\2", each) for each in _types(values)]
        for values in (cast.operands, cast.results)
    )
    return given == made


def _types(values: Any) -> list[str]:
    return [str(each.type) for each in values]
