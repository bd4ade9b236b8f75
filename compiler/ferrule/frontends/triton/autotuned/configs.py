"""Configurations of autotuned kernels: `triton.Config`, with constants and options of Triton.

A function has one configuration, or one for each of several keys, which the call selects: a key
consists of the values of the parameters that the autotuner names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.arguments import Arguments, ConstantArgument, IntegerArgument
from ferrule.frontends.triton.autotuned.choosing import Choice, Fit
from ferrule.frontends.triton.installed import Kernel
from ferrule.specs import Condition
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """The kernel with the constants and options of a configuration, for a key; None: for all keys.

    `hook` is the configuration's pre_hook, which is called with the arguments before each launch.
    `fit` are the calls for which it was chosen, None: all; `config` is the configuration itself.
    """

    text: str
    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    key: tuple[int, ...] | None = None
    hook: Callable[[dict[str, Any]], Any] | None = None
    fit: Fit | None = None
    config: Any = None

    def condition(self, kernel: Kernel, arguments: Arguments) -> Condition | bool:
        """The condition of the calls that it is for; False for no call, True for every one."""
        if self.key is not None:
            return condition_of(kernel, arguments, self.key)
        return True if self.fit is None else self.fit.condition(kernel, arguments)


PLAIN: Final = Version("", {}, {})


def versions_of(kernel: Kernel, config: Any) -> tuple[Version, ...]:
    """The versions to compile for the argument `config`; a version for every other call comes last.

    Raises CompileError if a kernel has several configurations and none is named, and for a
    duplicate key.
    """
    if isinstance(config, Choice):
        return tuple(
            replace(_version(kernel, _found(kernel, each), None), fit=fit)
            for fit, each in config.cases
        )
    if not isinstance(config, Mapping):
        return (_version(kernel, _found(kernel, config), None),)
    if not config:
        raise CompileError(f"{kernel.name}: `config` names no config at all")
    keyed = [
        _version(kernel, _found(kernel, each), _key(kernel, key))
        for key, each in config.items()
        if key is not None
    ]
    keys = [version.key for version in keyed]
    for key in keys:
        if keys.count(key) > 1:
            raise CompileError(f"{kernel.name}: `config` has the key {key} twice")
    if None in config:
        keyed.append(_version(kernel, _found(kernel, config[None]), None))
    return tuple(keyed)


def one_of(config: Any, choose: Choice | None) -> Any:
    """The argument `config` or `choose`, of which one is given at most.

    Raises TypeError for a `choose` of another kind, CompileError for both.
    """
    if choose is None:
        return config
    if not isinstance(choose, Choice):
        raise TypeError(
            f"choose must be by_size(…), vllm_configs(…) or fla_configs(…), but got {choose!r}"
        )
    if config is not None:
        raise CompileError("config= names a config, and choose= several: give one of them")
    return choose


def condition_of(kernel: Kernel, arguments: Arguments, key: tuple[int, ...]) -> Condition:
    """The condition that a call has this key.  Raises CompileError for a key parameter that is not
    an integer of the call."""
    known = {argument.name: argument for argument in arguments.each}
    conditions: list[Condition] = []
    for name, value in zip(kernel.key, key, strict=True):
        match known[name]:
            case IntegerArgument(size=size):
                conditions.append(specs.equal(size, value))
            case ConstantArgument(value=constant) if constant == value:
                continue
            case _:
                raise CompileError(
                    f"{kernel.name}: the key says {value!r} of {name!r}, which is no integer that "
                    "a call tells"
                )
    if not conditions:
        return specs.equal(0, 0)
    return reduce(lambda left, right: left & right, conditions)


def _version(kernel: Kernel, found: Any, key: tuple[int, ...] | None) -> Version:
    if found is None:
        return PLAIN
    constants = dict(found.kwargs)
    options = {name: value for name, value in found.all_kwargs().items() if name not in constants}
    constants |= {name: value for name, value in options.items() if name in kernel.constexprs}
    shown = ", ".join(f"{name}={value}" for name, value in {**constants, **options}.items())
    return Version(shown, constants, options, key, getattr(found, "pre_hook", None), None, found)


def _key(kernel: Kernel, key: Any) -> tuple[int, ...]:
    values = key if isinstance(key, Sequence) else (key,)
    whole = isinstance(values, Sequence) and len(values) == len(kernel.key)
    if not kernel.key or not whole or not all(type(value) is int for value in values):
        raise CompileError(
            Diagnostic(
                f"{kernel.name}: {key!r} is no key of its configs",
                expected=f"integers for {', '.join(kernel.key)}; None for every other call"
                if kernel.key
                else "an autotuned kernel with a key",
            )
        )
    return tuple(values)


def _found(kernel: Kernel, config: Any) -> Any:
    configs = kernel.configs
    if isinstance(config, int) and not isinstance(config, bool):
        if not 0 <= config < len(configs):
            raise CompileError(
                f"{kernel.name} has {len(configs)} configs, so there is no config #{config}"
            )
        return configs[config]
    if config is not None:
        if not hasattr(config, "all_kwargs"):
            raise CompileError(
                Diagnostic(
                    f"{kernel.name}: the config is {config!r}",
                    expected="a triton.Config, the number of one of the kernel's, or a dict of "
                    "these by the key of a call",
                )
            )
        return config
    if len(configs) > 1:
        listed = tuple(f"#{number}: {each}" for number, each in enumerate(configs))
        raise CompileError(
            Diagnostic(
                f"{kernel.name} is autotuned over {len(configs)} configs, and none is named",
                expected="config=0, config=triton.Config(…), or what `tune` finds on a GPU",
                notes=listed,
            )
        )
    return configs[0] if configs else None
