"""The page "What of CuTe DSL is here": `python -m ferrule.cutlass.page > docs/cute_names.md`.

For each name of `peer.NAMES` it says whether ferrule has it, by looking; nothing is listed by hand
but what there is instead of some.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final, Literal

from ferrule.cutlass import names, peer

Answer = Literal["yes", "otherwise", "no", "Blackwell"]
_HEAD: Final = f"""\
# What of CuTe DSL is here

Programs for CuTe DSL {peer.VERSION} run with `import ferrule as cute`. A program that
imports `cutlass` needs one line more, before its imports:

```python no-run
# Not run: it replaces a package of the whole process.
import ferrule.as_cutlass  # cutlass, cutlass.cute and the others are ferrule's from here on

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack
```

It does so for the whole process, never by itself, and refuses where the real package is imported
already. A name that is missing is an error that says what there is instead, or that there is
nothing yet.

The lists below have every public name of these modules, made by `python -m ferrule.cutlass.page`
from the names of the package and from what ferrule has. A name that is here means the same for
programs that are right; ferrule checks more, and [says so](errors.md). What is for Blackwell's
`tcgen05` and for the folder `experimental` is [not part of it](non-goals.md).

`cutlass.jax.cutlass_call` makes operations of JAX, over [`fe.jax_call`](jax.md); `cutlass._mlir`
has `llvm.inline_asm`, which is `fe.arch.inline_ptx`, and the types and `extractvalue` with which
an object [reads its values from memory of C](parameters.md#values-in-memory-of-c).

## Examples of CUTLASS's repository

They run as they are, each in a process of its own, with ferrule for `cutlass` and an emulated GPU
of `sm_90a` for "cuda"; sizes are made small by their own options, and their own checks of results
run. Counted by `python benchmarks/cute_programs FOLDER PATTERN --arguments
benchmarks/cute_programs/small.txt --edits benchmarks/cute_programs/small.json`.

| folder | run | |
|---|---|---|
| `cute/ampere` | 7 of 7 | sgemm, tensor-core gemm, both attentions, elementwise, autotuning |
| `cute/hopper` | 7 of 7 | attention; gemms: plain, persistent, fp8, grouped; cluster norms |
| `cute/tvm_ffi` | 1 of 1 | |
| `dsl_tutorials` | 27 of 29 | JAX's on the CPU, by an edit; one ends in the error that it shows |
| notebooks | 97 of 103 cells | `tensor.ipynb`, whose tensors are on the CPU, with `--gpu none` |

`aot_use_in_jax.py` runs behind `aot_export.py` in one `--folder-of-runs`, both with `--gpu none
--edits benchmarks/cute_programs/on_cpu.json`: there is no JAX for an emulated GPU.
`jit_argument.py`, whose host function reads memory of the CPU, runs with `--gpu none` and needs
CMake and nanobind in an active environment.

What does not run: Blackwell's `tcgen05` (six cells, and `fp16_gemm_4_iket.py`); and
`load_in_python.py`, whose tensor has a size of 10 where it was compiled for multiples of 16:
ferrule checks it, with the message that CuTe DSL has for it with `--enable-tvm-ffi`.

The repository's tests run, too, by `python benchmarks/cute_programs/mapped_tests.py FILE`:

| tests | pass | |
|---|---|---|
| `test/examples/CuTeDSL/test_*.py` | 6 of 6 | dataclasses, maths, loops, streams |
| `test/python/CuTeDSL/test_struct_in_if.py` | 6 of 6 | |
| `test/python/pycute` | 7 of 10 | layouts; the others are of names that CuTe DSL has not |

`test_numeric_construction.py` wants constants that wrap, which are
[errors here](coming_from.md#cute-dsl), and `test_export_c_header_shape_type.py` reads another
header than [ferrule's](export.md).

`fe.testing` times functions and chooses between configurations (`benchmark`, `tune`,
`autotune_jit`), and `cutlass.torch` makes matrices for tests, on the CPU and on GPUs, also on
[emulated](emulated_gpu.md) ones.
"""


_TITLES: Final = (
    ("Here", "yes"),
    ("For Blackwell, and not here", "Blackwell"),
    ("Not here, or not yet", "no"),
)


def answer(module: str, name: str) -> Answer:
    """Whether a name of CuTe DSL is here."""
    try:
        names.find(module, name)
    except (AttributeError, ImportError):
        if name in names.BLACKWELL.get(module, ()):
            return "Blackwell"
        return "otherwise" if name in names.OTHERWISE else "no"
    return "yes"


def answers(module: str) -> dict[str, Answer]:
    """The answer for each name of a module."""
    return {name: answer(module, name) for name in peer.NAMES[module].split()}


def page() -> str:
    """The text of the page."""
    return "\n".join([_HEAD, *_counts(), *(line for m in peer.NAMES for line in _section(m))])


def _counts() -> Iterator[str]:
    yield "| module | names | here | otherwise | for Blackwell | not here |"
    yield "|---|---|---|---|---|---|"
    for module in peer.NAMES:
        found = list(answers(module).values())
        counts = " | ".join(
            str(found.count(each)) for each in ("yes", "otherwise", "Blackwell", "no")
        )
        yield f"| `{module}` | {len(found)} | {counts} |"
    yield ""


def _section(module: str) -> Iterator[str]:
    found = answers(module)
    yield f"## {module}\n"
    for title, wanted in _TITLES:
        chosen = [f"`{name}`" for name, is_ in found.items() if is_ == wanted]
        if chosen:
            yield textwrap.fill(f"**{title}**: {', '.join(chosen)}.", 118) + "\n"
    reasons: dict[str, list[str]] = {}
    for name in (name for name, is_ in found.items() if is_ == "no" and name in names.REASONS):
        reasons.setdefault(names.REASONS[name], []).append(f"`{name}`")
    if reasons:
        yield "| not here | why |\n|---|---|"
        yield "\n".join(f"| {', '.join(each)} | {why} |" for why, each in reasons.items()) + "\n"
    others = [name for name, is_ in found.items() if is_ == "otherwise"]
    if others:
        yield "| otherwise | |\n|---|---|"
        yield "\n".join(f"| `{name}` | {names.OTHERWISE[name]} |" for name in others) + "\n"


if __name__ == "__main__":
    print(page(), end="")
