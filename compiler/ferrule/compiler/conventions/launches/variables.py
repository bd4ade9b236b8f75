"""Values for the `__constant__` and `__device__` variables of kernels, set by a launch.

In host code of CUDA C++, cudaMemcpyToSymbol writes them.  Here the launch writes them itself, on
its stream and before each launch; otherwise they would silently be zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.launches.reach import check_reach
from ferrule.compiler.cuda.binaries.names import find_kernel
from ferrule.compiler.cuda.binaries.parameters import KernelParameters, Variable
from ferrule.compiler.cuda.kernelfacts import KernelFacts
from ferrule.compiler.cuda.launcher.faults import failures
from ferrule.compiler.cuda.launcher.launch import Launcher
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mangled import spoken_name
from ferrule.specs import Data, Tensor, compact_strides

Value: TypeAlias = "bytes | Tensor | int | None"
Constant: TypeAlias = "tuple[str, Value]"
"""A variable's name and its value: bytes, a tensor of the call, 0 for zeros, None to keep the
current value."""
_PERHAPS: Final = (
    "{image} may use the variable {name}, {size} bytes that have no value but what kernels write; "
    "constants={{{name!r}: …}} gives it one, None says that it needs none"
)


def checked_constants(given: Mapping[str, object] | None) -> tuple[Constant, ...]:
    """The values of variables by their names.

    Raises TypeError for anything but a dict by names, and for values of other kinds: a Python
    number has no type here, an array of NumPy does.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for each in given):
        raise TypeError(
            f"CudaLaunch: constants must be a dict by the names of variables, but got {given!r}"
        )
    return tuple((name, _value(name, value)) for name, value in given.items())


def _value(name: str, value: object) -> Value:
    if value is None or isinstance(value, Tensor | bytes) or (type(value) is int and value == 0):
        return value
    if isinstance(value, Data) and value.offset == 0:
        return value.tensor
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"CudaLaunch: the constant {name} must be bytes, an array, a tensor of the signature, "
            f"0 for zeros, or None for what is there, but got {shown(value)}; a number has a type, "
            "such as numpy.float32(…)"
        ) from None
    return view.tobytes()


def chosen_variables(
    call: Call,
    images: Sequence[KernelParameters],
    facts: KernelFacts,
    constants: Sequence[Constant],
) -> list[tuple[Variable, Value]]:
    """The variables that a launch writes, with their values.

    CompileError for a value of the wrong size, for an unknown variable, and for a variable that the
    kernel uses and that neither the code nor the launch initialises.  If a cubin does not show
    which kernels use it, this is an error for variables that kernels cannot write, and otherwise a
    remark.
    """
    kernel = images[0]
    named = dict(_found(kernel, constants))
    for image in images:
        _check_all_set(call, image, facts, named)
        for variable in image.variables:
            if variable.name in named:
                _check_size(image, variable, named[variable.name])
    there = {each.name: each for each in kernel.variables}
    return [(there[name], value) for name, value in named.items() if value is not None]


def _found(kernel: KernelParameters, constants: Sequence[Constant]) -> Iterator[Constant]:
    """The values by the names that variables have in the binary."""
    known = [each.name for each in kernel.variables]
    for name, value in constants:
        symbol = find_kernel(name, known)
        if symbol is None:
            there = ", ".join(map(spoken_name, known))
            raise CompileError(
                Diagnostic(
                    f"{kernel} has no variable {name!r} to give a value to",
                    expected=there or "no variable: the compiler leaves out what nothing uses",
                )
            )
        yield symbol, value


def _check_all_set(
    call: Call, image: KernelParameters, facts: KernelFacts, named: Mapping[str, Value]
) -> None:
    used = facts.variables
    for variable in image.variables:
        is_used = variable.is_used if used is None else variable.name in used
        if variable.is_set or is_used is False or variable.name in named:
            continue
        name = spoken_name(variable.name)
        if is_used is None and not variable.is_constant:
            call.remark(_PERHAPS.format(image=image, name=name, size=variable.size))
            continue
        raise CompileError(
            Diagnostic(
                f"{image} uses the variable {name}, {variable.size} bytes without a value: nobody "
                "would write it, and the kernel would read zeros",
                hint=f"constants={{{name!r}: …}} gives it one: bytes, an array, or a tensor of the "
                "signature, before each launch; 0 for zeros; None where kernels write it",
            )
        )


def _check_size(image: KernelParameters, variable: Variable, value: Value) -> None:
    name, size = spoken_name(variable.name), variable.size
    given: object = size
    if isinstance(value, bytes):
        given = len(value)
    elif isinstance(value, Tensor):
        given = value.nbytes
        if tuple(value.strides) != tuple(compact_strides(value.shape, range(len(value.shape)))):
            raise CompileError(f"{image}: the tensor {value.name} for {name} must be contiguous")
    if isinstance(given, int) and given != size:
        raise CompileError(f"{image}: the variable {name} has {size} bytes, but its value {given}")


def write_variable(
    call: Call, launcher: Launcher, variable: Variable, value: Value, stream: ir.Value
) -> None:
    """Write a variable on a stream.  A tensor of another size is a ValueError of the call."""
    e = call.emitter
    call.steps.add(f"write the variable {spoken_name(variable.name)}")
    source = e.null()
    if isinstance(value, bytes):
        source = e.bytes_constant(value, align=16)
    elif isinstance(value, Tensor):
        check_reach(variable.name, value.data)
        _require_size(call, variable, value)
        source = call.address(value.data)
    status = launcher.write(variable.name, source, variable.size, stream, call.values)
    name = spoken_name(variable.name)
    call.require(status, failures(f"in the writing of the variable {name}", None))


def _require_size(call: Call, variable: Variable, tensor: Tensor) -> None:
    if isinstance(tensor.nbytes, int):
        return
    e, name = call.emitter, spoken_name(variable.name)
    size = call.size(tensor.nbytes, f"the bytes of {tensor.name}")
    message = (
        f"{literal(tensor.name)} is the value of the variable {literal(name)}: expected "
        f"{variable.size} bytes, but got {{}}"
    )
    wrong = e.icmp("ne", size, e.const_i64(variable.size))
    call.refuse(wrong, Fault("ValueError", message), [size])
