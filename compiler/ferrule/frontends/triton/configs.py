"""Configurations of autotuned kernels: `triton.Config` with constants and options of Triton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.installed import Kernel


def chosen_config(kernel: Kernel, config: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The constants and options of a configuration: one of the kernel's by its number, or another.

    Raises CompileError where a kernel has several and none is named, and for one that runs code
    before each launch.
    """
    found = _found(kernel, config)
    if found is None:
        return {}, {}
    if getattr(found, "pre_hook", None) is not None:
        raise CompileError(
            f"{kernel.name}: the config {found} has a pre_hook, Python code that runs before each "
            "launch: a compiled function runs none; do it in a function around it"
        )
    constants = dict(found.kwargs)
    options = {key: value for key, value in found.all_kwargs().items() if key not in constants}
    return constants, options


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
                    expected="a triton.Config, or the number of one of the kernel's",
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
