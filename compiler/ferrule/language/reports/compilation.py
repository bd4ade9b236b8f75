"""What a page shows of a compilation, as data."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.compiler.artefacts import Stage
from ferrule.language.reports.listings import Line
from ferrule.runtime.artefacts import KernelInfo, Remarks
from ferrule.specs.deferred import dataclass
from ferrule.specs.html.checks import Checked


@dataclass(frozen=True, slots=True)
class Pane:
    """A listing: a title, what it is, and its lines.  `is_open`: it is shown at once."""

    title: str
    about: str
    lines: tuple[Line, ...]
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """Machine instructions of the wrapper for a check, or for a part of one."""

    what: str
    instructions: int


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
    costs: tuple[Cost, ...]
    """Empty if every call goes to the checker."""
    remarks: Remarks
    sizes: tuple[Size, ...]
    kernels: Mapping[str, Mapping[str, KernelInfo]]
    """The resources of kernels by architecture and name, where there is an assembler."""
