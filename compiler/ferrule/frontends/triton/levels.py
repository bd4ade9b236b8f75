"""The assumptions of each variant of a kernel: those of the examples, those of a list, and the
levels of "dispatch".

A level leaves out what one operand lacks, and keeps everything about the others: a call with one
misaligned tensor, or one unusual stride, loses the wide loads of that tensor alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.arguments import (
    Arguments,
    DescriptorArgument,
    IntegerArgument,
    PointerArgument,
)
from ferrule.frontends.triton.installed import Kernel
from ferrule.specs import Dim, Sym, Tensor, symbols_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Compound

Specialise = Literal["check", "dispatch"] | Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Assumed:
    """The assumptions of one specialisation that specs do not guarantee, as names of parameters.

    `divisible`: a multiple of 16; `one`: equal to 1; `narrow`: fits 32 bits.  `name` is that of the
    variant, as callers read it.
    """

    divisible: frozenset[str] = frozenset()
    one: frozenset[str] = frozenset()
    narrow: frozenset[str] = frozenset()
    name: str = ""

    def without(self, names: frozenset[str], name: str) -> Assumed:
        """Those that say nothing about these parameters, except that they fit 32 bits."""
        return replace(self, divisible=self.divisible - names, one=self.one - names, name=name)


def levels(kernel: Kernel, arguments: Arguments, asked: Specialise) -> list[Assumed]:
    """The assumptions of each variant, the most special first.  Raises CompileError for what is no
    `specialize`."""
    if asked == "check":
        return [_as_examples_say(arguments)]
    if asked == "dispatch":
        return _dispatch(arguments)
    several = enumerate(_sequence(kernel, asked))
    return [replace(_named(kernel, arguments, each), name=f"#{at}") for at, each in several]


def _as_examples_say(arguments: Arguments) -> Assumed:
    return Assumed(
        frozenset(a.name for a in _hinted(arguments) if a.hint == 16),
        frozenset(a.name for a in _hinted(arguments) if a.hint == 1),
        frozenset(
            a.name
            for a in arguments.each
            if isinstance(a, IntegerArgument) and a.scalar is None and _is_narrow(a.size)
        ),
    )


def _dispatch(arguments: Arguments) -> list[Assumed]:
    """All assumptions; all but those about one operand, for each; fewer and fewer about all of
    them; none.  The stride of a last dim is mostly 1."""
    integers = [a for a in arguments.each if isinstance(a, IntegerArgument)]
    pointers = frozenset(a.name for a in arguments.each if isinstance(a, PointerArgument))
    last = {tensor.strides[-1] for tensor in _tensors(arguments) if tensor.strides}
    one = frozenset(a.name for a in integers if a.hint == 1 or a.size in last)
    narrow = frozenset(a.name for a in integers if a.scalar is None)
    divisible = frozenset(a.name for a in integers) - one
    everything = Assumed(pointers | divisible, one, narrow, "all")
    operands = dict(_operands(arguments, integers))
    sizes = divisible - {name for names in operands.values() for name in names}
    return [
        everything,
        *(everything.without(names, f"all but {name}") for name, names in operands.items()),
        everything.without(sizes, "all but sizes"),
        everything.without(divisible, "addresses and strides of 1"),
        Assumed(pointers, frozenset(), narrow, "addresses"),
        Assumed(name="nothing"),
    ]


def _operands(
    arguments: Arguments, integers: Sequence[IntegerArgument]
) -> Iterator[tuple[str, frozenset[str]]]:
    """The operands that callers give, with the parameters that follow from each alone: the address
    of a tensor and its strides that are no tensor's size, a number that is assumed to be 1."""
    sizes = {symbol for each in _tensors(arguments) for symbol in _symbols(each.shape)}
    for argument in arguments.each:
        if isinstance(argument, PointerArgument | DescriptorArgument) and not argument.made:
            own = set(_symbols(argument.tensor.strides)) - sizes
            strides = (a.name for a in integers if own.intersection(symbols_of(a.size)))
            yield argument.name, frozenset((argument.name, *strides))
        elif isinstance(argument, IntegerArgument) and argument.scalar and argument.hint == 1:
            yield argument.name, frozenset((argument.name,))


def _symbols(dims: Sequence[Dim]) -> Iterator[Sym]:
    return (symbol for dim in dims for symbol in symbols_of(dim))


def _tensors(arguments: Arguments) -> list[Tensor]:
    kinds = PointerArgument | DescriptorArgument
    return [a.tensor for a in arguments.each if isinstance(a, kinds)]


def _hinted(arguments: Arguments) -> list[PointerArgument | IntegerArgument]:
    return [a for a in arguments.each if isinstance(a, PointerArgument | IntegerArgument)]


def _sequence(kernel: Kernel, asked: object) -> Sequence[Mapping[str, object]]:
    if (
        isinstance(asked, str)
        or not isinstance(asked, Sequence)
        or not asked
        or not all(isinstance(each, Mapping) for each in asked)
    ):
        raise CompileError(
            Diagnostic(
                f"{kernel.name}: specialize is {asked!r}",
                expected='"check", "dispatch", or a list with what each specialisation assumes, '
                'such as [{"x": 16, "n": 16}, {"x": 16}, {}]',
            )
        )
    return asked


def _named(kernel: Kernel, arguments: Arguments, asked: Mapping[str, object]) -> Assumed:
    known = {a.name: a for a in _hinted(arguments)}
    for name, value in asked.items():
        integer = isinstance(known.get(name), IntegerArgument)
        allowed = ("16, 1, 'i32'" if integer else "16") if name in known else None
        values = (16, 1, "i32") if integer else (16,)
        if allowed is None or isinstance(value, bool) or value not in values:
            raise CompileError(
                Diagnostic(
                    f"{kernel.name}: specialize says {value!r} of {name!r}",
                    expected=allowed
                    or f"what is assumed of an integer or a tensor: {', '.join(known)}",
                )
            )
    return Assumed(
        frozenset(name for name, value in asked.items() if value == 16),
        frozenset(name for name, value in asked.items() if value == 1),
        frozenset(name for name, value in asked.items() if value == "i32"),
    )


def _is_narrow(size: Dim) -> bool:
    """Whether an expression consists of 32-bit sizes, so that its value is expected to fit 32
    bits."""
    return isinstance(size, Compound) and all(symbol.width == 32 for symbol in symbols_of(size))
