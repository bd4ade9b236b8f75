"""Functions that Numba compiles for the CPU, called without Numba and Python.

Numba's function is `int32_t (result*, exception**, arguments...)`.  It returns 0, or -2 for None,
or a positive number if it raised; then the address of `{pickle, i32 size, values or hash, function,
i32 values}` describes the exception.  This is a constant, or, if it contains values of the call,
two allocated pieces of memory.  The function that is called is another one in the same module,
which distinguishes the pickles and returns a number.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ferrule.compiler.conventions.arguments import Argument
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.conventions.c.host_arguments import OnStack
from ferrule.compiler.conventions.c.returns import ReturnCode
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode import HostCode
from ferrule.frontends.numba.linking import alone
from ferrule.frontends.numba.records import Records, numba_arguments, numba_types
from ferrule.frontends.numba.returns import (
    Number,
    Perhaps,
    Value,
    arrays,
    leaves,
    param,
    returned_value,
    room,
    valid_offset,
)
from ferrule.frontends.numba.support import FORGET, RELEASE
from ferrule.frontends.packages import load
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Condition, DType, Param
from ferrule.specs.deferred import dataclass

_EXCEPTION: Final = re.compile(
    r"^@(\.const\.pickledata\.\w+(?:\.\d+)?) = .*? c\"(.*)\"(?:, align \d+)?$", re.M
)
_DONE: Final = "_done"
"""Ends the name of the function that releases the arrays of a result."""
_OTHER: Final = re.compile(r"\W", re.ASCII)
"""Characters that a C name cannot contain."""
_ESCAPE: Final = re.compile(rb"\\(\\|[0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class NumbaCall:
    """Calls the function that Numba compiled; what it returns is the result of the call."""

    entry: str
    """The name of the function in the code."""
    code: HostCode
    arguments: tuple[Argument, ...]
    status: ReturnCode
    result: Value | None
    when: Condition | None = None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return () if self.result is None else (param(self.result),)

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        e, words = call.emitter, 1 if self.result is None else -(-room(self.result)[0] // 8) + 1
        place = e.alloca(I64, words, name="result")
        e.clear(place, 8 * words)
        arguments = [OnStack(place), *self.arguments]
        CFunction(self.entry, arguments, returns=self.status, code=self.code).emit(call)
        if self.result is None:
            return
        if not any(True for _ in arrays(self.result)):
            call.give(leaves(call, self.result, place, self.entry))
            return

        def let_go(well: bool) -> None:
            CFunction(f"{self.entry}{_DONE}", [OnStack(place)], code=self.code).emit(call)

        with call.undone(let_go):
            found = leaves(call, self.result, place, self.entry)
        call.give(found)


def host_call(function: Any, params: Sequence[Param], records: Records) -> NumbaCall:
    """The call of a function of Numba, compiled for parameters with these specs; those in
    `records` are bytes of records."""
    types = load("numba", "numba").types

    kinds = numba_types(types, params, records)
    name, found = _compiled(function, kinds)
    text, symbol = found.library.get_llvm_str(), found.fndesc.llvm_func_name
    arguments = numba_arguments(params, records)
    return native_call(name, text, symbol, found.signature.return_type, arguments)


def native_call(
    name: str, text: str, symbol: str, returned: Any, arguments: Sequence[Argument]
) -> NumbaCall:
    """The call of Numba's function `symbol` in a module, which returns a type of Numba's.

    Raises CompileError for code that needs Python, and for a result without a counterpart.
    """
    result = returned_value(name, returned)
    lines, kinds = alone(text, symbol, name)
    raised = [found.groups() for found in _EXCEPTION.finditer(lines)]
    entry = f"njit_{_OTHER.sub('_', name)}"
    caller = _caller(entry, symbol, kinds[2:], [pickled for pickled, _ in raised], result)
    code = HostCode.from_llvm(lines + caller)
    told = [_described(_ESCAPE.sub(_unescaped, data.encode()), name) for _, data in raised]
    errors = dict(enumerate(told, 1))
    errors[-1] = "RuntimeError", f"{name} raised an exception that it does not describe"
    return NumbaCall(entry, code, tuple(arguments), ReturnCode(errors=errors), result)


def _compiled(function: Any, kinds: tuple[Any, ...]) -> tuple[str, Any]:
    """The name of a function, and Numba's compilation of it; CompileError if Numba cannot compile
    it."""
    plain = getattr(function, "py_func", function)
    try:
        found = _found(function, kinds)
        if found is None or not has_code(found.library, found.fndesc.llvm_func_name):
            found = _compile(_dispatcher(function), kinds)
    except Exception as error:
        words = str(error) if " " in str(error) else f"{type(error).__name__}: {error}"
        raise CompileError(Diagnostic(f"Numba cannot compile {plain.__name__}: {words}")) from error
    if getattr(found, "objectmode", False):
        raise CompileError(f"Numba compiled {plain.__name__} in object mode, which needs Python")
    return plain.__name__, found


def _found(function: Any, kinds: tuple[Any, ...]) -> Any:
    """The compilation of a decorated function for these types; None for a plain function, for one
    with explicit signatures, which compiles no others, and for one with `parallel=True`.

    Its own dispatcher compiles it, because a function that calls itself calls that dispatcher.
    """
    if _is_parallel(function):
        return None
    found = getattr(function, "overloads", {}).get(kinds)
    if found is None and getattr(function, "_can_compile", False):
        return _compile(function, kinds)
    return found


def _compile(dispatcher: Any, kinds: tuple[Any, ...]) -> Any:
    dispatcher.compile(kinds)
    return dispatcher.overloads[kinds]


def has_code(library: Any, symbol: str) -> bool:
    """Whether a library of Numba contains this function's LLVM IR: one that is loaded from its
    cache on disk has only machine code."""
    return any(each.name == symbol for each in library.get_defined_functions())


def _is_parallel(function: Any) -> bool:
    return bool(getattr(function, "targetoptions", {}).get("parallel"))


def _dispatcher(function: Any) -> Any:
    """A new dispatcher with the options of a decorated function, and without a cache.

    The threads of `parallel=True` are Numba's, in the process that compiles: without this option
    `prange` is a loop in the calling thread.
    """
    numba = load("numba", "numba")
    if not hasattr(function, "py_func"):
        return numba.njit(function)
    options = {**getattr(function, "targetoptions", {}), "parallel": False}
    return numba.jit(locals=getattr(function, "locals", {}), **options)(function.py_func)


def result_of(name: str, kind: Any) -> DType | None:
    """The dtype of a result of Numba's; CompileError for a result that is not a number."""
    found = returned_value(name, kind)
    if isinstance(found, Number | None):
        return None if found is None else found.dtype
    raise CompileError(
        Diagnostic(f"{name} returns a {kind} of Numba", expected="nothing, or a number")
    )


def _caller(
    entry: str,
    symbol: str,
    kinds: Sequence[str],
    pickles: Sequence[str],
    result: Value | None,
) -> str:
    """The function that calls Numba's: it returns 0, the number of an exception from 1 on, or -1;
    and the one that releases the arrays of the result."""
    names = [f"{kind} %a{i}" for i, kind in enumerate(kinds)]
    lines = [
        f"define i32 @{entry}({', '.join(['ptr %result', *names])}) {{",
        "  %raised = alloca ptr",
        "  store ptr null, ptr %raised",
        f'  %status = call i32 @"{symbol}"({", ".join(["ptr %result", "ptr %raised", *names])})',
        "  %is.none = icmp eq i32 %status, -2",
        "  %is.zero = icmp eq i32 %status, 0",
        "  %fine = or i1 %is.none, %is.zero",
        "  %what = load ptr, ptr %raised",
        "  %nothing = icmp eq ptr %what, null",
        "  %known = or i1 %fine, %nothing",
        "  br i1 %known, label %done, label %failed",
        "done:",
        *(_flag(result) if isinstance(result, Perhaps) else ()),
        "  %bare = select i1 %fine, i32 0, i32 -1",
        "  ret i32 %bare",
        "failed:",
        "  %pickle = load ptr, ptr %what",
        "  %n0 = add i32 0, -1",
    ]
    for i, each in enumerate(pickles):
        lines.append(f"  %is{i} = icmp eq ptr %pickle, @{each}")
        lines.append(f"  %n{i + 1} = select i1 %is{i}, i32 {i + 1}, i32 %n{i}")
    lines += [
        f"  call void @{FORGET}(ptr %what)",
        f"  ret i32 %n{len(pickles)}",
        "}",
        f"define void @{entry}{_DONE}(ptr %result) {{",
        *_released(() if result is None else arrays(result)),
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _flag(result: Perhaps) -> list[str]:
    """Stores the flag of an optional that is the whole result: the status -2 means None."""
    return [
        f"  %flag = getelementptr i8, ptr %result, i64 {valid_offset(result)}",
        "  %valid = zext i1 %is.zero to i8",
        "  store i8 %valid, ptr %flag",
    ]


def _released(offsets: Iterable[int]) -> Iterator[str]:
    """Releases the arrays at these offsets of the result."""
    for i, offset in enumerate(offsets):
        yield f"  %at{i} = getelementptr i8, ptr %result, i64 {offset}"
        yield f"  %info{i} = load ptr, ptr %at{i}"
        yield f"  call void @{RELEASE}(ptr %info{i})"


def _unescaped(found: re.Match[bytes]) -> bytes:
    """The byte that LLVM's text writes as two digits, or as a backslash."""
    return b"\\" if found[1] == b"\\" else bytes([int(found[1], 16)])


def _described(data: bytes, name: str) -> tuple[str, str]:
    """Class and message of an exception that the code can raise.

    Numba pickles the class, its arguments and a location, all from the user's function; an argument
    that is a value of the call is pickled as a value of llvmlite.  A class that is not built into
    Python is reported as its nearest built-in base class.
    """
    try:
        kind, arguments, *_ = pickle.loads(data)
    except Exception:
        return "RuntimeError", f"{name} raised an exception that cannot be told"
    known = [each for each in arguments or () if not type(each).__module__.startswith("llvmlite")]
    if len(known) < len(arguments or ()):
        known.append(f"the rest of {name}'s message is made of values, which needs Python")
    message = ", ".join(map(str, known))
    # An error of a call has the name of an exception that Python itself has.
    told = next(each for each in kind.__mro__ if each.__module__ == "builtins")
    if told is kind:
        return kind.__name__, message or kind.__name__
    return told.__name__, f"{kind.__name__}: {message}" if message else kind.__name__
