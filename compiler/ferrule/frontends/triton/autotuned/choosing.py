"""Configurations that a call chooses by its sizes: `choose=` of `compile`, and the files in which
libraries keep theirs.

    choose=frontend.by_size("M", {16: triton.Config(…), 64: triton.Config(…)})
    choose=frontend.vllm_configs("E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3.json", "M")
    choose=frontend.fla_configs("chunk_fwd_kernel_o.json")
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final, Protocol

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import packages
from ferrule.frontends.triton.arguments import (
    Arguments,
    ConstantArgument,
    IntegerArgument,
    PointerArgument,
)
from ferrule.frontends.triton.installed import Kernel
from ferrule.frontends.triton.tensors import REFERENCE
from ferrule.specs import Condition, Dim
from ferrule.specs.deferred import dataclass

_OPTIONS: Final = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class Fit(Protocol):
    """Which calls a configuration is for."""

    def condition(self, kernel: Kernel, arguments: Arguments) -> Condition | bool:
        """The condition of a call; False for no call, True for every one."""
        ...


@dataclass(frozen=True, slots=True)
class AtMost:
    """Calls whose size is at most a number."""

    size: str
    most: int

    def __str__(self) -> str:
        return f"{self.size} <= {self.most}"

    def condition(self, kernel: Kernel, arguments: Arguments) -> Condition | bool:
        """See `Fit`."""
        size = _size(self.size, kernel, arguments)
        return size <= self.most


@dataclass(frozen=True, slots=True)
class SameKey:
    """Calls with the key of an autotuner: values of parameters, and dtypes of tensors.

    `fuzzy`: numbers in it may be others.
    """

    values: tuple[Any, ...]
    dtypes: tuple[str, ...]
    fuzzy: bool = False

    def __str__(self) -> str:
        return "every other call" if self.fuzzy else f"the key {[*self.values, *self.dtypes]}"

    def condition(self, kernel: Kernel, arguments: Arguments) -> Condition | bool:
        """See `Fit`."""
        found = sorted(
            f"torch.{a.tensor.dtype.name}" for a in arguments.each if isinstance(a, PointerArgument)
        )
        if len(self.values) != len(kernel.key) or sorted(self.dtypes) != found:
            return False
        known = {argument.name: argument for argument in arguments.each}
        parts = [
            self._part(known[name], value)
            for name, value in zip(kernel.key, self.values, strict=True)
        ]
        if False in parts:
            return False
        conditions = [part for part in parts if not isinstance(part, bool)]
        return reduce(lambda left, right: left & right, conditions) if conditions else True

    def _part(self, argument: Any, value: Any) -> Condition | bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.fuzzy and is_number:
            return True
        match argument:
            case IntegerArgument(size=size) if is_number and isinstance(value, int):
                return size == value if isinstance(size, int) else specs.equal(size, value)
            case ConstantArgument(value=constant):
                return bool(constant == value and type(constant) is type(value))
        return False


@dataclass(frozen=True, slots=True)
class Choice:
    """Configurations with the calls that they are for, in the order in which they are tried; the
    last one without is for every other call."""

    cases: tuple[tuple[Fit | None, Any], ...]
    source: str = "choose"


def by_size(size: str, configs: Mapping[int, Any], *, nearest: bool = False) -> Choice:
    """Configurations by buckets of a size, a parameter, a symbol or "x.shape[0]" of the kernel.

    A call takes that of the smallest number which is at least its size, beyond the largest number
    that one; with `nearest` that of the number which is nearest to its size, the earlier one of
    two.  Raises TypeError for numbers that are none, ValueError without configurations.
    """
    if not isinstance(size, str):
        raise TypeError(f"by_size: the size is a name or x.shape[0], but got {size!r}")
    for number in configs:
        if type(number) is not int or number < 0:
            raise TypeError(
                f"by_size: the configs are by numbers of at least 0, but got {number!r}"
            )
    if not configs:
        raise ValueError(f"by_size: there is no config for any {size}")
    order = {number: at for at, number in enumerate(configs)}
    numbers = sorted(configs)
    cases: list[tuple[Fit | None, Any]] = []
    for low, high in zip(numbers, numbers[1:], strict=False):
        between = (low + high - (order[low] > order[high])) // 2
        cases.append((AtMost(size, between if nearest else low), configs[low]))
    return Choice((*cases, (None, configs[numbers[-1]])))


def vllm_configs(path: str | Path, size: str, *, constants: Sequence[str] | None = None) -> Choice:
    """The configurations of a JSON file of vLLM or SGLang, of `fused_moe` or of block-scaled
    matmuls: by a number of rows, of which a call takes the nearest.

    `size` is the name of that number in the kernel; what is in `constants`, by default everything
    but Triton's options, is a constant of the kernel.  Raises OSError for a file that cannot be
    read, CompileError for one of another form.
    """
    told = _read(path)
    told.pop("triton_version", None)
    configs = {}
    for number, config in told.items():
        if not number.isdecimal() or not isinstance(config, dict):
            raise _malformed(path, f"{number!r}: {config!r}", '{"16": {"BLOCK_SIZE_M": 16, …}, …}')
        named = {
            k: v for k, v in config.items() if constants is None or k in (*constants, *_OPTIONS)
        }
        configs[int(number)] = _config(path, named)
    if not configs:
        raise _malformed(path, "no configs", '{"16": {"BLOCK_SIZE_M": 16, …}, …}')
    return Choice(by_size(size, configs, nearest=True).cases, str(path))


def fla_configs(path: str | Path) -> Choice:
    """The configurations of a JSON file of flash-linear-attention, by the autotuner's key.

    A call takes the entry with its key, otherwise the first whose key differs in numbers alone,
    otherwise the file's `default_config`, as that library does.  Raises OSError for a file that
    cannot be read, CompileError for one of another form.
    """
    told = _read(path)
    wanted = '{"autotune_entries": {…: {"autotune_key": […], "config": {"kwargs": {…}, …}}}, …}'
    entries = told.get("autotune_entries") or {}
    default = told.get("default_config")
    if not isinstance(entries, dict) or not isinstance(default, dict | None):
        raise _malformed(path, "other entries", wanted)
    if not entries and default is None:
        default = told if "kwargs" in told else None
    exact: list[tuple[Fit | None, Any]] = []
    fuzzy: list[tuple[Fit | None, Any]] = []
    for entry in entries.values():
        parts = entry if isinstance(entry, dict) else {}
        key, config = parts.get("autotune_key"), parts.get("config")
        if not isinstance(key, list) or not isinstance(config, dict):
            raise _malformed(path, f"the entry {entry!r}", wanted)
        dtypes = tuple(each for each in key if isinstance(each, str) and each.startswith("torch."))
        values = tuple(key[: len(key) - len(dtypes)])
        made = _fla_config(path, config)
        exact.append((SameKey(values, dtypes), made))
        fuzzy.append((SameKey(values, dtypes, fuzzy=True), made))
    last = [] if default is None else [(None, _fla_config(path, default))]
    if not exact and not last:
        raise _malformed(path, "no configs", wanted)
    return Choice((*exact, *fuzzy, *last), str(path))


def _fla_config(path: str | Path, told: Mapping[str, Any]) -> Any:
    constants = told.get("kwargs")
    if not isinstance(constants, dict):
        raise _malformed(path, f"the config {told!r}", '{"kwargs": {…}, "num_warps": 4, …}')
    options = {name: told[name] for name in _OPTIONS if told.get(name) is not None}
    return _config(path, {**constants, **options})


def _config(path: str | Path, told: Mapping[str, Any]) -> Any:
    for name, value in told.items():
        if not isinstance(value, int | float | str | None):
            raise _malformed(path, f"{name!r}: {value!r}", "numbers")
    constants = {name: value for name, value in told.items() if name not in _OPTIONS}
    options = {name: value for name, value in told.items() if name in _OPTIONS}
    return packages.load("triton", "triton").Config(constants, **options)


def _read(path: str | Path) -> dict[str, Any]:
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CompileError(f"{path} is no file of configs: {error}") from None
    if not isinstance(told, dict):
        raise _malformed(path, f"a {type(told).__name__}", "an object by sizes or keys")
    return told


def _malformed(path: str | Path, found: str, wanted: str) -> CompileError:
    return CompileError(
        Diagnostic(f"{path} is no file of configs: it has {found}", expected=wanted)
    )


def _size(text: str, kernel: Kernel, arguments: Arguments) -> Dim:
    """A size of the call: a parameter, a symbol, or one of a tensor."""
    for argument in arguments.each:
        if isinstance(argument, IntegerArgument) and argument.name == text:
            return argument.size
    names = {name: symbol for symbol, name in arguments.signature.known.items()}
    if text in names:
        return names[text]
    reference = REFERENCE.fullmatch(text.replace(" ", ""))
    tensors = {a.name: a.tensor for a in arguments.each if isinstance(a, PointerArgument)}
    if reference is not None and reference["of"] in tensors:
        return _referred(tensors[reference["of"]], reference, text, kernel)
    raise CompileError(
        Diagnostic(
            f"{kernel.name}: a config is chosen by {text!r}, which is no size of a call",
            expected=", ".join(_sizes(arguments, tensors)),
        )
    )


def _referred(tensor: specs.Tensor, reference: Any, text: str, kernel: Kernel) -> Dim:
    if reference["numel"]:
        return tensor.numel
    dims = tensor.shape if reference["shape"] else tensor.strides
    axis = int(reference["axis"] or reference["dim"])
    if not -len(dims) <= axis < len(dims):
        raise CompileError(f"{kernel.name}: {text} is none of the {len(dims)} dims of the tensor")
    return dims[axis]


def _sizes(arguments: Arguments, tensors: Mapping[str, Any]) -> Iterator[str]:
    yield from (a.name for a in arguments.each if isinstance(a, IntegerArgument))
    yield from arguments.signature.known.values()
    yield from (f"{name}.shape[0]" for name in tensors)
