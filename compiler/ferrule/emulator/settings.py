"""What a user says of an emulated GPU: architecture, number, checks, schedule; each is checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ferrule.compiler.cuda.archs import check_arch
from ferrule.compiler.errors import CompileError
from ferrule.specs.deferred import dataclass

CHECKS: Final = ("memory", "sync")
"""What is checked by default."""

LEAK: Final = "leak"
"""Whether all memory is given back at the end: checked only where it is named, since what a
program still holds then is its own affair."""

RACE: Final = "race"
"""Whether threads race: checked only where it is named, since it takes time and memory."""

INIT: Final = "init"
"""Whether memory is read that nobody has written: checked only where it is named."""

APPROX: Final = "approx"
"""Whether approximate instructions are moved inside of their documented errors: only where it is
named, also beside `all`, since results then differ from those without it."""

_NAMED: Final = (*CHECKS, LEAK, RACE, INIT)
MOST_DEVICES: Final = 16
_SCHEDULE: Final = re.compile(r"random:\d+")
_WANTED: Final = "wanted emulated:ARCH, such as emulated:sm_90a"
_KEYS: Final = ("devices", "checks", "schedule")


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for, and is right."""

    arch: str
    devices: int
    checks: frozenset[str]
    schedule: str | None


def settings(
    arch: str, devices: int, checks: bool | str | Iterable[str], schedule: str | None
) -> Settings:
    """The settings; TypeError or ValueError for wrong ones."""
    return Settings(_arch(arch), _devices(devices), _checks(checks), _schedule(schedule))


def _arch(arch: str) -> str:
    if not isinstance(arch, str):
        raise TypeError(f"arch must be a str such as 'sm_90a', but got {arch!r}")
    try:
        return check_arch(arch, "the architecture of the emulated GPU")
    except CompileError as error:
        raise ValueError(str(error)) from None


def _devices(devices: int) -> int:
    if isinstance(devices, bool) or not isinstance(devices, int):
        raise TypeError(f"devices must be an int, but got {devices!r}")
    if not 1 <= devices <= MOST_DEVICES:
        raise ValueError(f"devices must be in [1, {MOST_DEVICES}], but got {devices}")
    return devices


def _checks(checks: bool | str | Iterable[str]) -> frozenset[str]:
    if isinstance(checks, bool):
        return frozenset(CHECKS if checks else ())
    given = checks.split(",") if isinstance(checks, str) else list(checks)
    if not all(isinstance(each, str) for each in given):
        raise TypeError(f"checks must be True, False or names, but got {checks!r}")
    names = [each.strip() for each in given]
    unknown = [each for each in names if each not in (*_NAMED, APPROX, "all")]
    if unknown:
        known = f"{', '.join((*_NAMED, APPROX))}, or all"
        raise ValueError(f"checks must be of {known}, but got {unknown[0]!r}")
    return frozenset(names) - {"all"} | (frozenset(_NAMED) if "all" in names else frozenset())


def _schedule(schedule: str | None) -> str | None:
    if schedule is None:
        return None
    if not isinstance(schedule, str):
        raise TypeError(f"schedule must be None or a str, but got {schedule!r}")
    if not _SCHEDULE.fullmatch(schedule):
        raise ValueError(f"schedule must be 'random:' and a seed, but got {schedule!r}")
    return schedule


def from_text(text: str) -> Settings:
    """Those of `FERRULE_GPU`: `emulated:sm_90a,devices=2,checks=memory+sync,schedule=random:17`.

    `checks` may be `all`, which is more than without it, or `none`. ValueError for another text.
    """
    kind, _, rest = text.partition(":")
    arch, *options = rest.split(",")
    if kind != "emulated" or not arch:
        raise ValueError(f"FERRULE_GPU is {text!r}; {_WANTED}")
    given = dict(option.partition("=")[::2] for option in options)
    unknown = [key for key in given if key not in _KEYS]
    if unknown or not all(given.values()):
        raise ValueError(f"FERRULE_GPU is {text!r}; {_WANTED}, then {', '.join(_KEYS)} with values")
    devices, checks = given.get("devices", "1"), given.get("checks")
    if not devices.isdecimal():
        raise ValueError(f"FERRULE_GPU is {text!r}; devices must be a number")
    named = checks is None if checks in (None, "none") else checks.split("+")
    try:
        return settings(arch, int(devices), named, given.get("schedule"))
    except ValueError as error:
        raise ValueError(f"FERRULE_GPU is {text!r}: {error}") from None
