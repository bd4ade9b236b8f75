"""The page about a compilation, in HTML: one file, without anything from elsewhere.

Listings stand side by side. A line that comes from a line of the source is marked with its number
(`data-p`), and the script at the end lights up all lines with the same number while one of them is
pointed at or has the focus, and scrolls the other listings there when it is chosen. Without scripts
the page shows the same texts. It follows the reader's choice of light or dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from ferrule.compiler.artefacts import Kept, Stage
from ferrule.language.reports.compilation import Compilation, Cost, Pane
from ferrule.language.reports.listings import Line, Place, whole_path
from ferrule.runtime.artefacts import KernelInfo, Remarks
from ferrule.specs.html import elements
from ferrule.specs.html.elements import cell, code, lines, number, table

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2430; --faint: #566070; --rule: #d5dae2;
  --back: #ffffff; --box: #f5f7fa; --hot: #ffe58a; --kept: #ffcf5c; --link: #1f5fbf;
  --c0: #3b7dd8; --c1: #2e8b57; --c2: #d9822b; --c3: #8a5cc2; --c4: #b8475a; --c5: #4b8f9c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ee; --faint: #9fa9b7; --rule: #3a4350;
  --back: #14181e; --box: #1c222a; --hot: #57480f; --kept: #7a6310; --link: #7fb0ff;
  --c0: #5a9bf0; --c1: #4cb07a; --c2: #e59a4f; --c3: #ad86dd; --c4: #dd7386; --c5: #6fb3c0; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.2rem; color: var(--ink); background: var(--back);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font: 600 20px/1.3 ui-monospace, monospace; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 1.6rem 0 .5rem; }
h3 { font-size: 13px; margin: 0; }
p { margin: .3rem 0; max-width: 75ch; }
code, pre { font: 12px/1.45 ui-monospace, monospace; }
.faint { color: var(--faint); }
.panes { display: flex; gap: .8rem; align-items: flex-start; overflow-x: auto; }
.pane { flex: 1 1 24rem; min-width: 18rem; max-width: 60rem; border: 1px solid var(--rule);
  border-radius: 5px; background: var(--box); }
.pane header { padding: .4rem .7rem; border-bottom: 1px solid var(--rule); }
.pane pre { margin: 0; padding: .4rem 0; overflow: auto; max-height: 75vh; }
.pane span { display: block; padding: 0 .7rem; white-space: pre; min-width: max-content; }
.pane span[data-p] { cursor: pointer; border-left: 3px solid var(--c0);
  padding-left: calc(.7rem - 3px); }
.pane span.hot { background: var(--hot); } .pane span.kept { background: var(--kept); }
.pane span:focus-visible { outline: 2px solid var(--link); outline-offset: -2px; }
.pane b { color: var(--faint); font-weight: 400; display: inline-block; width: 2.6rem; }
.pane u { text-decoration: none; color: var(--faint); font-style: italic; display: block;
  white-space: normal; padding-left: 3.2rem; max-width: 60ch; }
.pane span.b { border-left-color: var(--c1); } .pane span.c { border-left-color: var(--c2); }
.pane span.d { border-left-color: var(--c3); } .pane span.e { border-left-color: var(--c4); }
.pane span.f { border-left-color: var(--c5); }
details { margin: .8rem 0; } summary { cursor: pointer; font-weight: 600; }
table { border-collapse: collapse; } th, td { text-align: left; padding: 2px 1rem 2px 0;
  vertical-align: top; } th { color: var(--faint); font-weight: 500; }
td.c { font: 12px/1.45 ui-monospace, monospace; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.flame { display: flex; max-width: 70rem; align-items: flex-start; }
.flame div { min-width: 2px; } .flame .in { display: flex; align-items: flex-start; }
.flame i { display: block; border-radius: 3px; margin: 0 1px 1px 0; color: #fff;
  font: 12px/1.8rem system-ui, sans-serif; padding: 0 .3rem; overflow: hidden; height: 1.8rem;
  white-space: nowrap; }
td.in { padding-left: calc(var(--depth) * 1.2rem); }
.wide { overflow-x: auto; }
@media (max-width: 50rem) { .panes { flex-direction: column; } .pane { flex: none; width: 100%; }
  .pane pre { max-height: 50vh; } }
"""

_COLOURS: Final = "abcdef"
"""The classes of lines, by the number of their place: what is of one line has one colour."""

_SCRIPT: Final = """
'use strict';
const lines = [...document.querySelectorAll('.pane span[data-p]')];
const byPlace = new Map();
for (const line of lines) {
  line.tabIndex = -1;
  const found = byPlace.get(line.dataset.p) || [];
  found.push(line);
  byPlace.set(line.dataset.p, found);
}
const mark = (place, name, on) =>
  (byPlace.get(place) || []).forEach(line => line.classList.toggle(name, on));
let kept = null;
const keep = line => {
  if (kept !== null) mark(kept, 'kept', false);
  kept = kept === line.dataset.p ? null : line.dataset.p;
  if (kept === null) return;
  mark(kept, 'kept', true);
  const seen = new Set([line.closest('.pane')]);
  for (const other of byPlace.get(kept)) {
    const pane = other.closest('.pane');
    if (seen.has(pane) || !pane.offsetParent) continue;
    seen.add(pane);
    const box = other.closest('pre');
    const above = other.getBoundingClientRect().top - box.getBoundingClientRect().top;
    box.scrollTop += above - box.clientHeight / 3;
  }
};
const place = event => event.target.closest && event.target.closest('span[data-p]');
for (const [name, on] of [['mouseover', true], ['mouseout', false], ['focusin', true],
    ['focusout', false]])
  document.addEventListener(name, event => {
    const line = place(event);
    if (line) mark(line.dataset.p, 'hot', on);
  });
document.addEventListener('click', event => { const line = place(event); if (line) keep(line); });
document.addEventListener('keydown', event => {
  const line = place(event);
  if (!line) return;
  if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); keep(line); }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const own = [...line.closest('pre').querySelectorAll('span[data-p]')];
  const next = own[own.indexOf(line) + step];
  if (next) next.focus();
});
"""


def page(found: Sequence[Compilation], kept: Kept) -> str:
    """The page about the compilations of the bodies of one function; `kept`: where it is from."""
    numbers: dict[Place, int] = {}
    texts = "".join(text for each in found for text in _body(each, numbers)) + _kept(kept)
    title = f"{found[0].name}: a compilation"
    return elements.page(title, _STYLE, f"<main>\n{texts}</main>\n", _SCRIPT)


def _body(found: Compilation, numbers: dict[Place, int]) -> Iterator[str]:
    yield f"<h1>{escape(found.signature)}</h1>\n"
    if found.doc:
        yield f"<p>{escape(found.doc)}</p>\n"
    yield f'<p class="faint">compiled for {escape(found.target)}</p>\n'
    yield from _panes(found, numbers)
    yield from _remarks(found.remarks)
    yield from _checks(found)
    yield from _stages(found.stages)
    yield from _sizes(found)


# ---- listings ----


def _panes(found: Compilation, numbers: dict[Place, int]) -> Iterator[str]:
    said = _said(found.remarks)
    yield "<h2>Code</h2>\n"
    yield (
        '<p class="faint">Lines with a bar come from a line of the source: point at one, and the '
        "lines that belong to it light up in every listing; choose it (click or Enter), and the "
        "others scroll there. Arrow keys go on.</p>\n"
    )
    shown = [_pane(pane, numbers, said) for pane in found.panes if pane.is_open]
    yield f'<div class="panes">\n{"".join(shown)}</div>\n'
    for pane in found.panes:
        if not pane.is_open:
            yield (
                f"<details><summary>{escape(pane.title)}</summary>\n"
                f'<div class="panes">{_pane(pane, numbers, said)}</div></details>\n'
            )


def _said(remarks: Remarks) -> Mapping[Place, str]:
    """The remarks by their lines of the source."""
    found: dict[Place, list[str]] = {}
    for each in remarks:
        found.setdefault(Place(whole_path(each.file), each.line), []).append(each.text)
    return {place: "; ".join(texts) for place, texts in found.items()}


def _pane(pane: Pane, numbers: dict[Place, int], said: Mapping[Place, str]) -> str:
    is_source = any(line.number is not None for line in pane.lines)
    texts = "".join(_line(line, numbers, said if is_source else {}) for line in pane.lines)
    title = escape(pane.title)
    return (
        f'<section class="pane" aria-label="{title}"><header><h3>{title}</h3>'
        f'<span class="faint" style="padding:0">{escape(pane.about)}</span></header>'
        f'<pre tabindex="0" aria-label="{title}, {len(pane.lines)} lines">{texts}</pre>'
        f"</section>\n"
    )


def _line(line: Line, numbers: dict[Place, int], said: Mapping[Place, str]) -> str:
    text = escape(line.text, quote=False)
    if line.number is not None:
        text = f"<b>{line.number}</b>{text}"
    if line.place is None:
        return f"<span>{text or ' '}</span>"
    number = numbers.setdefault(line.place, len(numbers))
    remark = said.get(line.place)
    if remark is not None:
        text += f"<u>{escape(remark, quote=False)}</u>"
    # The tab key goes from listing to listing, arrow keys from line to line.
    colour = _COLOURS[number % len(_COLOURS)]
    return f'<span data-p="{number}" class="{colour}">{text}</span>'


# ---- tables ----


def _remarks(remarks: Remarks) -> Iterator[str]:
    if remarks:
        yield "<h2>Remarks</h2>\n"
        rows = [(number(str(each.line)), cell(each.text), cell(each.hint)) for each in remarks]
        wanted = 3 if any(each.hint for each in remarks) else 2
        heads = ("line", "what became of it", "what would help")
        yield table(heads[:wanted], [row[:wanted] for row in rows])


def _checks(found: Compilation) -> Iterator[str]:
    yield "<h2>What a call checks</h2>\n"
    rest = {cost.what: cost.instructions for cost in found.costs}
    rows: list[tuple[str, ...]] = []
    for each in found.checks:
        name = each.param.partition(":")[0] if rows else "number of arguments"
        own = [what for what in rest if what == name or what.startswith(f"{name}: ")]
        costs = [(what.partition(": ")[2] or what, rest.pop(what)) for what in own]
        rows.append((code(each.param), lines(each.checks), _cost(costs)))
    rows += [(code(""), cell(what), _cost([("", count)])) for what, count in rest.items()]
    wanted = 3 if found.costs else 2
    yield table(("parameter", "checks", "instructions")[:wanted], [row[:wanted] for row in rows])
    yield _about_costs(found.costs)


def _cost(costs: Sequence[tuple[str, int]]) -> str:
    parts = [f"{escape(what)} {count}" if what else str(count) for what, count in costs]
    if len(parts) > 1:
        parts.append(f"<b>{sum(count for _, count in costs)}</b>")
    return f"<td>{'<br>'.join(parts)}</td>"


def _about_costs(costs: Sequence[Cost]) -> str:
    if not costs:
        said = "Every call goes to the checker: no check has machine code of its own."
        return f'<p class="faint">{said}</p>\n'
    whole = sum(cost.instructions for cost in costs)
    said = (
        f"Machine instructions of the wrapper for this CPU, {whole} in all, by what they are for. "
        "A valid call runs the checks once, from top to bottom: mostly compares, and branches that "
        "are never taken, several in a cycle. One that serves two checks counts for the later one."
    )
    return f'<p class="faint">{said}</p>\n'


def _stages(stages: Sequence[Stage]) -> Iterator[str]:
    whole = sum(stage.seconds for stage in stages) or 1.0
    yield f"<h2>Time of the stages: {1e3 * whole:.1f} ms</h2>\n"
    said = ", ".join(f"{stage.name} {1e3 * stage.seconds:.2f} ms" for stage in stages)
    parts = "".join(_flame(stage, whole, number) for number, stage in enumerate(stages))
    yield f'<div class="flame" role="img" aria-label="{escape(said)}">{parts}</div>\n'
    rows = [row for stage in stages for row in _stage_rows(stage, 0)]
    yield table(("stage", "ms", ""), rows)


def _flame(stage: Stage, whole: float, number: int) -> str:
    """A stage as a box as wide as its share of the time, with its parts below."""
    time = f"{1e3 * stage.seconds:.2f} ms"
    inner = "".join(
        _flame(part, stage.seconds, number + 1 + at) for at, part in enumerate(stage.parts)
    )
    below = f'<div class="in">{inner}</div>' if inner else ""
    return (
        f'<div style="width:{100 * stage.seconds / (whole or 1.0):.2f}%">'
        f'<i style="background:var(--c{number % 6})" title="{escape(stage.name)}: {time}">'
        f"{escape(stage.name)}</i>{below}</div>"
    )


def _stage_rows(stage: Stage, depth: int) -> Iterator[tuple[str, ...]]:
    name = f'<td class="in" style="--depth:{depth}">{escape(stage.name)}</td>'
    yield name, number(f"{1e3 * stage.seconds:.2f}"), cell(stage.about)
    for part in stage.parts:
        yield from _stage_rows(part, depth + 1)


def _kept(kept: Kept) -> str:
    """Where the function is from, and what the cache's key has."""
    text = f"<h2>The cache</h2>\n<p>{escape(kept.text)}.</p>\n"
    if kept.depends_on:
        names = ", ".join(kept.depends_on)
        text += f"<details><summary>What it depends on</summary><p>{escape(names)}</p></details>\n"
    return text


def _sizes(found: Compilation) -> Iterator[str]:
    yield "<h2>Sizes</h2>\n"
    yield table(("", ""), [(cell(size.what), number(size.value)) for size in found.sizes])
    if found.kernels:
        yield "<h2>What the kernels need of a GPU</h2>\n"
        heads = ("kernel", "", "registers", "spilled bytes", "stack", "shared memory")
        yield table(heads, _kernels(found.kernels))


def _kernels(known: Mapping[str, Mapping[str, KernelInfo]]) -> Iterator[tuple[str, ...]]:
    for arch, kernels in known.items():
        for name, info in kernels.items():
            spilled = info.spill_stores + info.spill_loads
            counts = (info.registers, spilled, info.stack, info.shared)
            yield (cell(name), cell(arch), *(number(f"{count:,}") for count in counts))
