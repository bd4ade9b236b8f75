"""From the steps of a host function to the calling convention that executes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import assert_never

from ferrule.compiler import conventions
from ferrule.compiler.conventions import Argument, CallingConvention, CudaLaunch, cast
from ferrule.compiler.conventions.memref import outer
from ferrule.compiler.cuda.archs import choose_archs
from ferrule.compiler.cuda.assembly import with_cubin
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.ptx import to_ptx
from ferrule.compiler.options import Options, default_environment
from ferrule.frontends.launchsizes import checked_sizes, listed, unmarked
from ferrule.frontends.mlir.conditions import Compared, Inverted, Joined, Test
from ferrule.frontends.mlir.expressions import (
    ArgumentValue,
    FloatConstant,
)
from ferrule.frontends.mlir.kernels import Known
from ferrule.frontends.mlir.kinds import DTYPES
from ferrule.frontends.mlir.launches import (
    Assertion,
    Branch,
    Launch,
    Loop,
    Operand,
    Sizes,
    Steps,
    launches_in,
)
from ferrule.frontends.mlir.repeated import Asserted, Repeated
from ferrule.frontends.mlir.signatures import loop_value, size
from ferrule.frontends.strides import Asked
from ferrule.specs import Condition, Dim, Signature, Tensor
from ferrule.specs.conditions import compare
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make
from ferrule.specs.params import Scalar


def device_code(kernels: Sequence[str], options: Options) -> DeviceCode:
    """The kernels of LLVM modules, for the architectures that the options choose."""
    from ferrule.runtime.devices import cuda_devices

    assert isinstance(options.gpu_arch, str | None), "Options joins a list"
    archs = choose_archs(options.gpu_arch, default_environment(), cuda_devices)
    code = DeviceCode.from_ptx(list(to_ptx(kernels, archs, options.opt_level).values()))
    if not options.cubin:
        return code
    words = (f"-O{options.opt_level}", *options.ptxas_options.split())
    return replace(code, images=tuple(with_cubin(each, words) for each in code.images))


def launching(steps: Steps, code: DeviceCode, signature: Signature) -> CallingConvention:
    """The convention that executes these steps, in order."""
    made = list(_conventions(steps, code, signature))
    return made[0] if len(made) == 1 else conventions.Sequence(made)


def _conventions(
    steps: Steps, code: DeviceCode, signature: Signature
) -> Iterator[CallingConvention]:
    for step in steps:
        match step:
            case Launch():
                yield _launch(step, code, signature)
            case Assertion():
                text = f"{signature.name}: {step.message}"
                yield Asserted(test(step.condition, signature), text)
            case Branch():
                holds = test(step.condition, signature)
                for when, inner in ((holds, step.steps), (~holds, step.otherwise)):
                    if inner:
                        made = list(_conventions(inner, code, signature))
                        yield conventions.Sequence(made, when=when)
            case Loop():
                yield _repeated(step, code, signature)
            case _:
                assert_never(step)


def _repeated(loop: Loop, code: DeviceCode, signature: Signature) -> Repeated:
    start, stop, step = (size(each, signature) for each in (loop.start, loop.stop, loop.step))
    count = make("ceildiv", make("sub", stop, start), step)
    steps = tuple(_conventions(loop.steps, code, signature))
    return Repeated(loop_value(loop.depth), start, step, make("max", count, 0), steps)


def test(condition: Test, signature: Signature) -> Condition:
    """A condition over the parameters of a signature."""
    match condition:
        case Compared(operator, left, right):
            return compare(operator, size(left, signature), size(right, signature))
        case Inverted(inner):
            return ~test(inner, signature)
        case Joined("and", left, right):
            return test(left, signature) & test(right, signature)
        case Joined(_, left, right):
            return test(left, signature) | test(right, signature)
        case _:
            assert_never(condition)


@dataclass(frozen=True, slots=True)
class Given:
    """The sizes of a launch that the caller has said, each as for `CudaLaunch` or a function of the
    signature."""

    grid: Any
    block: Any = None
    smem: Any = None
    cluster: Any = None


def launched(
    steps: Steps, code: DeviceCode, signature: Signature, given: Given, known: Known
) -> CallingConvention:
    """The launch of a kernel with sizes that the caller has said.

    Raises CompileError for a grid that is the same in every call, for sizes other than those that
    the kernel is compiled for, and where no block is said.
    """
    (launch,) = launches_in(steps)
    asked = Asked.of(signature)
    grid = given.grid if known.grid else checked_sizes("grid", given.grid, asked.signature)
    block = known.block if given.block is None else given.block
    if block is None:
        raise CompileError(
            Diagnostic(
                f"nothing says how many threads a block of {launch.name} has",
                expected="block=…, or gpu.known_block_size of the kernel",
            )
        )
    made = CudaLaunch(
        code,
        launch.name,
        _parameters(launch, code, signature),
        _as_known("grid", _said(grid, asked.signature), known.grid, launch.name),
        _as_known("block", _said(block, asked.signature), known.block, launch.name),
        _said(given.smem, asked.signature),
        cluster=_said(given.cluster, asked.signature),
    )
    return asked.held(made)


def _as_known(what: str, sizes: Any, wanted: tuple[int, int, int] | None, kernel: str) -> Any:
    """The sizes.  Raises CompileError if they are not those that the kernel is compiled for."""
    if wanted is not None and (*listed(sizes), 1, 1)[:3] != wanted:
        raise CompileError(
            Diagnostic(
                f"{kernel} is compiled for a {what} of {wanted}, as gpu.known_{what}_size says, "
                f"but {what} is {sizes}",
                hint=f"{what}={wanted}, or leave the attribute out of the module",
            )
        )
    return sizes


def _said(sizes: Any, signature: Signature) -> Any:
    """The sizes, without marks, or what a function of the signature says."""
    return unmarked(sizes(signature) if callable(sizes) else sizes)


def _parameters(launch: Launch, code: DeviceCode, signature: Signature) -> list[Argument]:
    bare = len(code.parameters(launch.name).parameters) == len(launch.operands)
    return [each for one in launch.operands for each in _arguments(one, signature, bare=bare)]


def _launch(launch: Launch, code: DeviceCode, signature: Signature) -> CudaLaunch:
    return CudaLaunch(
        code,
        launch.name,
        _parameters(launch, code, signature),
        _sizes(launch.grid, signature),
        _sizes(launch.block, signature),
        size(launch.smem, signature),
        cluster=None if launch.cluster is None else _sizes(launch.cluster, signature),
    )


def _sizes(sizes: Sizes, signature: Signature) -> tuple[Dim, Dim, Dim]:
    x, y, z = (size(each, signature) for each in sizes)
    return x, y, z


def _arguments(operand: Operand, signature: Signature, *, bare: bool) -> Iterator[Argument]:
    """The arguments of a kernel for an operand: a memref is its descriptor, member by member."""
    if operand.rank is not None:
        assert isinstance(operand.value, ArgumentValue)
        tensor = signature.params[operand.value.position]
        assert isinstance(tensor, Tensor)
        yield tensor.data
        if not bare:
            yield tensor.data
            sizes, strides = outer(tensor, operand.inner)
            yield from (cast(dim, "int64") for dim in (0, *sizes, *strides))
        return
    if operand.kind not in DTYPES:
        raise CompileError(f"a kernel gets a value of type {operand.kind}, expected a number")
    dtype = DTYPES[operand.kind]
    match operand.value:
        case FloatConstant(value):
            yield cast(value, dtype)
        case ArgumentValue(position):
            param = signature.params[position]
            assert isinstance(param, Scalar)
            # The bits are the same with and without a sign.
            yield cast(param, param.dtype.name if _is_unsigned(param, dtype) else dtype)
        case found:
            yield cast(size(found, signature), dtype)


def _is_unsigned(param: Scalar, dtype: str) -> bool:
    """Whether a parameter has the bits of an integer dtype, but no sign."""
    return param.dtype.name == f"u{dtype}"
