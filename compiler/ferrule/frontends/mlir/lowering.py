"""In the process of MLIR: from a module to LLVM IR, with the kernels and their launches."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir import pipelines
from ferrule.frontends.mlir.kernels import (
    Known,
    all_known,
    find_kernel,
    held_to,
    known_sizes,
    launch_of,
)
from ferrule.frontends.mlir.kinds import Buffer, FunctionType, Unsupported
from ferrule.frontends.mlir.launches import Steps, launches_in, named, rename_kernels, steps_of
from ferrule.frontends.mlir.modules import Given
from ferrule.frontends.mlir.passes import tm_tensor
from ferrule.frontends.mlir.passes.checks import add_checks
from ferrule.frontends.mlir.passes.complex_numbers import without_complex_numbers
from ferrule.frontends.mlir.passes.decompose import decompose
from ferrule.frontends.mlir.passes.errors import raise_asserts
from ferrule.frontends.mlir.passes.loosen import align_as_elements, loosen_results
from ferrule.frontends.mlir.passes.narrow import narrow_once
from ferrule.frontends.mlir.passes.reach import restrict
from ferrule.frontends.mlir.passes.signless import without_signs
from ferrule.frontends.mlir.passes.subgroups import lower_reductions
from ferrule.frontends.mlir.passes.tm_tensor import know_dialect
from ferrule.frontends.mlir.reading import attribute, described, find_function, reached, walk
from ferrule.frontends.mlir.tying import asserted_relations, asserted_sizes, tied_sizes
from ferrule.frontends.mlir.writing import written
from ferrule.specs.deferred import dataclass

_C_INTERFACE: Final = "llvm.emit_c_interface"
_READ: Final = ("llvm.", "ferrule.")
"""The attributes of arguments that no pass may see."""
_LAUNCHES: Final = ("gpu.launch", "gpu.launch_func")
_LOWERED: Final = ("builtin", "llvm", "nvvm")
_ANY: Final = Known()
_LEFT: Final = "have it lowered before, or give pipeline=, passes that lower all of it"
_HINTS: Final = {
    "gpu": "only a function that launches kernels runs on a GPU, and it cannot copy or allocate; "
    "on the CPU memref.copy copies",
}
"""Hints for operations that no pass has lowered, by their dialect."""
OURS: Final = "the passes of ferrule.frontends.mlir.pipelines"


@dataclass(frozen=True, slots=True)
class Request:
    """The parameters of a lowering; `pipeline` is the user's, None for ours; `launched`: the
    function is a kernel, which the caller launches.

    Raises TypeError for a function or pipeline that is not a text.
    """

    function: str | None = None
    pipeline: str | None = None
    asserts: bool = True
    checks: bool = False
    launched: bool = False

    def __post_init__(self) -> None:
        for what in ("function", "pipeline"):
            given = getattr(self, what)
            if given is not None and not isinstance(given, str):
                raise TypeError(f"{what} must be a text, but got {given!r}")


@dataclass(frozen=True, slots=True)
class Lowered:
    """A function as LLVM IR: either `host` for the CPU, or the kernels' modules and their launches,
    with what is around them on the host.

    `known`: the sizes of a launch that the kernel is compiled for.  `raises`: the function has one
    more parameter, the address to which a failed assertion writes the address of its message.
    """

    function: FunctionType
    host: str = field(default="", repr=False)
    kernels: tuple[str, ...] = field(default=(), repr=False)
    steps: Steps = ()
    known: Known = _ANY
    raises: bool = False


def lower(session: Session, given: Given, request: Request) -> Lowered:
    """The requested function of a module, lowered."""
    know_dialect(session, given)
    module = session.parse(given.source, file=given.name)
    text = given.source if isinstance(given.source, str) else ""
    if request.launched:
        return _kernel(session, module, text, request)
    function = find_function(module, request.function)
    without_complex_numbers(session, module, function, text, schedules=request.pipeline is not None)
    on_gpu = any(each.name in _LAUNCHES for each in reached(module, function))
    kind = described(session, function, text, on_gpu=on_gpu)
    _require_supported(kind)
    module, function = without_signs(session, module, function)
    restrict(session, module, function, schedules=request.pipeline is not None)
    kind = replace(kind, written=written(module, function, kind))
    if on_gpu and request.asserts:
        ties = asserted_sizes(function)
        relations = tuple(asserted_relations(session, function))
        kind = replace(kind, ties=ties, relations=relations, relies=True)
    if not request.asserts:
        _remove_asserts(module)
    if on_gpu:
        return _on_gpu(session, module, kind, request)
    _mark(session, function, kind)
    if request.pipeline is None:
        loosen_results(session, module, function)
        decompose(session, module, {each.name for each in walk(module.operation)})
        places = _to_memrefs(session, module, kind)
        kind = replace(kind, ties=tied_sizes(session, module, kind.symbol))
        _to_llvm(session, module, request, places)
    else:
        kind = replace(kind, ties=tied_sizes(session, module, kind.symbol))
        _by_pipeline(session, module, request.pipeline, checks=request.checks)
    align_as_elements(session, module, kind)
    raises = raise_asserts(session, module, _called(kind))
    return Lowered(kind, session.translate(module), raises=raises)


def _by_pipeline(session: Session, module: Any, passes: str, *, checks: bool) -> None:
    """Runs the user's passes; they need not know the dialects of the checks."""
    if checks:
        add_checks(session, module, OURS, loads=True)
    session.run(module, passes)
    if checks:
        session.run(module, pipelines.pipeline(pipelines.CHECKS_TO_LLVM), OURS)


def _called(kind: FunctionType) -> str:
    return f"_mlir_ciface_{kind.symbol}"


def _to_llvm(session: Session, module: Any, request: Request, places: frozenset[str]) -> None:
    """Runs the passes of `pipelines` on a module without tensors; the loads and stores of the
    operations at `places` are always checked.

    A narrow float is rounded after each operation: the pass that computes in f32 allows later
    passes to omit these roundings.
    """
    if request.checks:
        session.run(module, pipelines.pipeline(pipelines.CHECKED_LOADS), OURS)
    if request.asserts:
        add_checks(session, module, OURS, loads=request.checks, places=places)
    narrow_once(session, module)
    session.run(module, pipelines.pipeline(pipelines.TO_BRANCHES), OURS)
    exact = session.ir.Attribute.parse("#arith.fastmath<none>")
    for each in walk(module.operation):
        if each.name in ("arith.extf", "arith.truncf"):
            each.attributes["fastmath"] = exact
    if any(each.name.startswith("x86.") for each in walk(module.operation)):
        session.run(module, pipelines.pipeline(pipelines.X86_TO_LLVM), OURS)
    session.run(module, pipelines.pipeline(pipelines.TO_LLVM), OURS)
    _require_lowered(session, module)


def _require_lowered(session: Session, module: Any) -> None:
    """Raises CompileError for an operation that none of our passes lowers."""
    for each in walk(module.operation):
        if each.name.partition(".")[0] not in _LOWERED:
            raise CompileError(
                Diagnostic(
                    f"{each.name} is left by {OURS}",
                    session.place(each),
                    hint=_HINTS.get(each.name.partition(".")[0], _LEFT),
                )
            )


def _require_supported(function: FunctionType) -> None:
    """Raises CompileError for types that no argument or result of a call can have."""
    rows = [
        (f"the argument {n!r}", k) for n, k in zip(function.names, function.arguments, strict=True)
    ]
    rows += [(f"result #{position}", kind) for position, kind in enumerate(function.results)]
    for what, kind in rows:
        if isinstance(kind, Unsupported):
            raise CompileError(f"{what} of @{function.symbol} is {kind.text}: {kind.reason}")


def _on_gpu(session: Session, module: Any, kind: FunctionType, request: Request) -> Lowered:
    session.run(module, pipelines.pipeline(pipelines.OUTLINE), OURS)
    function = find_function(module, kind.symbol)
    steps = held_to(steps_of(session, function), all_known(session, module))
    if not any(launches_in(steps)):
        raise CompileError(
            f"@{kind.symbol} launches nothing: what its kernels do has no effect, so MLIR's "
            f"canonicalization has left none"
        )
    return _to_nvvm(session, module, kind, request, steps)


def _kernel(session: Session, module: Any, text: str, request: Request) -> Lowered:
    """A kernel that the caller launches."""
    kernel = find_kernel(module, request.function)
    kind = described(session, kernel, text, on_gpu=True)
    _require_supported(kind)
    kind = replace(kind, written=written(module, kernel, kind))
    launch, known = launch_of(kernel, kind), known_sizes(session, kernel)
    for each in [each.operation for each in module.body.operations]:
        if each.name != "gpu.module":
            each.erase()
    if not request.asserts:
        _remove_asserts(module)
    lowered = _to_nvvm(session, module, kind, request, (launch,))
    return replace(lowered, known=known)


def _to_nvvm(
    session: Session, module: Any, kind: FunctionType, request: Request, steps: Steps
) -> Lowered:
    """The function with these steps, and all kernels of the module."""
    if request.pipeline is None:
        lower_reductions(session, module)
        session.run(module, pipelines.pipeline(pipelines.TO_NVVM), OURS)
    else:
        session.run(module, request.pipeline)
    names = rename_kernels(module)
    for launch in launches_in(steps):
        if launch.kernel not in names:
            there = ", ".join(map(_path, names)) or "none"
            raise CompileError(f"there is no kernel {_path(launch.kernel)}; there are: {there}")
    kernels = tuple(session.translate_gpu(module).values())
    return Lowered(kind, "", kernels, named(steps, names))


def _path(kernel: tuple[str, str]) -> str:
    return "@" + "::@".join(kernel)


def _mark(session: Session, function: Any, kind: FunctionType) -> None:
    """Requests the C interface, and marks tensors that are values as read-only.

    Attributes of the dialect llvm on arguments are removed: no call checks them, and the C
    interface would apply them to the addresses of descriptors.  So are ferrule's own, which have
    been read.
    """
    ir = session.ir
    function.attributes[_C_INTERFACE] = ir.UnitAttr.get()
    given = attribute(function, "arg_attrs")
    attributes = []
    for position, each in enumerate(kind.arguments):
        said = [] if given is None else given[position]
        own = {item.name: item.attr for item in said if not item.name.startswith(_READ)}
        if isinstance(each, Buffer) and each.is_value:
            own["bufferization.writable"] = ir.BoolAttr.get(False)
        attributes.append(ir.DictAttr.get(own))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]


def _remove_asserts(module: Any) -> None:
    for each in [each for each in walk(module.operation) if each.name == "cf.assert"]:
        each.erase()


def _to_memrefs(session: Session, module: Any, kind: FunctionType) -> frozenset[str]:
    """Converts all tensors of a module to memrefs; returns the places of operations that have
    become loops already."""
    places = tm_tensor.to_memrefs(session, module, OURS)
    names = {each.name for each in walk(module.operation)}
    has_tensors = any(
        "tensor<" in str(value.type)
        for each in walk(module.operation)
        for value in (*each.results, *each.operands)
    )
    has_tosa = any(name.startswith("tosa.") for name in names)
    groups: list[tuple[str, ...]] = [pipelines.TOSA] if has_tosa else []
    groups += [pipelines.BUFFERIZE] if has_tensors else []
    if places:
        session.run(module, pipelines.pipeline(*groups), OURS)
        tm_tensor.to_loops(session, module, OURS)
        groups = []
    gives = any(isinstance(each, Buffer) for each in kind.results)
    if (has_tensors or gives) and "memref.dealloc" not in names:
        groups.append(pipelines.DEALLOCATE)
    session.run(module, pipelines.pipeline(*groups), OURS)
    return places
