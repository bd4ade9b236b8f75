"""What `recording` changes in Triton and PyTorch while it records: launches are told, not made."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ferrule.frontends import packages
from ferrule.frontends.triton.facts import WARP
from ferrule.frontends.triton.installed import triton
from ferrule.frontends.triton.recorded.followed import Followed
from ferrule.frontends.triton.recorded.numbers.base import numbers_inside, plain
from ferrule.frontends.triton.recorded.reading import tensors_in
from ferrule.frontends.triton.recorded.tensors import Recorded, is_torch, recorded
from ferrule.specs.deferred import dataclass

_ALLOCATES: Final = frozenset({"empty", "empty_like", "empty_strided", "new_empty"})
_FILLS: Final = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero_": 0, "ones": 1, "ones_like": 1}
_FILLS_WITH: Final = ("full", "full_like", "new_full", "fill_")
_VIEWS: Final = frozenset(
    "view _unsafe_view reshape _reshape_alias transpose t permute slice select expand as_strided "
    "detach alias unsqueeze squeeze split split_with_sizes unbind narrow chunk unfold".split()
)

_WITHOUT_DATA: Final = _ALLOCATES | {*_FILLS, *_FILLS_WITH, "lift_fresh"}
"""Operations whose result has no numbers of the tensors that they take; `torch.tensor` ends with
the last one."""

_READ_BY: Final = ("data_dependent_output", "dynamic_output_shape")
"""Tags of operations whose result, or its shape, follows from the numbers in tensors."""

_RANDOM: Final = "nondeterministic_seeded"
"""The tag of operations that draw random numbers."""

Told = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], None]


@contextlib.contextmanager
def launches_told(told: Told, arch: int) -> Iterator[None]:
    """Inside, `kernel[grid](…)` of every kernel object calls `told` with the object, the grid, the
    arguments and the keywords, and launches nothing.

    Where the machine has no GPU, Triton's driver is one for the architecture `arch`.
    """
    driver = packages.load("triton.runtime", "triton").driver
    active = driver._active
    with contextlib.ExitStack() as undo:
        for kind in _kinds(triton().KernelInterface):
            if "run" in vars(kind):
                undo.callback(setattr, kind, "run", kind.run)
                kind.run = _teller(told, kind.run)
        undo.callback(driver.set_active, active)
        driver.set_active(_Driver(arch))
        _without_cuda(undo)
        yield


def _kinds(kind: Any) -> Iterator[Any]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


def _teller(told: Told, own: Callable[..., Any]) -> Callable[..., Any]:
    """What stands for a kernel's `run`; `own` is its own, which still compiles for a `warmup`."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        if not warmup:
            told(self, grid, args, keywords)
            return None
        _hold_compiled(self, args, keywords)
        with _forgetting(self):
            given, named = plain(args), plain(keywords)
            compiled = own(self, *given, grid=plain(grid), warmup=True, **named)
        names = getattr(self, "arg_names", None)
        if names is None or not hasattr(compiled, "asm"):  # a layer around the kernel
            return compiled
        options = {key: each for key, each in keywords.items() if key not in names}
        return _Compiled(compiled, lambda grid, args: told(self, grid, args, options))

    return run


def _hold_compiled(kernel: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """A call is one in which the same is compiled: for whether an integer is 1, or a multiple of
    16, and for constants and options as they are."""
    names = [*(getattr(kernel, "arg_names", None) or ())]
    kinds = {each.name: each.is_constexpr for each in getattr(kernel, "params", None) or ()}
    for name, value in (*zip(names, args, strict=False), *keywords.items()):
        for number in numbers_inside(value):
            size: Any = number
            if kinds.get(name, True) or type(number) is not Followed:
                number.take()
            else:
                _ = size == 1, size % 16 == 0


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A kernel that a `warmup` compiled: `compiled[grid](…)` is told, with all parameters; for
    everything else it is Triton's."""

    compiled: Any
    told: Callable[[Any, tuple[Any, ...]], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled, name)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *args, stream=None: self.told(grid, args)


@contextlib.contextmanager
def _forgetting(kernel: Any) -> Iterator[None]:
    """What is compiled inside is for the recording's GPU: a later launch does not find it."""
    kept = getattr(kernel, "device_caches", None)
    if kept is None:
        yield
        return
    before = dict(kept)
    kept.clear()
    try:
        yield
    finally:
        kept.clear()
        kept.update(before)


class _Driver:
    """What host functions ask of Triton's driver before a launch."""

    def __init__(self, arch: int) -> None:
        backends = packages.load("triton.backends.compiler", "triton")
        self.target = backends.GPUTarget("cuda", arch, WARP)
        self.utils = self

    def get_current_target(self) -> Any:
        """The GPU for which is recorded."""
        return self.target

    def get_current_device(self) -> int:
        """The first GPU."""
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def launcher_cls(self, source: Any, metadata: Any) -> None:
        """A kernel that was compiled by `warmup` is launched by nobody."""

    def load_binary(self, name: str, cubin: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """No module and no function, but the registers of a thread, of which host functions compute
        how many blocks fit; no spilled bytes, and the most threads."""
        from ferrule.compiler.cuda.binaries.cubins import read_cubin

        found = read_cubin(cubin).kernels
        registers = next((each.registers for each in found if each.kernel == name), None)
        return None, None, registers or 0, 0, 1024

    def get_active_torch_device(self) -> Any:
        """Where host functions make tensors."""
        return packages.load("torch", "torch").device("cpu")

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """Those of an H100."""
        shared, registers = 232448, 65536
        return {
            "max_shared_mem": shared,
            "max_num_regs": registers,
            "multiprocessor_count": 132,
            "warpSize": WARP,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 2619000,
            "mem_bus_width": 5120,
        }


def _without_cuda(undo: contextlib.ExitStack) -> None:
    """`with torch.cuda.device(…)`, which host functions write around launches, does nothing where
    PyTorch has no GPU."""
    torch = sys.modules.get("torch")
    if torch is None or torch.cuda.is_available():
        return
    undo.callback(setattr, torch.cuda, "device", torch.cuda.device)
    torch.cuda.device = lambda _: contextlib.nullcontext()


@dataclass(frozen=True, slots=True)
class Written:
    """How an operation of PyTorch wrote a tensor: into new memory, all of it with one number, which
    `is_given`, or as a computation."""

    is_new: bool = False
    value: Any = None
    is_computed: bool = False
    is_given: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    """What an operation of PyTorch does with the numbers in tensors: those that it `takes` and
    `makes`, new ones and those that it writes; whether it reads numbers, and whether what it makes
    is random, or was in the memory before."""

    name: str
    takes: list[Any]
    makes: list[Any]
    reads: bool = False
    is_random: bool = False
    is_left: bool = False


def _data(name: str, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> Data:
    made = [*tensors_in(result), *_written_by(func, args, kwargs)]
    tags = {str(each).rpartition(".")[2] for each in func.tags}
    # Of a tensor that is filled with a number, what it was is no part; but the number may be one.
    of_tensor = args[1:] if name in _WITHOUT_DATA else args
    taken = tensors_in([*of_tensor, *kwargs.values()])
    return Data(
        name, list(taken), made, not tags.isdisjoint(_READ_BY), _RANDOM in tags, name in _ALLOCATES
    )


def operations_told(
    told: Callable[[str, Recorded, Written], None],
    of_data: Callable[[Data], None],
) -> Any:
    """A context in which `told` is called for each tensor that an operation of PyTorch writes, and
    `of_data` with what it does with the numbers in tensors."""
    torch = sys.modules.get("torch")
    if torch is None:
        return contextlib.nullcontext()
    base: Any = packages.load("torch.utils._python_dispatch", "torch").TorchDispatchMode

    class Mode(base):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            name = func.__name__.partition(".")[0]
            of_data(_data(name, func, args, kwargs or {}, result))
            for each in _written_by(func, args, kwargs or {}):
                told(name, recorded("a tensor", each), _written(name, args, is_new=False))
            if name not in _VIEWS:
                for each in _made_by(func, result):
                    told(name, recorded("a tensor", each), _written(name, args, is_new=True))
            return result

    mode: Any = Mode
    return mode()


def _written_by(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The tensors among the arguments of an operation that it writes."""
    given = dict(zip((each.name for each in func._schema.arguments), args, strict=False))
    given |= kwargs
    for each in func._schema.arguments:
        if each.alias_info is not None and each.alias_info.is_write:
            yield from tensors_in(given.get(each.name))


def _made_by(func: Any, result: Any) -> Iterator[Any]:
    """The tensors among the results of an operation that are none of its arguments, nor parts; and
    that of `torch.tensor`, which ends with `lift_fresh`."""
    returns = func._schema.returns
    results = result if len(returns) > 1 else (result,)
    for each, found in zip(returns, results, strict=False):
        if each.alias_info is None or func.__name__.startswith("lift_fresh"):
            yield from tensors_in(found)


def _written(name: str, args: tuple[Any, ...], *, is_new: bool) -> Written:
    if name in _ALLOCATES:
        return Written(is_new)
    if name in _FILLS or name in _FILLS_WITH:
        given = name in _FILLS_WITH
        value = args[-1] if given else _FILLS[name]
        if is_torch(value):
            return Written(is_new, is_computed=True)
        return Written(is_new, value, is_given=given)
    return Written(is_new, is_computed=True)
