"""Functions that Numba compiles for the CPU, called without Numba and Python.

Numba's function is `int32_t (result*, exception**, arguments...)`: 0, -2 for None, and above 0
where it raised, with the address of a constant that describes the exception.  What is called is a
function beside it in the same module, which tells these constants apart and returns a number.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ferrule.compiler.artefacts import DeviceCode
from ferrule.compiler.conventions.arguments import TYPES, Argument
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.functions import CFunction, ReturnCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode import HostCode
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.frontends.numba.memory import MEMORY
from ferrule.frontends.numba.types import dtype_of, flattened, numba_type
from ferrule.runtime.llvm.layouts import I64, PTR
from ferrule.specs import Condition, DType, Param
from ferrule.specs.params import Scalar

_ENTRY: Final = "called"
_EXCEPTION: Final = re.compile(r"^@\.const\.pickledata\.(\w+) = .*? c\"(.*)\"$", re.M)
_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2})")
_OF_PYTHON: Final = ("NRT_", "Py", "_Py", "numba_")


@dataclass(frozen=True, slots=True)
class Compiled:
    """LLVM IR with the function `called`, the errors it tells by number, and its result's dtype."""

    text: str
    errors: dict[int, tuple[str, str]]
    result: DType | None


@dataclass(frozen=True, slots=True)
class NumbaCall:
    """Calls what Numba compiled; its result, a number, is what the call gives back."""

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
        CFunction(_ENTRY, arguments, returns=self.status, code=self.code).emit(call)
        for result in self.results():
            (leaf,) = leaves_of(result)
            call.give([e.load(place, TYPES[leaf])])


@dataclass(frozen=True, slots=True)
class _At:
    """An address that the body has."""

    place: Any

    def types(self) -> list[Any]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[Any]:
        """See `HostArgument`."""
        return [self.place]


def host_call(function: Any, params: Sequence[Param]) -> NumbaCall:
    """The call of a function of Numba, compiled for parameters with these specs."""
    from numba import types

    compiled = compile_for_cpu(function, tuple(numba_type(types, param) for param in params))
    arguments = tuple(argument for param in params for argument in flattened(param))
    code = HostCode.from_llvm(compiled.text)
    return NumbaCall(code, arguments, ReturnCode(errors=compiled.errors), compiled.result)


def compile_for_cpu(function: Any, kinds: tuple[Any, ...]) -> Compiled:
    """What Numba makes of a function.

    Raises CompileError with Numba's words where it cannot, for code that needs Python or Numba's
    runtime, and for a result that is no number.
    """
    import numba

    dispatcher = function if hasattr(function, "py_func") else numba.njit(function)
    name = dispatcher.py_func.__name__
    try:
        dispatcher.compile(kinds)
    except numba.core.errors.NumbaError as error:
        raise CompileError(Diagnostic(f"Numba cannot compile {name}: {error}")) from error
    found = dispatcher.overloads[kinds]
    if getattr(found, "objectmode", False):
        raise CompileError(f"Numba compiled {name} in object mode, which needs Python")
    text = alone(found.library.get_llvm_str(), found.fndesc.llvm_func_name, name)
    errors = dict(enumerate(_exceptions(text), 1))
    return Compiled(text, errors, _result(numba, name, found.signature.return_type))


def _result(numba: Any, name: str, kind: Any) -> DType | None:
    if kind in (numba.types.none, numba.types.void):
        return None
    dtype = dtype_of(numba.types, kind)
    if dtype is None:
        raise CompileError(
            Diagnostic(
                f"{name} returns a {kind} of Numba",
                expected="nothing, or a number",
                hint="write to an array that is a parameter, and name it in results=",
            )
        )
    return dtype


def alone(text: str, symbol: str, name: str) -> str:
    """A function of Numba's module with what it calls, and the function that calls it.

    Raises CompileError where it needs Numba's runtime, which is a part of Python.
    """
    import llvmlite.binding as llvm

    context = llvm.create_context()
    with llvm.parse_assembly(text, context) as module:
        kinds = [str(argument.type) for argument in module.get_function(symbol).arguments]
        module.link_in(llvm.parse_assembly(MEMORY, context))
        for each in (*module.functions, *module.global_variables):
            if not each.is_declaration and each.name != symbol:
                each.linkage = llvm.Linkage.internal
        _drop_unused(module)
        needed = [each.name for each in module.functions if each.is_declaration]
        lines = str(module)
    foreign = [each for each in needed if each.startswith(_OF_PYTHON)]
    if foreign:
        raise CompileError(
            Diagnostic(
                f"{name} needs {', '.join(foreign)} of Numba's runtime, which is a part of Python",
                hint="use arrays and numbers alone: no lists, dicts, texts and random numbers",
            )
        )
    return lines + _caller(symbol, kinds[2:], list(_hashes(lines)))


def _drop_unused(module: Any) -> None:
    import llvmlite.binding as llvm

    machine = llvm.Target.from_triple(module.triple).create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


def _caller(symbol: str, kinds: Sequence[str], hashes: Sequence[str]) -> str:
    """The function that calls Numba's: 0, the number of an exception from 1 on, or -1."""
    names = [f"{kind} %a{i}" for i, kind in enumerate(kinds)]
    lines = [
        f"define i32 @{_ENTRY}({', '.join(['ptr %result', *names])}) {{",
        "  %raised = alloca ptr",
        "  store ptr null, ptr %raised",
        f'  %status = call i32 @"{symbol}"({", ".join(["ptr %result", "ptr %raised", *names])})',
        "  %is.none = icmp eq i32 %status, -2",
        "  %is.zero = icmp eq i32 %status, 0",
        "  %fine = or i1 %is.none, %is.zero",
        "  %what = load ptr, ptr %raised",
        "  %n0 = add i32 0, -1",
    ]
    for i, each in enumerate(hashes):
        lines.append(f"  %is{i} = icmp eq ptr %what, @.const.picklebuf.{each}")
        lines.append(f"  %n{i + 1} = select i1 %is{i}, i32 {i + 1}, i32 %n{i}")
    lines += [f"  %out = select i1 %fine, i32 0, i32 %n{len(hashes)}", "  ret i32 %out", "}", ""]
    return "\n".join(lines)


def _hashes(text: str) -> Iterator[str]:
    return (found[1] for found in _EXCEPTION.finditer(text))


def _exceptions(text: str) -> Iterator[tuple[str, str]]:
    """Class and message of each exception that the code can raise."""
    for found in _EXCEPTION.finditer(text):
        data = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), found[2].encode())
        yield _described(data)


def _described(data: bytes) -> tuple[str, str]:
    """Numba pickles the class, its arguments and a place, all of them of the user's function."""
    try:
        kind, arguments, *_ = pickle.loads(data)
        return kind.__name__, ", ".join(map(str, arguments or ())) or kind.__name__
    except Exception:
        return "RuntimeError", "an exception that cannot be told"
