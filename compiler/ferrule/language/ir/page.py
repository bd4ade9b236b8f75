"""Prints the page of the kernel IR in Markdown: `python -m ferrule.language.ir.page`.

The semantics of programs is the docstring of `ops`, `threads` and each op in them, the rules are
that of `verifier`.  The documentation contains this output, and a test compares the two.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Final, get_args

from ferrule.language.ir import asynchronous, mbarriers, ops, tensor_cores, threads
from ferrule.language.ir.operation import EFFECTS, Effect, Operation
from ferrule.language.ir.rules import verifier

_HEAD: Final = """\
# The kernel IR

<!-- Made by python -m ferrule.language.ir.page; change the docstrings, not this page. -->

Between the Python of a kernel and the machine code of a target there is one small language. It is
what `inspect_ir()` shows, what every target is generated from, and what the tests interpret to
know what a program means.

```python
import ferrule as fe


@fe.kernel
def double_kernel(a: fe.Tensor):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i >= a.shape[0]:
        return
    a[i] = a[i] * 2


@fe.jit
def double(a: fe.Tensor):
    double_kernel(a).launch(grid=(a.shape[0] + 63) // 64, block=64)


a = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n"),))
print(fe.compile(double, a, options="--target cpu").inspect_ir(), end="")
```

```text output
program @double {
  kernel @double_kernel(%a: tensor<[n]:[1], float32, align 4>) {
    %block_idx_x = block_idx x : int32
    %c = constant 64 : int32
    %mul = mul %block_idx_x, %c : int32
    %thread_idx_x = thread_idx x : int32
    %add = add %mul, %thread_idx_x : int32
    %size = size n : int32
    %ge = cmp ge %add, %size : bool
    if %ge {
    } else {
      %load = load %a[%add] : float32
      %c_1 = constant 2.0 : float32
      %mul_1 = mul %load, %c_1 : float32
      store %mul_1, %a[%add]
    }
  }
  host @double(%a: tensor<[n]:[1], float32, align 4>) {
    %c = constant 64 : int64
    %c_1 = constant 1 : int64
    %c_2 = constant 1 : int64
    %size = size (n + 63) // 64 : int64
    %c_3 = constant 1 : int64
    %c_4 = constant 1 : int64
    %c_5 = constant 0 : int64
    %ge = cmp ge %size, %c_5 : bool
    %c_6 = constant 2147483647 : int64
    %le = cmp le %size, %c_6 : bool
    %and = and %ge, %le : bool
    check %and, LaunchError 'Invalid launch of double_kernel: expected grid x to be in [0, 2147483647], but got {}'(%size)
    launch @double_kernel(%a) grid(%size, %c_3, %c_4) block(%c, %c_1, %c_2)
  }
}
```

`tensor<[n]:[1], float32, align 4>` is a tensor of shape `[n]` and strides `[1]`. A value is
defined once, `%name`, and has a type. `n` is a symbol of the program: every function of it can read
its value.
"""  # noqa: E501
_EFFECTS: Final = f"""\
What running an op can do, besides giving its results: {EFFECTS}

A *uniform* op gives the same to all threads of a block if its operands and what it reads are the
same; a *speculative* one may run although its result is not wanted."""
_GROUPS: Final = (
    ("Ops with one result", ops.SimpleOp),
    ("Ops with an effect", ops.EffectOp),
    ("Ops with regions", ops.RegionOp),
)


def page() -> str:
    """The whole page."""
    lines = [_HEAD, "## What a program is", "", *_meaning(ops)]
    lines += ["## Threads that work together", "", *_meaning(threads)]
    lines += ["## Tensor cores", "", *_meaning(tensor_cores)]
    lines += ["## Work in the background", "", *_meaning(asynchronous)]
    lines += ["## Barriers in shared memory", "", *_meaning(mbarriers), "## The ops", ""]
    lines += [*_markdown(_EFFECTS), "", *_kinds()]
    return "\n".join([*lines, "## The rules", "", *_rules()])


def _meaning(module: ModuleType) -> Iterator[str]:
    """The docstring of a module, after its first line."""
    _, _, text = (inspect.getdoc(module) or "").partition("\n\n")
    yield from _markdown(text.replace("the docstring of `verifier`", "[below](#the-rules)"))
    yield ""


def _kinds() -> Iterator[str]:
    for title, kinds in _GROUPS:
        yield from (f"### {title}", "")
        for kind in get_args(kinds):
            yield from (f"**{kind.__name__}**", "")
            yield from (*_markdown(inspect.getdoc(kind) or ""), "")
            names = ", ".join(f"`{name}`" for name in kind.__dataclass_fields__)
            yield from (f"Parts: {names}.", "", _facts(kind), "")


def _facts(kind: type[Operation]) -> str:
    """The facts of an op for passes, in one line."""
    facts = kind.facts
    effects = [effect for effect in get_args(Effect) if effect in facts.effects]
    said = [f"Effects: {', '.join(effects) or 'none'}."]
    if facts.writes is not None:
        said.append(f"It writes {' and '.join(f'`{name}`' for name in facts.writes)}.")
    said += ["It is uniform."] * facts.uniform + ["It is speculative."] * facts.speculative
    if facts.since is not None:
        said.append(f"GPUs have it from sm_{facts.since[1]} on.")
    where = {"anywhere": "", "kernel": "In kernels only.", "host": "In host functions only."}
    return " ".join(filter(None, [*said, where[facts.place]]))


def _rules() -> Iterator[str]:
    """The docstring of `verifier`: a heading for each group of its rules."""
    text = inspect.getdoc(verifier) or ""
    opening, _, rules = text.partition("The rules:\n\n")
    yield from (*_markdown(opening.strip()), "")
    groups = rules.split("\n\n")
    for at, group in enumerate(groups):
        title, _, items = group.partition("\n")
        yield from (f"### {title.capitalize()}", "", *_markdown(items))
        yield from [""] if at < len(groups) - 1 else []
    yield ""


def _markdown(text: str) -> Iterator[str]:
    """A docstring as Markdown: single spaces after sentences, names of shapes kept as they are."""
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        yield indent + " ".join(line.split())


if __name__ == "__main__":
    print(page(), end="")
