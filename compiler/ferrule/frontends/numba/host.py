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
from collections.abc import Sequence
from typing import Any, Final

from ferrule.compiler.conventions.arguments import TYPES, Argument
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.conventions.c.returns import ReturnCode
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode import HostCode
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.frontends.numba.linking import alone
from ferrule.frontends.numba.support import FORGET
from ferrule.frontends.numba.types import dtype_of, flattened, numba_type
from ferrule.frontends.packages import load
from ferrule.runtime.llvm.layouts import I64, PTR
from ferrule.specs import Condition, DType, Param
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Scalar

_EXCEPTION: Final = re.compile(
    r"^@(\.const\.pickledata\.\w+(?:\.\d+)?) = .*? c\"(.*)\"(?:, align \d+)?$", re.M
)
_OTHER: Final = re.compile(r"\W", re.ASCII)
"""Characters that a C name cannot contain."""
_ESCAPE: Final = re.compile(rb"\\(\\|[0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class NumbaCall:
    """Calls the function that Numba compiled; its result, a number, is the result of the call."""

    entry: str
    """The name of the function in the code."""
    code: HostCode
    arguments: tuple[Argument, ...]
    status: ReturnCode
    result: DType | None
    when: Condition | None = None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return () if self.result is None else (Scalar("result", self.result),)

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        e = call.emitter
        place = e.alloca(I64, name="result")
        arguments = [_At(place), *self.arguments]
        CFunction(self.entry, arguments, returns=self.status, code=self.code).emit(call)
        for result in self.results():
            (leaf,) = leaves_of(result)
            call.give([e.load(place, TYPES[leaf])])


@dataclass(frozen=True, slots=True)
class _At:
    """An address in the body."""

    place: Any

    def types(self) -> list[Any]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[Any]:
        """See `HostArgument`."""
        return [self.place]


def host_call(function: Any, params: Sequence[Param]) -> NumbaCall:
    """The call of a function of Numba, compiled for parameters with these specs."""
    types = load("numba", "numba").types

    kinds = tuple(numba_type(types, param) for param in params)
    name, found = _compiled(function, kinds)
    text, symbol = found.library.get_llvm_str(), found.fndesc.llvm_func_name
    arguments = [argument for param in params for argument in flattened(param)]
    return native_call(name, text, symbol, found.signature.return_type, arguments)


def native_call(
    name: str, text: str, symbol: str, returned: Any, arguments: Sequence[Argument]
) -> NumbaCall:
    """The call of Numba's function `symbol` in a module, which returns a type of Numba's.

    Raises CompileError for code that needs Python, and for a result that is not a number.
    """
    result = result_of(name, returned)
    lines, kinds = alone(text, symbol, name)
    raised = [found.groups() for found in _EXCEPTION.finditer(lines)]
    entry = f"njit_{_OTHER.sub('_', name)}"
    caller = _caller(entry, symbol, kinds[2:], [pickled for pickled, _ in raised])
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
    """The compilation of a decorated function for these types; None for a plain function, and for
    one with explicit signatures, which compiles no others.

    Its own dispatcher compiles it, because a function that calls itself calls that dispatcher.
    """
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


def _dispatcher(function: Any) -> Any:
    """A new dispatcher with the options of a decorated function, and without a cache."""
    numba = load("numba", "numba")
    if not hasattr(function, "py_func"):
        return numba.njit(function)
    options = dict(getattr(function, "targetoptions", {}))
    return numba.jit(locals=getattr(function, "locals", {}), **options)(function.py_func)


def result_of(name: str, kind: Any) -> DType | None:
    """The dtype of a result of Numba's; CompileError for a result that is not a number."""
    types = load("numba", "numba").types

    if kind in (types.none, types.void):
        return None
    dtype = dtype_of(types, types.unliteral(kind))
    if dtype is None:
        raise CompileError(
            Diagnostic(
                f"{name} returns a {kind} of Numba",
                expected="nothing, or a number",
                hint="write to an array that is a parameter, and name it in results=",
            )
        )
    return dtype


def _caller(entry: str, symbol: str, kinds: Sequence[str], pickles: Sequence[str]) -> str:
    """The function that calls Numba's: it returns 0, the number of an exception from 1 on, or
    -1."""
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
        "",
    ]
    return "\n".join(lines)


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
    told = next(each for each in kind.__mro__ if each.__module__ == "builtins")
    if told is kind:
        return kind.__name__, message or kind.__name__
    return told.__name__, f"{kind.__name__}: {message}" if message else kind.__name__
