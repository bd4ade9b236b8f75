"""A profile as HTML: tables and bars, without scripts, fonts or anything from elsewhere.

`fragment` is a part of a page, as notebooks and reports show it; `page` is a page of its own. Both
follow the reader's choice of light or dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks.profile_text import by_shared, by_threads, ranked
from ferrule.specs.html import elements
from ferrule.specs.html.elements import cell, code, number, table

if TYPE_CHECKING:
    from ferrule.emulator.checks.profile import KernelProfile, Line, Profile

_LINES: Final = 20
"""A page lists so many instructions of a kernel: those that warps execute most."""

_STYLE: Final = """
.ferrule-profile { --ink: #1d2430; --faint: #5b6573; --rule: #d9dee5; --bar: #3b7dd8;
  --good: #2e8b57; --waste: #d9822b; --back: #ffffff; --track: #eef1f5;
  color: var(--ink); background: var(--back); padding: 1em;
  font: 14px/1.45 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .ferrule-profile { --ink: #e3e7ee; --faint: #9aa5b4;
  --rule: #39414d; --bar: #5a9bf0; --good: #4cb07a; --waste: #e59a4f; --back: #161a20;
  --track: #252b34; } }
.ferrule-profile h2 { font-size: 17px; margin: 0 0 .6em; }
.ferrule-profile h3 { font: 600 15px ui-monospace, monospace; margin: 1.6em 0 .3em;
  border-top: 1px solid var(--rule); padding-top: .9em; overflow-wrap: anywhere; }
.ferrule-profile h4 { font-size: 13px; margin: 1em 0 .3em; color: var(--faint); }
.ferrule-profile table { border-collapse: collapse; color: inherit; background: none; }
.ferrule-profile th, .ferrule-profile td { text-align: left; padding: 2px 12px 2px 0;
  border: 0; background: none; vertical-align: middle; }
.ferrule-profile th { color: var(--faint); font-weight: 500; }
.ferrule-profile td.n { text-align: right; font-variant-numeric: tabular-nums; }
.ferrule-profile td.c { font-family: ui-monospace, monospace; }
.ferrule-profile .track { display: flex; width: 220px; height: 11px; border-radius: 3px;
  background: var(--track); overflow: hidden; }
.ferrule-profile .track i { display: block; height: 100%; background: var(--bar); }
.ferrule-profile .track i.good { background: var(--good); }
.ferrule-profile .track i.waste { background: var(--waste); }
.ferrule-profile .wide { overflow-x: auto; }
"""


def page(profile: Profile) -> str:
    """A whole page."""
    title = f"Kernels on an emulated {profile.arch or 'GPU'}"
    return elements.page(title, "body { margin: 0; }", fragment(profile))


def fragment(profile: Profile) -> str:
    """A part of a page, with its style."""
    kernels = ranked(profile)
    title = f"Kernels on an emulated {escape(profile.arch)}" if profile.arch else "Kernels"
    parts = [f'<div class="ferrule-profile">\n<style>{_STYLE}</style>\n<h2>{title}</h2>\n']
    if not kernels:
        parts.append("<p>no kernel was launched</p>\n")
    else:
        parts.append(_overview(kernels))
        parts += [_kernel(each, profile.arch) for each in kernels]
    return "".join([*parts, "</div>\n"])


def _overview(kernels: Sequence[KernelProfile]) -> str:
    most = max(each.thread_instructions for each in kernels)
    rows = [
        (
            code(each.name),
            number(each.launches),
            number(each.threads),
            number(each.thread_instructions),
            _bar(each.thread_instructions, most),
            number(f"{each.active_lanes:.1f}"),
        )
        for each in kernels
    ]
    heads = ("kernel", "launches", "threads", "thread instructions", "", "threads of a warp, mean")
    return table(heads, rows)


def _kernel(one: KernelProfile, arch: str) -> str:
    text = f"<h3>{escape(one.name)}</h3>\n"
    text += (
        f"<p>blocks of {one.block}; at a time on a processor, by threads "
        f"{by_threads(one, arch)}, by shared memory {by_shared(one, arch)}</p>\n"
    )
    text += "<h4>thread instructions</h4>\n" + _bars(one.classes())
    if one.moved():
        text += "<h4>bytes</h4>\n" + _bars(one.moved())
    text += "".join(_used(one))
    return text + "<h4>most executed</h4>\n" + _lines(one)


def _used(one: KernelProfile) -> Iterator[str]:
    """How much of the requested memory traffic was needed."""
    for title, every, least in (
        ("sectors of global memory", "sectors", "least_sectors"),
        ("wavefronts of shared memory", "wavefronts", "least_wavefronts"),
    ):
        total, needed = one.total(every), one.total(least)
        if total:
            said = f"{total:,}, of which {needed:,} would do"
            good, waste = 100 * needed / total, 100 * (total - needed) / total
            bar = (
                f'<span class="track"><i class="good" style="width:{good:.1f}%"></i>'
                f'<i class="waste" style="width:{waste:.1f}%"></i></span>'
            )
            yield f"<h4>{title}</h4>\n" + table((), [(f"<td>{bar}</td>", cell(said))])


def _lines(one: KernelProfile) -> str:
    chosen = sorted((each for each in one.lines if each.warps), key=lambda each: -each.warps)
    chosen = sorted(chosen[:_LINES], key=lambda each: each.item.line)
    most = max((each.warps for each in chosen), default=1)
    heads = ("PTX line", "instruction", "source", "warps", "", "threads", "per request")
    return table(heads, [_line(each, most) for each in chosen])


def _line(line: Line, most: int) -> tuple[str, ...]:
    place = line.item.place
    source = f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else ""
    asked = ""
    if line.requests:
        asked = f"{line.sectors / line.requests:.1f} sectors"
    elif line.shared_requests:
        asked = f"{line.wavefronts / line.shared_requests:.1f} wavefronts"
    return (
        number(line.item.line),
        code(line.item.name),
        cell(source),
        number(line.warps),
        _bar(line.warps, most),
        number(f"{line.present / line.warps:.1f}"),
        cell(asked),
    )


# ---- bars ----


def _bars(counts: Mapping[str, int]) -> str:
    most = max(counts.values(), default=1)
    return table(
        (),
        [(cell(name), number(count), _bar(count, most)) for name, count in counts.items() if count],
    )


def _bar(value: int, most: int) -> str:
    width = 100 * value / max(1, most)
    return f'<td><span class="track"><i style="width:{width:.1f}%"></i></span></td>'
