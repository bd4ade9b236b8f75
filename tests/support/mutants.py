"""Faults that are planted in PTX, and whether the emulated GPU notices them.

A program's launches are recorded with the memory before and after each. A *mutant* is its PTX with
one line changed; the launches are done again with it. It is noticed by its results where memory is
another in the end, a thread fails or no end comes; and by the checks where one of them says so.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import ferrule as fe
from ferrule.emulator.checks.profile import Profile
from ferrule.emulator.machine import Fault, Kernel, LoadedModule, Machine, Memory, PtxError

ARCH = "sm_90a"
CHECKS = frozenset({"memory", "sync", "race"})
SECONDS = 8.0
"""How long the launches with a mutant may take; they take less than one without."""

Contents = dict[int, bytes]


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel, and the memory around it."""

    text: str
    kernel: str
    sizes: tuple[Any, ...]
    given: dict[str, Any]
    before: Contents
    after: Contents


@dataclass
class Recording:
    """What a program did, and the memory that its addresses are in."""

    memory: Memory
    launches: list[Launch]


def _contents(memory: Memory, but: set[int]) -> Contents:
    sizes = memory._global.sizes
    return {at: ctypes.string_at(at, n) for at, n in sizes.items() if at not in but}


def recorded(program: Callable[[], None]) -> Recording:
    """What a program launches."""
    launches: list[Launch] = []
    texts: dict[int, tuple[str, LoadedModule]] = {}
    memories: list[Memory] = []
    load, launch = Machine.load, Kernel.launch

    def loaded(self: Machine, ptx: str) -> LoadedModule:
        module = load(self, ptx)
        texts.update((id(each), (ptx, module)) for each in module.kernels.values())
        memories.append(self.memory)
        return module

    def launched(self: Kernel, *sizes: Any, **given: Any) -> None:
        text, _ = texts[id(self)]
        own = {at for _, module in texts.values() for at, _ in module.variables.values()}
        before = _contents(self._machine.memory, own)
        launch(self, *sizes, **given)
        after = _contents(self._machine.memory, own)
        launches.append(Launch(text, self.name, sizes, given, before, after))

    # Memory that the program gives back must be there when its launches are done again.
    with (
        mock.patch.object(Machine, "load", loaded),
        mock.patch.object(Kernel, "launch", launched),
        mock.patch.object(Memory, "free", lambda self, address: None),
        fe.emulated_gpu(ARCH),
    ):
        program()
    return Recording(memories[0], launches)


def _restore(now: Contents, then: Contents) -> None:
    for at, data in then.items():
        if now.get(at) != data:
            ctypes.memmove(at, data, len(data))


def replayed(recording: Recording, changed: dict[str, str], checks: frozenset[str]) -> str:
    """The launches again, with other texts for some: what was noticed, or nothing."""
    machine = Machine(ARCH, checks=checks, schedule=None, memory=recording.memory)
    modules: dict[str, LoadedModule] = {}
    last: Contents = {}
    try:
        for each in recording.launches:
            _restore(last, each.before)
            if each.text not in modules:
                modules[each.text] = machine.load(changed.get(each.text, each.text))
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)  # a check may warn
                modules[each.text].kernels[each.kernel].launch(*each.sizes, **each.given)
            last = each.after
        return _difference(last)
    except (Fault, PtxError, RuntimeWarning) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        for module in modules.values():
            module.unload()


def _apart(recording: Recording, changed: dict[str, str], checks: frozenset[str]) -> bool:
    """Whether something is noticed: in a process of its own, which may crash or never end."""
    child = os.fork()
    if not child:
        try:
            os._exit(bool(replayed(recording, changed, checks)))
        finally:
            os._exit(1)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _difference(wanted: Contents) -> str:
    for at, data in wanted.items():
        if ctypes.string_at(at, len(data)) != data:
            return f"other contents of the {len(data)} bytes at {at:#x}"
    return ""


# ---- what is planted ----

_OPPOSITE = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}


def _without(line: str) -> str | None:
    if re.search(r"\b(bar\.sync|barrier\.sync|bar\.warp\.sync)", line):
        return ""
    return None


def _no_fence(line: str) -> str | None:
    return "" if re.search(r"\b(fence|membar)\.", line) else None


def _other_lane(line: str) -> str | None:
    """The lane of a shuffle, one further."""
    found = re.search(r"(shfl\.sync\.\w+\.b32\s+[^,]+,\s*[^,]+,\s*)(\d+)(,.*)", line)
    if found is None:
        return None
    return line[: found.start()] + f"{found[1]}{int(found[2]) ^ 1}{found[3]}"


def _guard(line: str) -> str | None:
    found = re.search(r"(setp\.)(lt|le|gt|ge)(\.[su](?:32|64))", line)
    if found is None:
        return None
    return line[: found.start()] + found[1] + _OPPOSITE[found[2]] + line[found.start(3) :]


def _stride(line: str) -> str | None:
    """Twice the stride of an address."""
    found = re.search(r"(mul\.wide\.[su]32\s+%\w+,\s*%\w+,\s*)(\d+)(;)", line)
    if found is not None:
        return line[: found.start()] + f"{found[1]}{int(found[2]) * 2}{found[3]}"
    found = re.search(r"(shl\.b(?:32|64)\s+%\w+,\s*%\w+,\s*)(\d+)(;)", line)
    if found is None:
        return None
    return line[: found.start()] + f"{found[1]}{int(found[2]) + 1}{found[3]}"


def _trans(line: str) -> str | None:
    return line.replace(".trans", "", 1) if "matrix." in line and ".trans" in line else None


def _sense(line: str) -> str | None:
    """The other sense of a predicate."""
    found = re.search(r"@(!?)(%p\d+)", line)
    if found is None:
        return None
    other = "" if found[1] else "!"
    return line[: found.start()] + f"@{other}{found[2]}" + line[found.end() :]


def _place(line: str) -> str | None:
    """A load or store of memory, one element further."""
    found = re.search(
        r"\b(?:ld|st)\.(?:global|shared)\S*?\.[bfsu](\d+)\b[^\[]*\[[%\w$]+(\+-?\d+)?()\]", line
    )
    if found is None:
        return None
    offset = int((found[2] or "+0")[1:]) + int(found[1]) // 8
    start = found.start(2) if found[2] else found.start(3)
    return f"{line[:start]}+{offset}{line[found.end(3) :]}"


def _mask(line: str) -> str | None:
    """A shuffle or vote without the last lane."""
    found = re.search(r"\b(?:shfl|vote|match|redux)\.sync.*(-1|0xffffffff);", line)
    return None if found is None else f"{line[: found.start(1)]}2147483647;"


def _operation(line: str) -> str | None:
    """A difference for a sum, and the other way round; of floats and of whole numbers."""
    found = re.search(r"\b(add|sub)(\.rn)?(\.[fsu](?:32|64))\b", line)
    if found is None:
        return None
    other = "sub" if found[1] == "add" else "add"
    return line[: found.start(1)] + other + line[found.end(1) :]


def _count(line: str) -> str | None:
    """One more that may be under way, or is expected."""
    found = re.search(r"((?:wait_group\S*|mbarrier\.init\S*\s+\[[^\]]*\],)\s+)(\d+);", line)
    return None if found is None else f"{line[: found.start(2)]}{int(found[2]) + 1};"


PLANTED: dict[str, Callable[[str], str | None]] = {
    "no barrier": _without,
    "no fence": _no_fence,
    "another lane": _other_lane,
    "off by one": _guard,
    "another stride": _stride,
    "not transposed": _trans,
    "another sense": _sense,
    "another place": _place,
    "a part of a mask": _mask,
    "another operation": _operation,
    "another count": _count,
}


@dataclass(frozen=True)
class Mutant:
    """A text with one line changed."""

    kind: str
    number: int
    line: str
    text: str


def executed(recording: Recording) -> dict[str, set[int]]:
    """The lines of each text that some warp executes."""
    machine = Machine(ARCH, checks=frozenset(), schedule=None, memory=recording.memory)
    machine.parts.profile = profile = Profile()
    modules: dict[str, LoadedModule] = {}
    found: dict[str, set[int]] = {}
    last: Contents = {}
    for each in recording.launches:
        _restore(last, each.before)
        if each.text not in modules:
            modules[each.text] = machine.load(each.text)
        modules[each.text].kernels[each.kernel].launch(*each.sizes, **each.given)
        last = each.after
        lines = profile.kernels[each.kernel].lines
        found.setdefault(each.text, set()).update(line.item.line for line in lines if line.warps)
    for module in modules.values():
        module.unload()
    return found


def mutants(text: str, kernels: set[str]) -> Iterator[Mutant]:
    """All of a text, in kernels of these names."""
    lines = text.splitlines()
    inside = ""
    for i, line in enumerate(lines):
        entry = re.search(r"\.entry\s+(\w+)", line)
        inside = entry[1] if entry is not None else inside
        for kind, change in PLANTED.items():
            new = change(line) if inside in kernels else None
            if new is not None:
                whole = "\n".join([*lines[:i], new, *lines[i + 1 :]])
                yield Mutant(kind, i + 1, line.strip(), whole)


@dataclass
class Found:
    """How many mutants were noticed, and which were not."""

    planted: int = 0
    by_results: int = 0
    by_checks: int = 0
    unseen: list[tuple[str, Mutant]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def noticed(self) -> float:
        """The part of all that was noticed."""
        return 1 - len(self.unseen) / self.planted if self.planted else 1.0


def judged(
    name: str,
    recordings: list[Recording],
    found: Found,
    chosen: Callable[[Mutant], bool] = lambda _: True,
) -> None:
    """Plants faults in the PTX of a program's recordings, one after the other."""
    texts = {each.text for recording in recordings for each in recording.launches}
    reached: dict[str, set[int]] = {}
    for each in recordings:
        for text, lines in executed(each).items():
            reached.setdefault(text, set()).update(lines)
    for text in sorted(texts):
        launches = [launch for each in recordings for launch in each.launches]
        kernels = {each.kernel for each in launches if each.text == text}
        for mutant in mutants(text, kernels):
            if mutant.number in reached[text] and chosen(mutant):
                _judge(name, recordings, text, mutant, found)


def _judge(name: str, recordings: list[Recording], text: str, mutant: Mutant, found: Found) -> None:
    changed = {text: mutant.text}
    results = any(_apart(each, changed, frozenset()) for each in recordings)
    checks = any(_apart(each, changed, CHECKS) for each in recordings)
    found.planted += 1
    found.kinds[mutant.kind] += 1
    found.by_results += results
    # What the checks alone have noticed: the results were right, or nobody compares them.
    found.by_checks += checks
    if not results and not checks:
        found.unseen.append((name, mutant))
