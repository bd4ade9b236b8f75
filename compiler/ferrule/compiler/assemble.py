"""Makes an object from the LLVM modules of wrapper and body: optimise, link, internalise, emit.

LLVM's pipeline optimises the body, but not the wrapper, whose generated code needs no optimisation.
Both call support code, which is compiled once for each triple, for the baseline CPU.  Only
`__tvm_ffi_*` symbols stay visible, so that any number of objects link together.  Every compilation
has its own LLVM context.  The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
from typing_extensions import assert_never

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Embedded, HostModule, Part, stage
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.support.library import (
    ALLOCATION,
    CALLING,
    CHECKS,
    CUDA,
    OBJECTS,
    REFUSALS,
    THREADS,
    VALUES,
    Need,
    as_module_assembly,
    support_assembly,
    support_data,
    support_text,
)
from ferrule.compiler.targets import HostTarget
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ExportForm, ObjectCode
from ferrule.runtime.llvm.passes import link_in, passes, run_pipeline
from ferrule.specs.deferred import dataclass

_Form: TypeAlias = "Callable[[tuple[Need, ...], str], str]"

_NAMELESS: Final = 'source_filename = ""\n'
"""Without this line, an object names LLVM's default file name for texts as its source."""

_VISIBLE: Final = (SYMBOL_PREFIX, "llvm.")
"""Prefixes of symbols that keep their linkage: symbols of tvm-ffi, and names special to LLVM."""


_HUGE: Final = 6000
"""The limit of instructions in a block whose loop is vectorised; at the limit it takes a second.
So many instructions are about two thousand lines of a kernel without a branch."""

_HIDDEN: Final = (llvm.Linkage.internal, llvm.Linkage.private)


def assemble(module: HostModule, name: str, cpu: str, triple: str) -> ObjectCode:
    """The object of a module for a CPU of this machine; its wrapper exports `name`.

    Raises CompileError if foreign code needs CPU features that the CPU lacks.
    """
    if features := sorted(module.body.part.features):
        from ferrule.compiler.hostcode.promises import require_features

        require_features(features, name)
    module, machine = _for_target(module, targets.target(cpu, triple))
    with _linked(module, triple, machine, support_data) as linked:
        data = bytes(machine.emit_object(linked))
    return ObjectCode(name=name, data=data, triple=triple, cpu=cpu)


def assembly_text(module: HostModule, cpu: str, triple: str) -> str:
    """The content of the object that `assemble` makes, as assembly."""
    module, machine = _for_target(module, targets.target(cpu, triple))
    with _linked(module, triple, machine, support_assembly) as linked:
        return str(machine.emit_assembly(linked))


def export(
    module: HostModule, target: HostTarget, description: str, form: ExportForm, more: str = ""
) -> bytes:
    """The bytes of an exported file: the function, and the functions that describe it.

    `description` is the LLVM text of the latter; `more` is appended to the wrapper's text.
    """
    module, machine = _for_target(module, target)
    carried = support_assembly if form == ".s" else support_data
    module = replace(module, wrapper=module.wrapper + more)
    with _linked(module, target.triple, machine, carried, description) as linked:
        match form:
            case ".o":
                return bytes(machine.emit_object(linked))
            case ".bc":
                return bytes(linked.as_bitcode())
            case ".ll":
                return str(linked).encode()
            case ".s":
                return str(machine.emit_assembly(linked)).encode()
            case _:
                assert_never(form)


def wrapper_text(module: HostModule, target: HostTarget, description: str) -> str:
    """The whole function as LLVM IR, with the support code that it reaches, and without assembly.

    Internal names begin with the name of the function, so that a module can contain the wrappers of
    several functions.
    """
    # The receiver of the text optimises it, so loops are not vectorised here.
    module, machine = _for_target(replace(module, opt_level=min(module.opt_level, 1)), target)
    with _linked(module, target.triple, machine, None, description) as linked:
        with passes(linked, machine) as manager:
            manager.add_global_dead_code_eliminate_pass()
        for symbol in (*linked.functions, *linked.global_variables):
            if symbol.linkage in _HIDDEN:
                symbol.name = f"{module.signature.name}.{symbol.name}"
        return str(linked)


def optimised_alone(part: Part, opt_level: int, target: HostTarget) -> bool:
    """Optimises the code of a body as `assemble` does, for what LLVM says meanwhile; whether loops
    become vectors."""
    machine = targets.machine(target, min(opt_level, 2))
    part = _with_instructions(part, target)
    with _parsing(target.triple, machine) as parsed:
        may_be_huge = _lines(part) > _HUGE
        return _optimise(_whole(part, parsed), machine, opt_level, may_be_huge=may_be_huge)


@dataclass(frozen=True, slots=True)
class Listing:
    """The code of a body alone, for readers: LLVM IR after optimisation, and assembly."""

    llvm: str
    asm: str


def listing(part: Part, opt_level: int, target: HostTarget) -> Listing:
    """The code of a body as `assemble` makes it."""
    part, machine = _with_instructions(part, target), targets.machine(target, min(opt_level, 2))
    with _parsing(target.triple, machine) as parsed:
        with stage("read", "LLVM parses and verifies the text"):
            body = _whole(part, parsed)
        with stage("optimise", "LLVM's pipeline"):
            _optimise(body, machine, opt_level, may_be_huge=_lines(part) > _HUGE)
        text = str(body)
        with stage("emit", "LLVM's code generator"):
            asm = str(machine.emit_assembly(body))
    return Listing(text, asm)


def wrapper_assembly(text: str, opt_level: int, target: HostTarget) -> str:
    """The assembly of a wrapper alone, which LLVM does not optimise, as `assemble` makes it."""
    machine = targets.machine(target, min(opt_level, 2))
    with _parsing(target.triple, machine) as parsed:
        return str(machine.emit_assembly(parsed(_NAMELESS + text)))


def _for_target(module: HostModule, target: HostTarget) -> tuple[HostModule, Any]:
    """The module with the parts for this target, and LLVM's target machine."""
    if module.body.part.needs_fma and not has_fma(target):
        raise _no_fma(module.signature.name, target)
    part = _with_instructions(module.body.part, target)
    module = replace(module, body=replace(module.body, text=part.text, parts=part.parts))
    return module, targets.machine(target, min(module.opt_level, 2))


def _with_instructions(part: Part, target: HostTarget) -> Part:
    chosen = _for_machine(part.parts, target.triple)
    parts = tuple(_with_instructions(inner, target) for inner in chosen)
    return replace(part, text=with_instructions(part.text, target), parts=parts)


def _for_machine(parts: Sequence[Part], triple: str) -> list[Part]:
    """The parts for the processor of a triple.

    Raises CompileError for a symbol that has parts only for other processors.
    """
    machine = targets.architecture(triple)
    chosen = [part for part in parts if part.machine in ("", machine)]
    missing = {part.symbol for part in parts}.difference(part.symbol for part in chosen)
    if missing:
        known = dict.fromkeys(part.machine for part in parts if part.symbol in missing)
        raise CompileError(
            Diagnostic(
                f"this function calls a C function with a struct by value, which ferrule knows how "
                f"to do on {' and '.join(known)}, but not on {machine}",
                hint="let the C function take the address of the struct, Reference(…)",
            )
        )
    return chosen


@contextmanager
def _linked(
    module: HostModule,
    triple: str,
    machine: Any,
    form: _Form | None,
    description: str = "",
) -> Iterator[Any]:
    """The linked module; `form` is the form of the support code in it, None for LLVM IR."""
    with _parsing(triple, machine) as parsed:
        _check_foreign(module.body.part, triple)
        body = _whole(module.body.part, parsed)
        # From the body's declarations alone: the support code is a part of the wrapper's text.
        needs = _support_of(module, body)
        embedded = _embedded(module.body.part, triple)
        if form is not None and targets.has_assembler(triple):
            wrapper = parsed(_NAMELESS + module.wrapper + form(needs, triple) + embedded)
        else:
            wrapper = parsed(_NAMELESS + module.wrapper)
            for need in needs:
                link_in(wrapper, parsed(support_text(need.support)))
            if embedded:
                link_in(wrapper, parsed(embedded))
        # Before they are joined: a wrapper is straight code, and gains nothing from the pipeline.
        _optimise(body, machine, module.opt_level, may_be_huge=_lines(module.body.part) > _HUGE)
        link_in(wrapper, body)
        if description:
            link_in(wrapper, parsed(description))
        yield _internal(wrapper)


def _whole(part: Part, parsed: Callable[[str], Any]) -> Any:
    """The module of a part, with the parts that it needs linked into it."""
    module = parsed(part.text)
    for inner in part.parts:
        other = _whole(inner, parsed)
        if inner.entry:
            other.get_function(inner.entry).name = inner.symbol
        names = [inner.symbol] if inner.entry else _defined(other)
        link_in(module, other)
        if part.symbol:
            for name in names:
                _symbol(module, name).linkage = llvm.Linkage.internal
    return module


def _defined(module: Any) -> list[str]:
    """The names of the symbols that a module exports."""
    return [
        symbol.name
        for symbol in (*module.functions, *module.global_variables)
        if not (symbol.is_declaration or symbol.linkage in _HIDDEN or _is_known(symbol.name))
    ]


def _is_known(name: str) -> bool:
    return name.startswith(_VISIBLE)


def _symbol(module: Any, name: str) -> Any:
    try:
        return module.get_function(name)
    except NameError:
        return module.get_global_variable(name)


def _embedded(part: Part, triple: str) -> str:
    """LLVM directives with all foreign machine code, each piece once."""
    found = {each.digest: each for each in _all_embedded(part)}
    for each in found.values():
        if each.machine != targets.architecture(triple):
            why = f"so it cannot be exported for {triple}"
        elif not targets.has_assembler(triple):
            why = f"and llvmlite has no assembler for {each.machine} here"
        else:
            continue
        raise CompileError(
            Diagnostic(
                f"an object for {each.machine} is a part of this function, {why}",
                hint="build it on such a machine, with an object that was compiled for it",
            )
        )
    return "".join(as_module_assembly(each.assembly) for each in found.values())


def _check_foreign(part: Part, triple: str) -> None:
    """Raises CompileError for foreign LLVM code that is not for this platform."""
    if part.foreign is not None:
        from ferrule.compiler.hostcode.trial import require_portable

        require_portable(part.foreign, part.text, triple)
    for inner in part.parts:
        _check_foreign(inner, triple)


def _all_embedded(part: Part) -> Iterator[Embedded]:
    yield from part.embedded
    for inner in part.parts:
        yield from _all_embedded(inner)


def _internal(module: Any) -> Any:
    """Verify the module, and make all symbols internal except tvm-ffi's.

    No exception passes through its functions, so they are nounwind and need no unwind tables.
    """
    for symbol in (*module.functions, *module.global_variables):
        if symbol.is_declaration:
            continue
        if symbol.is_function:
            symbol.add_function_attribute("nounwind")
        is_local = symbol.linkage in _HIDDEN
        name = symbol.name
        if not (is_local or name.startswith(_VISIBLE)):
            symbol.linkage = llvm.Linkage.internal
    module.verify()
    return module


def _support_of(module: HostModule, body: Any) -> tuple[Need, ...]:
    """The support code that the wrapper and the body of a module call."""
    called = {function.name for function in body.functions if function.is_declaration}
    handlers = _handlers(module) if called.isdisjoint(CHECKS.entries) else None
    by_wrapper = (*VALUES.entries, *OBJECTS.entries, *REFUSALS.entries)
    called.update(name for name in by_wrapper if f"@{name}(" in module.wrapper)
    known = (CUDA, ALLOCATION, VALUES, CALLING, OBJECTS, THREADS, REFUSALS)
    others = (Need(each, frozenset(called.intersection(each.entries))) for each in known)
    return (Need(CHECKS, handlers), *(need for need in others if need.symbols))


def _handlers(module: HostModule) -> frozenset[str] | None:
    """The handlers that a wrapper's check programs and messages need; None if that is unknown."""
    if not module.candidates:
        return module.needed
    found: frozenset[str] = frozenset()
    for candidate in module.candidates:
        more = _handlers(candidate)
        if more is None:
            return None
        found |= more
    return found


@contextmanager
def _parsing(triple: str, machine: Any) -> Iterator[Callable[[str], Any]]:
    """A function that parses texts into modules of one context.

    Modules are closed explicitly.  If the garbage collector did it, a module that an error keeps
    alive could be freed after its context, which would crash the process.
    """
    context = llvm.create_context()
    with ExitStack() as opened:
        yield lambda text: opened.enter_context(_parse(text, triple, machine, context))


@contextmanager
def _parse(text: str, triple: str, machine: Any, context: Any) -> Iterator[Any]:
    with llvm.parse_assembly(text, context) as module:
        module.triple = triple
        module.data_layout = str(machine.target_data)
        module.verify()
        yield module


def _optimise(module: Any, machine: Any, level: int, *, may_be_huge: bool = False) -> bool:
    """Runs LLVM's pipeline; whether loops become vectors."""
    # LLVM's level 3 takes a quarter more time and does not make such code faster.  Nor does it help
    # to unroll loops with an unknown trip count; short loops have metadata that unrolls them.
    options = llvm.create_pipeline_tuning_options(speed_level=min(level, 2))
    options.slp_vectorization = level > 1
    options.loop_vectorization = level > 1 and not (may_be_huge and _is_huge(module))
    options.loop_unrolling = False
    run_pipeline(module, machine, options)
    return bool(options.loop_vectorization)


def _lines(part: Part) -> int:
    """The number of lines in the texts of a part and its parts."""
    return part.text.count("\n") + sum(map(_lines, part.parts))


def _is_huge(module: Any) -> bool:
    """Whether a block has too many instructions for LLVM's loop vectoriser.

    The vectoriser's time is quadratic in their number; all other passes are linear.
    """
    blocks = (block for function in module.functions for block in function.blocks)
    return any(sum(1 for _ in islice(b.instructions, _HUGE + 1)) > _HUGE for b in blocks)


NATIVES: Final = {
    "ferrule_fma_f32": "llvm.fma.f32",
    "ferrule_fma_f64": "llvm.fma.f64",
    "ferrule_rest_f32": "llvm.fma.f32",
}
"""The functions by name, and the equivalent LLVM intrinsic of each."""

_TYPES: Final = {"f32": "float", "f64": "double"}
_CHAINS: Final = '%"ferrule_chain" = type '
"""What a body has if some of its integers can be in registers of vectors, see `host.chains`."""

# The levels of the psABI that have FMA: their names stand for features that no list repeats.
_WITH_FMA: Final = ("x86-64-v3", "x86-64-v4")


def with_instructions(text: str, target: HostTarget) -> str:
    """The text of a body for this target."""
    if _CHAINS in text and _has_sse41(target):
        from ferrule.compiler.host.chains import in_vectors

        text = in_vectors(text)
    if not has_fma(target):
        return text
    for name, intrinsic in NATIVES.items():
        kind = _TYPES[name[-3:]]
        call = f'call {kind} @"{name}"('
        if call in text:
            text = text.replace(call, f'call {kind} @"{intrinsic}"(')
            declaration = f'declare {kind} @"{intrinsic}"({kind}, {kind}, {kind})'
            text += "" if declaration in text else f"\n{declaration}\n"
    return text


def _has_sse41(target: HostTarget) -> bool:
    """Whether every CPU of this target has the smaller of two integers in vectors."""
    known = target.cpu in (*_WITH_FMA, "x86-64-v2") or "+sse4.1" in target.features.split(",")
    return known and target.triple.startswith("x86_64")


def _no_fma(name: str, target: HostTarget) -> CompileError:
    return CompileError(
        Diagnostic(
            f"{name} was compiled with fmad, which makes one operation of a multiplication and an "
            f"addition, and {target.cpu} has no instruction for that",
            expected="a CPU with FMA",
            hint="add --host-cpu x86-64-v3 or native, or compile without --fmad",
        )
    )


def has_fma(target: HostTarget) -> bool:
    """Whether every CPU of this target has a fused multiply-add."""
    if target.triple.startswith(("aarch64", "arm64")):
        return True
    return target.cpu in _WITH_FMA or "+fma" in target.features.split(",")
