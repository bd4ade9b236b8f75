"""The installed Triton, which is imported on first use, and the parts of its kernel objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import packages
from ferrule.frontends.given import brief
from ferrule.specs.deferred import dataclass

OLDEST: Final = (3, 6)
"""The oldest version whose launcher and metadata this frontend knows."""


def triton() -> Any:
    """The package.  Raises ImportError if it is not installed, CompileError if it is too old."""
    found = packages.load("triton", "triton")
    numbers = re.findall(r"\d+", str(found.__version__))[:2]
    if tuple(map(int, numbers)) < OLDEST:
        raise CompileError(
            Diagnostic(
                f"Triton {found.__version__} is too old",
                expected=f"triton {_dotted(OLDEST)} or newer",
                hint="pip install --upgrade 'ferrule[triton]'",
            )
        )
    return found


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A parameter of a kernel, from its Python signature.

    `path` is its position, followed by the positions in the tuples of which it is an element.
    `type` is the Triton type of its annotation, "" without one.  `specialised`: whether Triton may
    fold it, or assume that 16 divides it; `aligned`: whether it may assume the latter.  `reads`: it
    is a pointer through which nothing is stored.
    """

    name: str
    path: tuple[int, ...]
    is_constexpr: bool
    type: str
    has_default: bool
    default: Any
    specialised: bool
    aligned: bool
    reads: bool


@dataclass(frozen=True, slots=True)
class Pruning:
    """The settings of an autotuner for pruning: a function that removes configurations, one that
    estimates the time of a configuration, and how many of the best estimates are measured."""

    early: Callable[..., Any] | None = None
    model: Callable[..., Any] | None = None
    top: int | float = 1.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of `triton.jit` or `gluon.jit`, and the decorators around it.

    `configs` are those of an autotuner, `key` the names of its key that are parameters, `pruning`
    its pruning settings, `heuristics` the functions by the name of the parameter whose value they
    choose, `tuples` the names of the elements of each parameter that is a tuple, in its shape.
    """

    function: Any
    name: str
    parameters: tuple[KernelParameter, ...]
    configs: tuple[Any, ...] = ()
    key: tuple[str, ...] = ()
    heuristics: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)
    tuples: Mapping[str, Any] = field(default_factory=dict)
    pruning: Pruning = Pruning()

    @property
    def is_gluon(self) -> bool:
        """Whether it is a kernel of Gluon, Triton's lower language."""
        return bool(self.function.is_gluon())

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def constexprs(self) -> frozenset[str]:
        """The names of the parameters whose values are compiled in."""
        return frozenset(each.name for each in self.parameters if each.is_constexpr)


def kernel_of(function: Any) -> Kernel:
    """The kernel inside the object that `compile` gets.  Raises CompileError if it is not a Triton
    kernel."""
    package = triton()
    configs: tuple[Any, ...] = ()
    key: tuple[str, ...] = ()
    heuristics: dict[str, Any] = {}
    pruning = Pruning()
    found = function
    while not isinstance(found, package.runtime.JITFunction):
        # A library's own tuner inherits from Triton's; any other wrapper only launches.
        if isinstance(found, package.runtime.Autotuner):
            configs = tuple(found.configs)
            key = tuple(name for name in found.keys if name in found.arg_names)
            early, top = found.early_config_prune, found.configs_top_k
            pruning = Pruning(early, found.perf_model, top)
        elif isinstance(found, package.runtime.Heuristics):
            heuristics = {**found.values, **heuristics}
        elif not isinstance(found, package.KernelInterface) or not hasattr(found, "fn"):
            raise CompileError(_no_kernel(function, found))
        found = found.fn
    name = str(found.__name__)
    if not name.isidentifier():
        raise CompileError(_no_kernel(function, found))
    parameters = tuple(_parameter(each) for each in found.params)
    return Kernel(found, name, parameters, configs, key, heuristics, pruning=pruning)


_HINTS: Final = {
    "InterpretedFunction": "TRITON_INTERPRET=1 makes kernels run in Python: unset it",
    "<lambda>": "give the kernel itself, without [grid], and the grid as grid=",
}


def _no_kernel(function: Any, layer: Any) -> Diagnostic:
    """The error about `function`, in which `layer` is the innermost object that was examined."""
    inside = "" if layer is function else f": inside of it is {brief(layer)}"
    kinds = (type(each).__name__ for each in (function, layer))
    hints = (_HINTS.get(each) for each in (getattr(function, "__name__", ""), *kinds))
    return Diagnostic(
        f"{function!r} is no Triton kernel{inside}",
        expected="a function decorated with triton.jit or gluon.jit, with or without "
        "triton.autotune, triton.heuristics and other wrappers that have the kernel as `fn`",
        hint=next(filter(None, hints), None),
    )


def _parameter(param: Any) -> KernelParameter:
    return KernelParameter(
        str(param.name),
        (int(param.num),),
        bool(param.is_constexpr),
        str(param.annotation_type),
        bool(param.has_default),
        param.default if param.has_default else None,
        not param.do_not_specialize,
        not param.do_not_specialize_on_alignment,
        bool(param.is_const),
    )
