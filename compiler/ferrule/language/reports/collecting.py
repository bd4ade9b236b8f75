"""What a page shows of one compilation: its listings, stages, checks, remarks and sizes.

The program is compiled once more, with lines of the source, and each stage is timed; the code is
that of the function, which lines never change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.compiler.artefacts import Body, Kept, Stage, recorded, stage
from ferrule.compiler.options import Options
from ferrule.language.checks.places import Places
from ferrule.language.ir.ops import Op, Program
from ferrule.language.ir.printer import program_lines
from ferrule.language.reports.compilation import Compilation, Cost, Pane, Size
from ferrule.language.reports.listings import (
    Line,
    Place,
    assembly_lines,
    llvm_lines,
    place_of,
    plain,
    sass_lines,
    whole_path,
)
from ferrule.runtime.artefacts import KernelInfo, Remarks
from ferrule.specs import Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.html.checks import checks_of

if TYPE_CHECKING:
    from ferrule.compiler.cuda.assembly import Assembled


@dataclass(frozen=True, slots=True)
class Subject:
    """A compiled function: what its page is made of.

    `lowered`: the stages in which the source became kernel IR.  `remarks` asks for remarks.
    """

    program: Program
    signature: Signature
    options: Options
    origins: Mapping[Op, object]
    lowered: Sequence[Stage]
    lower: Callable[[], Body]
    """The body, with the lines of the source in it."""
    remarks: Callable[[], Remarks] | None
    doc: str | None = None


def collected(subject: Subject) -> Compilation:
    """Compiles a function once more, and gathers what there is to see."""
    from ferrule.compiler.origin import host_module

    places = Places.of(subject.origins)
    device = " and PTX" if subject.options.gpu_arch is not None else ""
    with recorded() as stages:
        with stage(f"LLVM IR{device}", f"kernels and launches as LLVM IR{device}"):
            body = subject.lower()
        with stage("wrapper", "the checks of a call, as LLVM IR"):
            module = host_module(subject.signature, body, subject.options.opt_level)
        with stage("machine code", "for the CPU"):
            panes = _machine_code(body, subject.options)
        on_device = _on_device(body)
    ir = tuple(_ir_lines(subject.program, places))
    shown = [
        Pane("Kernel IR", "the program as ferrule understood it", ir),
        *on_device.panes,
        *panes,
        Pane(
            "Wrapper (LLVM IR)",
            "what checks the arguments of a call, before LLVM optimises it",
            tuple(plain(module.wrapper)),
            is_open=False,
        ),
    ]
    lines = _source(shown, places, stripped=subject.options.strip_paths)
    source = Pane("Source", "the functions that were compiled", tuple(lines))
    return Compilation(
        subject.signature.name,
        str(subject.signature),
        subject.doc,
        _target(subject.options),
        (source, *shown),
        (*subject.lowered, *stages),
        tuple(checks_of(subject.signature)),
        tuple(_costs(subject, body)),
        Remarks(()) if subject.remarks is None else subject.remarks(),
        tuple(_sizes(subject, shown)),
        on_device.kernels,
    )


def _machine_code(body: Body, options: Options) -> tuple[Pane, ...]:
    """The code for the CPU; of a function for a GPU it only launches, and is folded."""
    from ferrule.compiler.assemble import listing
    from ferrule.compiler.targets import host

    on_cpu = body.device_code is None
    found = listing(body.part, options.opt_level, host())
    of = "kernels and launches" if on_cpu else "the launches, for the CPU"
    return (
        Pane("LLVM IR", f"{of}, optimised", tuple(llvm_lines(found.llvm)), on_cpu),
        Pane("Assembly", f"{of}, for {host().cpu}", tuple(assembly_lines(found.asm)), on_cpu),
    )


@dataclass(frozen=True, slots=True)
class _OnDevice:
    """Listings of the kernels for a GPU, and what they need."""

    panes: tuple[Pane, ...] = ()
    kernels: Mapping[str, Mapping[str, KernelInfo]] = field(default_factory=dict)


def _on_device(body: Body) -> _OnDevice:
    """PTX and SASS of the kernels; those of the first architecture are open.  Without an assembler
    there is no SASS, and nobody knows what the kernels need."""
    panes: list[Pane] = []
    kernels: dict[str, dict[str, KernelInfo]] = {}
    code = body.device_code
    for image in () if code is None else code.images:
        is_first = not panes
        panes.append(
            Pane(f"PTX {image.arch}", "the kernels", tuple(assembly_lines(image.ptx)), is_first)
        )
        for part in image.modules:
            made = _assembled(part, image.arch, code.ptxas_options if code else ())
            if made is not None:
                kernels.setdefault(image.arch, {}).update(made.kernels)
                panes += _sass(made, image.arch, is_first)
    return _OnDevice(tuple(panes), kernels)


def _assembled(ptx: str, arch: str, words: Sequence[str]) -> Assembled | None:
    """The kernels with lines, which change none of their instructions."""
    from ferrule.compiler.cuda.assembly import assemble
    from ferrule.compiler.errors import CompileError

    try:
        with stage(f"ptxas {arch}", "NVIDIA's assembler, a process of its own"):
            return assemble(ptx, arch, (*words, "-lineinfo"))
    except CompileError:
        return None


def _sass(made: Assembled, arch: str, is_open: bool) -> Iterator[Pane]:
    from ferrule.compiler.cuda.disassembly import with_lines
    from ferrule.runtime.errors import StageError

    try:
        text = with_lines(made.cubin)
    except StageError:
        return
    if text is not None:
        yield Pane(f"SASS {arch}", "what the GPU executes", tuple(sass_lines(text)), is_open)


def _costs(subject: Subject, body: Body) -> Iterator[Cost]:
    """The instructions of each check in the wrapper, in the order of the checks; the rest last."""
    from ferrule.compiler.assemble import wrapper_assembly
    from ferrule.compiler.origin import parts_of
    from ferrule.compiler.targets import host
    from ferrule.compiler.wrapper.costs import traced

    found = traced(parts_of(subject.signature, body))
    if found is None:
        return
    text = wrapper_assembly(found.text, subject.options.opt_level, host())
    counts = Counter(
        "" if line.place is None else found.topics.get(line.place.line, "")
        for line in assembly_lines(text)
        if _is_instruction(line)
    )
    for topic in found.topics.values():
        yield Cost(topic, counts[topic])
    yield Cost("the call, its stack, and the way to the checker", counts[""])


def _ir_lines(program: Program, places: Places) -> Iterator[Line]:
    for text, op in program_lines(program):
        yield Line(text, None if op is None else place_of(places.at(op)))


def _source(panes: Iterable[Pane], places: Places, *, stripped: bool) -> Iterator[Line]:
    """The functions that any listing has lines of, from the first line of each to its last.

    `stripped`: folders must not appear.
    """
    named = {line.place for pane in panes for line in pane.lines if line.place is not None}
    last = Place("", 0)
    for source in sorted(places.sources(), key=lambda each: (each.file, each.first_line)):
        end = source.node.end_lineno or source.first_line
        numbers = range(source.first_line, end + 1)
        file = whole_path(source.file)
        whole = [Place(file, number) for number in numbers]
        if named.isdisjoint(whole):
            continue
        if file != last.file:
            yield Line(f"# {Path(file).name if stripped else file}")
            last = Place(file, 0)
        elif end > last.line:
            yield Line("")
        for place in whole[max(0, last.line + 1 - source.first_line) :]:
            text = source.lines[place.line - source.first_line]
            yield Line(text, place if place in named else None, place.line)
        last = Place(file, max(end, last.line))


def _target(options: Options) -> str:
    from ferrule.compiler.targets import host

    if options.gpu_arch is not None:
        return f"cuda ({options.gpu_arch}), and {host().cpu}"
    return f"cpu ({host().cpu}), optimisation level {options.opt_level}"


def _sizes(subject: Subject, panes: Iterable[Pane]) -> Iterator[Size]:
    for pane in panes:
        if pane.title == "Kernel IR":
            count = sum(line.place is not None for line in pane.lines)
            yield Size("Kernel IR: operations", f"{count:,}")
        elif pane.title != "LLVM IR" and not pane.title.startswith("Wrapper"):
            count = sum(map(_is_instruction, pane.lines))
            yield Size(f"{pane.title}: instructions", f"{count:,}")


def _is_instruction(line: Line) -> bool:
    text = line.text
    return text[:1].isspace() and not text.lstrip().startswith((".", "//", "#", "{", "}"))


def page_of(subjects: Iterable[Subject], kept: Kept) -> str:
    """The page about a compiled function of one body or several, in HTML; `kept`: where it is
    from."""
    from ferrule.language.reports.page import page

    return page(list(map(collected, subjects)), kept)
