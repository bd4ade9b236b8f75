"""`Recipe`: functions of a library that its build makes, such as those of a frontend."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ferrule.compiler import workers
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.joining import overload
from ferrule.compiler.progress import progress
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, init=False)
class Recipe:
    """One function of a library, made when the library is built: `make(*arguments)`.

        fe.Recipe(rms_norm, [("bf16", 4096), ("bf16", 16384), ("fp32", 4096)])

    `make` gives a compiled function, of whatever frontend. With several `variants` it is called for
    each, and the functions are joined in this order as by `ferrule.overload`. `name` is the name to
    export the function under, by default that of `make`.

    TypeError for a `make` that cannot be called and for variants that are no tuples of arguments,
    ValueError for no variant.
    """

    make: Callable[..., Function]
    variants: tuple[tuple[Any, ...], ...]
    name: str

    def __init__(
        self,
        make: Callable[..., Function],
        variants: Sequence[Sequence[Any]] = ((),),
        *,
        name: str = "",
    ) -> None:
        own = getattr(make, "__name__", None)
        if not callable(make) or own is None or isinstance(make, Function):
            raise TypeError(
                f"the make of a Recipe is a function that compiles one, but got {make!r}"
            )
        if not isinstance(name, str):
            raise TypeError(f"the name of Recipe({own}) must be a str, but got {name!r}")
        put = object.__setattr__
        put(self, "make", make)
        put(self, "variants", _checked(own, variants))
        put(self, "name", name or own)

    def compile(self) -> Function:
        """The function.  CompileError if a variant does not compile, or is no function."""
        made = [self.variant(number) for number in range(len(self.variants))]
        return made[0] if len(made) == 1 else overload(made, self.name)

    def variant(self, number: int) -> Function:
        """The function of one variant.  The same errors; they name the variant."""
        arguments = self.variants[number]
        said = f"{self.name}({', '.join(map(repr, arguments))})"
        try:
            found = self.make(*arguments)
        except CompileError as error:
            if len(self.variants) == 1:
                raise
            told = error.diagnostic
            raise CompileError(replace(told, notes=(*told.notes, f"this is {said}"))) from error
        if not isinstance(found, Function):
            raise CompileError(Diagnostic(f"{said} gave {found!r}", expected="a compiled function"))
        return found


def _checked(name: str, variants: object) -> tuple[tuple[Any, ...], ...]:
    wanted = f"the variants of Recipe({name}) are a list of tuples, the arguments of each"
    if isinstance(variants, str | bytes) or not isinstance(variants, Sequence):
        raise TypeError(f"{wanted}, but got {variants!r}")
    for each in variants:
        if isinstance(each, str | bytes) or not isinstance(each, Sequence):
            raise TypeError(f"{wanted}, but got {each!r} among them")
    if not variants:
        raise ValueError(f"{wanted}, but there is none")
    return tuple(tuple(each) for each in variants)


def made_at_once(recipes: Sequence[Recipe], count: int) -> Iterator[Function | Exception]:
    """The function of each recipe, or why there is none.

    The variants of all recipes are first compiled in so many processes, where this one can fork:
    they fill the caches, ferrule's and the frontend's own, and what this process then compiles is
    found there. A variant that ends its process is an error of its recipe.
    """
    every = [(each, number) for each in recipes for number in range(len(each.variants))]
    count = min(count, len(every)) if workers.forks() else 1
    died = _prepared(every, count) if count > 1 else []
    with progress("compiling", len(recipes), wanted=count < 2) as tell:
        for recipe in recipes:
            lost = [error for (each, _), error in died if each is recipe]
            try:
                yield lost[0] if lost else recipe.compile()
            except CompileError as error:
                yield error
            tell(recipe.name)


def _prepared(
    every: Sequence[tuple[Recipe, int]], count: int
) -> list[tuple[tuple[Recipe, int], workers.WorkerDied]]:
    """Compile these variants in other processes; those that ended theirs."""

    def work(payload: bytes) -> None:
        recipe, number = every[int(payload)]
        with contextlib.suppress(Exception):  # this process meets it again, and tells of it
            recipe.variant(number)

    died = []
    with progress("compiling", len(every)) as tell:
        payloads = [str(number).encode() for number in range(len(every))]
        for number, result in workers.run(work, payloads, count):
            tell(every[number][0].name)
            if isinstance(result, workers.WorkerDied):
                died.append((every[number], result))
    return died
