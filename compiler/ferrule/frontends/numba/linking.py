"""Extracts a function from a module of Numba's, so that it needs neither Numba nor Python.

The functions of Numba's runtime that code needs to make arrays are in `support`.

An exception that contains values of the call has a function that makes Python objects from them and
releases the values; only the release stays.

Numba describes an exception that contains values of the call by these values and a function, `ptr
__excinfo_unwrap_args<hash>(ptr values)`, which makes a Python tuple of them, releases them and
frees their memory.  A call without Python needs only the last two steps.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.numba.products import PRODUCTS, products
from ferrule.frontends.numba.support import FORGET, RELEASE, SUPPORT

_OF_PYTHON: Final = ("NRT_", "Py", "_Py", "numba_")
_RECURSIVE: Final = re.compile(
    r'^(@"\.numba\.unresolved\$(.+?)") = external [^\n]*?global ptr(?=,|$)', re.M
)
"""Matches a global through which a function finds the address of its caller in a recursion, which
Numba sets later."""
_ADDRESS: Final = "numba.dynamic.globals."
"""The prefix of globals that contain an address of this process."""
_ELSEWHERE: Final = (
    "arrays of a megabyte and more are handed over as parameters, C functions are named, "
    "numba.types.ExternalFunction(name, signature)"
)
_HINT: Final = (
    "use arrays, numbers, tuples and lists alone: no dicts, texts, random numbers and print"
)
_HINTS: Final = {
    r"numba_(xx|ez|cg|raw_)": "these are the solvers and norms of np.linalg, which Numba takes "
    "from SciPy's LAPACK: write them as loops, or with `a @ b`",
    r"numba_parallel_|numba_gil_|PyEval_": "a function that it calls has parallel=True, whose "
    "threads are Numba's: leave that out, prange is a loop then",
}
"""Hints for code that needs functions of the runtime, by the prefixes of their names."""


def alone(text: str, symbol: str, name: str) -> tuple[str, list[str]]:
    """The LLVM text of a function with all functions that it calls, and the types of its
    parameters.

    Raises CompileError if it needs more of Numba's runtime, which is a part of Python, or contains
    addresses of this process.
    """
    import llvmlite.binding as llvm

    from ferrule.runtime.llvm.passes import link_in

    context = llvm.create_context()
    with llvm.parse_assembly(_resolved(without_boxing(text)), context) as module:
        kinds = [str(argument.type) for argument in module.get_function(symbol).arguments]
        link_in(module, llvm.parse_assembly(SUPPORT, context))
        has_products = any(each.name in PRODUCTS for each in module.functions)
        if has_products:
            link_in(module, llvm.parse_assembly(products(), context))
        for each in (*module.functions, *module.global_variables):
            if not each.is_declaration and each.name not in (symbol, FORGET, RELEASE):
                each.linkage = llvm.Linkage.internal
        _drop_unused(module)
        has_addresses = any(each.name.startswith(_ADDRESS) for each in module.global_variables)
        if has_products:
            _drop_unreachable(module)
        needed = [each.name for each in module.functions if each.is_declaration]
        lines = str(module)
    if has_addresses:
        raise CompileError(
            Diagnostic(
                f"{name} uses an address of this process, as Numba does for large arrays that are "
                "no parameters and for functions of ctypes",
                hint=_ELSEWHERE,
            )
        )
    foreign = [each for each in needed if each.startswith(_OF_PYTHON)]
    if foreign:
        raise CompileError(
            Diagnostic(
                f"{name} needs {', '.join(foreign)} of Numba's runtime, which is a part of Python",
                hint="; ".join(dict.fromkeys(map(_hint, foreign))),
            )
        )
    return lines, kinds


def _hint(needed: str) -> str:
    found = (hint for begin, hint in _HINTS.items() if re.match(begin, needed))
    return next(found, _HINT)


def _resolved(text: str) -> str:
    """The text with the addresses of functions that call each other filled in."""

    def known(found: re.Match[str]) -> str:
        place, symbol = found.groups()
        if re.search(rf'^define [^\n]*@"?{re.escape(symbol)}"?\(', text, re.M) is None:
            return found[0]
        return f'{place} = internal constant ptr @"{symbol}"'

    return _RECURSIVE.sub(known, text)


def _drop_unused(module: Any) -> None:
    with _passes(module) as manager:
        manager.add_global_dead_code_eliminate_pass()


def _drop_unreachable(module: Any) -> None:
    """Remove what runs where a product fails, which ends the process: here none fails."""
    with _passes(module) as manager:
        manager.add_ipsccp_pass()
        manager.add_simplify_cfg_pass()
        manager.add_global_dead_code_eliminate_pass()


def _passes(module: Any) -> AbstractContextManager[Any]:
    import llvmlite.binding as llvm

    from ferrule.runtime.llvm.passes import passes

    machine = llvm.Target.from_triple(module.triple).create_target_machine()
    return passes(module, machine)


# ---- exceptions with values, without Python ----


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
