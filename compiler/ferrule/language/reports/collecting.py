"""What a page shows of one compilation: its listings, stages, checks, remarks and sizes.

The program is compiled once more, with lines of the source, and each stage is timed; the code is
that of the function, which lines never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from ferrule.compiler.artefacts import Body
from ferrule.compiler.options import Options
from ferrule.language.checks.places import Places
from ferrule.language.ir.ops import Op, Program
from ferrule.language.ir.printer import program_lines
from ferrule.language.reports.listings import (
    Line,
    Place,
    assembly_lines,
    llvm_lines,
    place_of,
    plain,
    whole_path,
)
from ferrule.runtime.artefacts import KernelInfo, Remarks
from ferrule.specs import Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.html.checks import Checked, checks_of

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Subject:
    """A compiled function: what its page is made of.

    `lowered`: the seconds that the source took to become kernel IR.  `remarks` asks for remarks.
    """

    program: Program
    signature: Signature
    options: Options
    origins: Mapping[Op, object]
    lowered: float
    lower: Callable[[], Body]
    """The body, with the lines of the source in it."""
    remarks: Callable[[], Remarks] | None
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Pane:
    """A listing: a title, what it is, and its lines.  `is_open`: it is shown at once."""

    title: str
    about: str
    lines: tuple[Line, ...]
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the compilation and its seconds."""

    name: str
    about: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Size:
    """A count of something, with its unit."""

    what: str
    value: str


@dataclass(frozen=True, slots=True)
class Compilation:
    """All that a page shows of a compilation."""

    name: str
    signature: str
    doc: str | None
    target: str
    panes: tuple[Pane, ...]
    stages: tuple[Stage, ...]
    checks: tuple[Checked, ...]
    remarks: Remarks
    sizes: tuple[Size, ...]
    kernels: Mapping[str, Mapping[str, KernelInfo]]
    """The resources of kernels by architecture and name, where there is an assembler."""


def collected(subject: Subject) -> Compilation:
    """Compiles a function once more, and gathers what there is to see."""
    from ferrule.compiler.origin import host_module

    places = Places.of(subject.origins)
    stages = [Stage("kernel IR", "Python's functions, lowered and verified", subject.lowered)]
    body, seconds = _timed(subject.lower)
    device = " and PTX" if subject.options.gpu_arch is not None else ""
    stages.append(Stage(f"LLVM IR{device}", f"kernels and launches as LLVM IR{device}", seconds))
    module, seconds = _timed(
        partial(host_module, subject.signature, body, subject.options.opt_level)
    )
    stages.append(Stage("wrapper", "the checks of a call, as LLVM IR", seconds))
    code = _machine_code(body, subject.options)
    stages += code.stages
    ir = tuple(_ir_lines(subject.program, places))
    shown = [
        Pane("Kernel IR", "the program as ferrule understood it", ir),
        *_device_panes(body),
        *code.panes,
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
        tuple(stages),
        tuple(checks_of(subject.signature)),
        Remarks(()) if subject.remarks is None else subject.remarks(),
        tuple(_sizes(subject, shown)),
        _kernels(body),
    )


def _timed(make: Callable[[], _Result]) -> tuple[_Result, float]:
    began = perf_counter()
    made = make()
    return made, perf_counter() - began


@dataclass(frozen=True, slots=True)
class _MachineCode:
    panes: tuple[Pane, ...]
    stages: tuple[Stage, ...]


def _machine_code(body: Body, options: Options) -> _MachineCode:
    """The code for the CPU; of a function for a GPU it only launches, and is folded."""
    from ferrule.compiler.assemble import listing
    from ferrule.compiler.targets import host

    on_cpu = body.device_code is None
    found = listing(body.part, options.opt_level, host())
    of = "kernels and launches" if on_cpu else "the launches, for the CPU"
    panes = (
        Pane("LLVM IR", f"{of}, optimised", tuple(llvm_lines(found.llvm)), on_cpu),
        Pane("Assembly", f"{of}, for {host().cpu}", tuple(assembly_lines(found.asm)), on_cpu),
    )
    words = {
        "read": ("LLVM reads", "LLVM parses and verifies the text"),
        "optimise": ("LLVM optimises", "LLVM's pipeline"),
        "emit": ("LLVM emits", "LLVM's code generator"),
    }
    stages = tuple(Stage(*words[name], seconds) for name, seconds in found.seconds.items())
    return _MachineCode(panes, stages)


def _device_panes(body: Body) -> Iterator[Pane]:
    """The PTX of the kernels; the first architecture is open."""
    texts = {} if body.device_code is None else body.device_code.ptx
    for number, (arch, text) in enumerate(texts.items()):
        yield Pane(f"PTX {arch}", "the kernels", tuple(assembly_lines(text)), number == 0)


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


def _kernels(body: Body) -> Mapping[str, Mapping[str, KernelInfo]]:
    """The resources of kernels; nothing without an assembler for a GPU."""
    from ferrule.compiler.cuda.assembly import kernel_info
    from ferrule.compiler.errors import CompileError

    if body.device_code is None:
        return {}
    try:
        return kernel_info(body.device_code)
    except CompileError:
        return {}


def page_of(subjects: Iterable[Subject]) -> str:
    """The page about a compiled function of one body or several, in HTML."""
    from ferrule.language.reports.page import page

    return page(list(map(collected, subjects)))
