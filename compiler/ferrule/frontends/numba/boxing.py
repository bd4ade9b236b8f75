"""Removes Python from the functions that make Python objects from the values of an exception.

Numba describes an exception that contains values of the call by these values and a function, `ptr
__excinfo_unwrap_args<hash>(ptr values)`, which makes a Python tuple of them, releases them and
frees their memory.  A call without Python needs only the last two steps.
"""

from __future__ import annotations

import re
from typing import Final

_FUNCTION: Final = re.compile(
    r"^(define [^\n]*@__excinfo_unwrap_args\w+\(ptr[^\n%]*(%[\w.]+)\)[^\n]*\{)\n(.*?)^\}",
    re.M | re.S,
)
_CALL: Final = re.compile(
    r"^  (?:(%[\w.]+) = )?(?:tail )?call (?:[a-z]+ )*?(void|ptr|i\d+) (?:\([^)]*\) )?"
    r"@(?:_?Py\w+|NRT_adapt_\w+|numba_unpickle)\(.*\).*$",
    re.M,
)
_ENVIRONMENT: Final = re.compile(r"^  (%[\w.]+) = load ptr, ptr @_ZN08NumbaEnv.*$", re.M)
_PYTHON: Final = re.compile(r"@_?Py|@NRT_adapt|@numba_")
_NOTHING: Final = "nothing.known"
_NOTHING_KNOWN: Final = f"@{_NOTHING} = internal constant [256 x i8] zeroinitializer, align 16\n"
"""Replaces the objects that Numba keeps for a function, which do not exist here."""


def without_boxing(text: str) -> str:
    """The LLVM text of a module in which these functions do not use Python."""
    plain, count = _FUNCTION.subn(_changed, text)
    return f"{plain}\n{_NOTHING_KNOWN}" if count else plain


def _changed(found: re.Match[str]) -> str:
    head, values, body = found.groups()
    plain = _ENVIRONMENT.sub(rf"  \1 = getelementptr i8, ptr @{_NOTHING}, i64 0", body)
    plain = _CALL.sub(_nothing, plain)
    if _PYTHON.search(plain):
        # Objects in the values are not released then: only the memory of the values is freed.
        plain = f"  call void @NRT_Free(ptr {values})\n  ret ptr null\n"
    return f"{head}\n{plain}}}"


def _nothing(found: re.Match[str]) -> str:
    """Replaces a call of a Python function by a zero, which as an object is null."""
    name, kind = found.groups()
    return f"  {name} = select i1 true, {kind} zeroinitializer, {kind} undef" if name else ""
