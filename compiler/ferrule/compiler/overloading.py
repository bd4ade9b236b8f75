"""The host module of an overload, made from the modules of its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.compiler.artefacts import Body, HostModule
from ferrule.compiler.cuda.code import DeviceCode, joined_code
from ferrule.compiler.wrapper.overloads import build_overloads
from ferrule.specs.overloads import Overloads


def overload_module(signature: Overloads, modules: Sequence[HostModule]) -> HostModule:
    """The module whose wrapper calls the first candidate that accepts the arguments."""
    candidates = [_numbered(i, module) for i, module in enumerate(modules)]
    wrapper = build_overloads(signature, candidates)
    pairs = zip(candidates, modules, strict=True)
    parts = tuple(replace(old.body.part, symbol=new.body.symbol) for new, old in pairs)
    links = dict.fromkeys(link for module in modules for link in module.body.links)
    body = Body("", "", (), device_code=_device_code(modules), parts=parts, links=tuple(links))
    level = max(module.opt_level for module in modules)
    needed = _needed(modules)
    return HostModule(signature, wrapper, body, level, tuple(modules), needed)


def _needed(modules: Sequence[HostModule]) -> frozenset[str] | None:
    """The handlers of the support code that the checks of all candidates need; None means all."""
    found: frozenset[str] = frozenset()
    for module in modules:
        if module.needed is None:
            return None
        found |= module.needed
    return found


def _numbered(position: int, module: HostModule) -> HostModule:
    """The module with a body symbol that is unique among the candidates."""
    symbol = f"{module.body.symbol}.{position}"
    return replace(module, body=replace(module.body, symbol=symbol))


def _device_code(modules: Sequence[HostModule]) -> DeviceCode | None:
    """The kernels of all candidates."""
    found = [code for module in modules if (code := module.body.device_code) is not None]
    return joined_code(found)
