"""Counts the kernels of libraries that launch with the same bytes as Triton's own launches.

    python tests/support/triton_libraries.py FOLDER… [--arch 90] [--tries 8] [--most N]
        [--seconds 20] [--only NAME] [--without WORD…] [--verbose]

Each folder is that of an unpacked wheel or of a checkout, what Python would have on its path; each
has a line of the table.  No GPU is needed; a launch ends in the stand-in of libcuda.  Per kernel:

* arguments are guessed, see `triton_guesses`, until Triton compiles and launches it with them;
* the object as it stands in its file, with tuners, heuristics and the library's own wrappers, is
  compiled with the same arguments; a tuner's first configuration is taken for both;
* *same*: the PTX, the name, grid, block, shared memory and every parameter are the same bytes.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import triton
from cuda_device import FakeCuda, Launch, _stand_in, forged_at
from triton_guesses import Pointer, guesses
from triton_launcher import Address, own_launcher
from triton_modules import modules_of

from ferrule.frontends import triton as frontend
from ferrule.frontends.captured import captured
from ferrule.specs import as_dtype

GRID = (2, 3, 1)
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
DTYPES = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64",
    "i8": "int8", "u8": "uint8", "fp8e4nv": "float8_e4m3fn", "u1": "bool",
}  # fmt: skip
ELEMENTS = 1 << 14


@dataclass(slots=True)
class Count:
    """What became of the kernels of a library."""

    library: str
    kernels: int = 0
    said: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def row(self) -> str:
        """The line of the table."""
        said = self.said
        launches = said["same"] + said["other"] + said["refused"]
        numbers = self.kernels, said.total(), launches, said["same"], said["other"]
        return f"| {self.library} | {' | '.join(map(str, (*numbers, said['refused'])))} |"


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """TimeoutError after this many seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Arguments:
    """A guess as what both launchers take."""

    def __init__(self, guess: dict[str, Any]) -> None:
        self.ours: dict[str, Any] = {}
        self.own: dict[str, Any] = {}
        self._memory: list[Any] = []
        for name, value in guess.items():
            if isinstance(value, Pointer):
                dtype = as_dtype(DTYPES[value])
                array = np.zeros(ELEMENTS * dtype.itemsize + 64, np.uint8)
                self._memory.append(array)
                at = array.ctypes.data + -array.ctypes.data % 64
                self.ours[name] = forged_at(at, (ELEMENTS,), (1,), dtype.dlpack)
                self.own[name] = Address(str(value), at)
            else:
                self.ours[name] = self.own[name] = value


def layers_of(kernel: Any) -> Iterator[Any]:
    """A kernel object and those inside of it, down to the function of `triton.jit`."""
    yield kernel
    while not isinstance(kernel, triton.runtime.JITFunction):
        kernel = kernel.fn
        yield kernel


def kernels_in(module: Any) -> Iterator[tuple[str, Any]]:
    """The kernels that a module defines: functions that return something are helpers of others."""
    for name, value in list(vars(module).items()):
        if not isinstance(value, triton.KernelInterface):
            continue
        try:
            *_, function = layers_of(value)
        except AttributeError:
            continue
        if function.module == module.__name__ and not returns(function):
            yield name, value


def returns(function: Any) -> bool:
    """Whether a function gives something back, which no kernel does."""
    import ast

    return any(
        isinstance(each, ast.Return) and each.value is not None
        for each in ast.walk(function.parse())
    )


def chosen(kernel: Any, own: dict[str, Any]) -> dict[str, Any]:
    """What tuners and heuristics add to the arguments of Triton's own launch."""
    added: dict[str, Any] = {}
    for layer in layers_of(kernel):
        if isinstance(layer, triton.runtime.Autotuner):
            added |= layer.configs[0].all_kwargs()
        elif isinstance(layer, triton.runtime.Heuristics):
            for name, rule in layer.values.items():
                added[name] = rule({**own, **added})
    return {name: value for name, value in added.items() if value is not None}


def added_names(kernel: Any) -> frozenset[str]:
    """The parameters that tuners and heuristics choose."""
    names: set[str] = set()
    for layer in layers_of(kernel):
        if isinstance(layer, triton.runtime.Autotuner):
            names |= set(layer.configs[0].kwargs)
        elif isinstance(layer, triton.runtime.Heuristics):
            names |= set(layer.values)
    return frozenset(names)


def forget_digests(function: Any) -> None:
    """Where Triton cannot make a digest of a kernel it raises, and takes the kernel's name for one
    from then on: the next launch would be taken."""
    for each in (function, *(value for _, _, value in captured(function))):
        if str(getattr(each, "hash", "")).startswith("recursion:"):
            each.hash = None


def own_launch(gpu: FakeCuda, kernel: Any, own: dict[str, Any], arch: int) -> tuple[Launch, str]:
    """Triton's launch, and the PTX that it made."""
    *_, function = layers_of(kernel)
    function.device_caches.clear()
    forget_digests(function)
    gpu.clear()
    with own_launcher(arch):
        compiled = function[GRID](**own, **chosen(kernel, own))
    (launch,) = gpu.launches()
    return launch, str(compiled.asm["ptx"])


def our_launch(gpu: FakeCuda, kernel: Any, ours: dict[str, Any], arch: int) -> tuple[Launch, str]:
    """The same of the object as it stands."""
    tuned = any(isinstance(each, triton.runtime.Autotuner) for each in layers_of(kernel))
    *_, function = layers_of(kernel)
    order = [name for name in function.arg_names if name in ours]
    constants = {each.name for each in function.params if each.is_constexpr}
    signature = {name: ours[name] for name in order if name not in constants}
    built = frontend.compile(
        kernel,
        signature=signature,
        constexprs={name: ours[name] for name in order if name in constants},
        grid=frontend.fixed(GRID),
        target=f"sm_{arch}a",
        config=0 if tuned else None,
        prune=False,  # Triton's launch is of this configuration, without the tuner
    )
    gpu.clear()
    built(**{each.name: ours[each.name] for each in built.signature.params})
    (launch,) = gpu.launches()
    return launch, str(built.inspect_ptx())


def bytes_of(launch: Launch, ptx: str) -> tuple[Any, ...]:
    """What must be the same."""
    text = "\n".join(each for each in ptx.splitlines() if not each.startswith("//"))
    return text.strip(), launch.kernel, launch.grid, launch.block, launch.smem, launch.parameters


def timed_out(error: BaseException | None) -> TimeoutError | None:
    """The end of the time among the causes of an error."""
    while error is not None and not isinstance(error, TimeoutError):
        error = error.__cause__ or error.__context__
    return error


def compare(gpu: FakeCuda, kernel: Any, arch: int, tries: int) -> tuple[str, str]:
    """What becomes of a kernel, and why."""
    *_, function = layers_of(kernel)
    why = ""
    for guess in guesses(function, added_names(kernel), tries):
        given = Arguments(guess)
        try:
            theirs = own_launch(gpu, kernel, given.own, arch)
        except TimeoutError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}"
            continue
        try:
            ours = our_launch(gpu, kernel, given.ours, arch)
        except TimeoutError:
            raise
        except Exception as error:
            if (late := timed_out(error)) is not None:  # ours says what Triton said
                raise late from None
            return "refused", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        if bytes_of(*ours) == bytes_of(*theirs):
            return "same", ""
        pairs = zip(bytes_of(*ours), bytes_of(*theirs), strict=True)
        names = ("PTX", "name", "grid", "block", "shared memory", "parameters")
        return "other", ", ".join(name for name, (a, b) in zip(names, pairs, strict=True) if a != b)
    return "not guessed", why


def count(gpu: FakeCuda, folder: Path, options: argparse.Namespace) -> Count:
    """The kernels of a library."""
    with frontend.recording(target=f"sm_{options.arch}a"):
        modules = [each for each in modules_of(folder) if not left_out(each, options.without)]
    kernels = {
        id(kernel): (f"{module.__name__}.{name}", kernel)
        for module in modules
        for name, kernel in kernels_in(module)
        if options.only is None or options.only in name
    }
    found, step = Count(folder.name, len(kernels)), -(-len(kernels) // options.most) or 1
    for name, kernel in list(kernels.values())[::step]:
        try:
            with within(options.seconds):
                said, why = compare(gpu, kernel, options.arch, options.tries)
        except TimeoutError as error:
            said, why = "not guessed", str(error)
        found.said[said] += 1
        if said != "same":
            found.notes.append(f"{name}: {said}, {why}")
        if options.verbose:
            print(f"{name}: {said} {why}", file=sys.stderr, flush=True)
    return found


def left_out(module: Any, words: Sequence[str]) -> bool:
    """Whether a word of `--without` is in a module's name."""
    return any(each in module.__name__ for each in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--tries", type=int, default=8)
    parser.add_argument("--most", type=int, default=1 << 20, help="of a library, evenly spread")
    parser.add_argument("--without", nargs="*", default=(), help="words in names of modules")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    gpu = _stand_in()
    if gpu is None:
        raise SystemExit("this machine has a real libcuda.so.1")
    print("| library | kernels | tried | launches | same | other | refused |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as place, triton.knobs.cache.scope():
        triton.knobs.cache.dir = place
        for folder in options.folders:
            gpu.reset()
            gpu.set_current(0, primary=True)
            found = count(gpu, folder.resolve(), options)
            print(found.row(), flush=True)
            notes += [each for each in found.notes if "not guessed" not in each]
    print(*notes, sep="\n")


if __name__ == "__main__":
    main()
