"""From the two kept LLVM modules to an object: optimise, link, make internal, emit.

The body gets LLVM's pipeline, the wrapper none: its code is straight as it is generated.  The
support code that the two call was compiled before, once for a triple and the baseline CPU.
Nothing but `__tvm_ffi_*` stays visible, so that any number of objects link together.  Every
compilation has an LLVM context of its own.  The same input gives the same bytes.
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
from ferrule.compiler.artefacts import Embedded, HostModule, Part
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode.promises import require_features
from ferrule.compiler.hostcode.trial import require_portable
from ferrule.compiler.natives import with_instructions
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
from ferrule.runtime.llvm.linking import link_in
from ferrule.runtime.llvm.passes import passes, run_pipeline

_Form: TypeAlias = "Callable[[tuple[Need, ...], str], str]"

_NAMELESS: Final = 'source_filename = ""\n'
"""Else objects say that they come from a file with the name that LLVM has for texts."""

_VISIBLE: Final = (SYMBOL_PREFIX, "llvm.")
"""What symbols begin with that keep their linkage: tvm-ffi's, and what means something to LLVM."""


_HUGE: Final = 6000
"""The most instructions of a block whose loop is vectorised: with so many it takes about a second.
That is two thousand lines of a kernel without a branch."""

_HIDDEN: Final = (llvm.Linkage.internal, llvm.Linkage.private)


def assemble(module: HostModule, name: str, cpu: str, triple: str) -> ObjectCode:
    """The object of a module for a CPU of this machine; `name` is the name that its wrapper
    exports.  Raises CompileError where code of others needs what the CPU lacks."""
    require_features(sorted(module.body.part.features), name)
    module, machine = _for_target(module, targets.target(cpu, triple))
    with _linked(module, triple, machine, support_data) as linked:
        data = bytes(machine.emit_object(linked))
    return ObjectCode(name=name, data=data, triple=triple, cpu=cpu)


def assembly_text(module: HostModule, cpu: str, triple: str) -> str:
    """What `assemble` puts into the object, as assembly."""
    module, machine = _for_target(module, targets.target(cpu, triple))
    with _linked(module, triple, machine, support_assembly) as linked:
        return str(machine.emit_assembly(linked))


def export(
    module: HostModule, target: HostTarget, description: str, form: ExportForm, more: str = ""
) -> bytes:
    """The bytes of a file: what `assemble` makes, with the functions that describe it.

    `description` is the LLVM text of these, `more` what stands behind that of the wrapper.
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
    """The LLVM IR of all, nothing of it assembly: the support code too, as far as it is reached.

    What is internal has names that begin with that of the function, so that wrappers of several
    can be put into one module.
    """
    # Whoever gets it optimises it: nothing is made a vector before.
    module, machine = _for_target(replace(module, opt_level=min(module.opt_level, 1)), target)
    with _linked(module, target.triple, machine, None, description) as linked:
        with passes(linked, machine) as manager:
            manager.add_global_dead_code_eliminate_pass()
        for symbol in (*linked.functions, *linked.global_variables):
            if symbol.linkage in _HIDDEN:
                symbol.name = f"{module.signature.name}.{symbol.name}"
        return str(linked)


def _for_target(module: HostModule, target: HostTarget) -> tuple[HostModule, Any]:
    """The module with the instructions that the CPU has, and LLVM's machine."""
    part = _with_instructions(module.body.part, target)
    module = replace(module, body=replace(module.body, text=part.text, parts=part.parts))
    return module, targets.machine(target, min(module.opt_level, 2))


def _with_instructions(part: Part, target: HostTarget) -> Part:
    chosen = _for_machine(part.parts, target.triple)
    parts = tuple(_with_instructions(inner, target) for inner in chosen)
    return replace(part, text=with_instructions(part.text, target), parts=parts)


def _for_machine(parts: Sequence[Part], triple: str) -> list[Part]:
    """Those of some parts that are for the processor of a triple.

    Raises CompileError where what they are for is there for others alone.
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
    """The module of all; `form` says as what the support code goes there, None as LLVM IR.

    Modules are closed here: left to the garbage collector, one that an error kept alive could go
    after its context, which ends the process.
    """
    context = llvm.create_context()
    with ExitStack() as opened:

        def parsed(text: str) -> Any:
            return opened.enter_context(_parse(text, triple, machine, context))

        _check_foreign(module.body.part, triple)
        body = _whole(module.body.part, parsed)
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
        _optimise(body, machine, module.opt_level, may_be_huge=_lines(module.body.part) > _HUGE)
        link_in(wrapper, body)
        if description:
            link_in(wrapper, parsed(description))
        yield _internal(wrapper)


def _whole(part: Part, parsed: Callable[[str], Any]) -> Any:
    """The module of some code, with what it calls in it."""
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
    """The names of what a module shows to others."""
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
    """LLVM directives with the machine code that others made, each once."""
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
    """Raises CompileError for LLVM code of others that is not for this platform."""
    if part.foreign is not None:
        require_portable(part.foreign, part.text, triple)
    for inner in part.parts:
        _check_foreign(inner, triple)


def _all_embedded(part: Part) -> Iterator[Embedded]:
    yield from part.embedded
    for inner in part.parts:
        yield from _all_embedded(inner)


def _internal(module: Any) -> Any:
    """The module, verified, with tvm-ffi's symbols visible alone.

    No exception goes through its functions, so that they need no tables for that.
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
    """The support code that a module needs: what its wrapper and its body call."""
    called = {function.name for function in body.functions if function.is_declaration}
    handlers = _handlers(module) if called.isdisjoint(CHECKS.entries) else None
    by_wrapper = (*VALUES.entries, *OBJECTS.entries, *REFUSALS.entries)
    called.update(name for name in by_wrapper if f"@{name}(" in module.wrapper)
    known = (CUDA, ALLOCATION, VALUES, CALLING, OBJECTS, THREADS, REFUSALS)
    others = (Need(each, frozenset(called.intersection(each.entries))) for each in known)
    return (Need(CHECKS, handlers), *(need for need in others if need.symbols))


def _handlers(module: HostModule) -> frozenset[str] | None:
    """What the check programs and messages of a wrapper need; None where that is not known."""
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
def _parse(text: str, triple: str, machine: Any, context: Any) -> Iterator[Any]:
    with llvm.parse_assembly(text, context) as module:
        module.triple = triple
        module.data_layout = str(machine.target_data)
        module.verify()
        yield module


def _optimise(module: Any, machine: Any, level: int, *, may_be_huge: bool = False) -> None:
    # LLVM's third level adds a quarter to the time and nothing to the speed of such code; nor do
    # copies of loops that run for as long as nobody knows.  Short ones are told to be unrolled.
    options = llvm.create_pipeline_tuning_options(speed_level=min(level, 2))
    options.slp_vectorization = level > 1
    options.loop_vectorization = level > 1 and not (may_be_huge and _is_huge(module))
    options.loop_unrolling = False
    run_pipeline(module, machine, options)


def _lines(part: Part) -> int:
    """How many lines the texts of some code have."""
    return part.text.count("\n") + sum(map(_lines, part.parts))


def _is_huge(module: Any) -> bool:
    """Whether a block has more instructions than LLVM's loop vectoriser should see.

    Its time grows with their square; all other passes are linear.
    """
    blocks = (block for function in module.functions for block in function.blocks)
    return any(sum(1 for _ in islice(b.instructions, _HUGE + 1)) > _HUGE for b in blocks)
