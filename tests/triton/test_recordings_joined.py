"""A call is like one recording in everything: what it is given, what was decided, what was taken.

Where each thing is checked by itself, a call that is like one recording in this and like another
one in that gets numbers that no host function computes.
"""

from __future__ import annotations

import enum
import math
import random
import struct
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}]}
KINDS = ("bool", "int", "float")


class Mode(enum.IntEnum):
    """Modes of a host function."""

    SUM = 3
    MEAN = 5


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(shape)


def recorded(host: Any, *arguments: Any) -> frontend.Launches:
    with frontend.recording() as launches:
        launches.call(host, *arguments)
    return launches


def of_numbers(hosts: ModuleType, whole: Callable[..., Any], real: Callable[..., Any]) -> Any:
    """A host function whose launch has these two numbers of its tensors' sizes and arguments."""

    def host(x: Any, w: Any, *more: Any) -> None:
        hosts.scaled[(1,)](x, w, w, x, whole(x, w, *more), 7, real(x, w, *more) * 1.0, BLOCK=128)

    return host


def numbers(gpu: FakeCuda) -> tuple[int, float]:
    """The two numbers that the kernel got."""
    (launch,) = gpu.launches()
    given = list(launch.parameters)
    if len(given[6]) != 4:  # an integer that is 1 in every call is compiled in
        given.insert(4, b"\1")
    return int.from_bytes(given[4], "little", signed=True), struct.unpack("f", given[6])[0]


def single(number: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))


Shapes = tuple[int, int]
Call = tuple[Shapes, tuple[Any, ...]]


def taken(
    gpu: FakeCuda, hosts: ModuleType, several: list[Call], calls: list[Call], whole: Any, real: Any
) -> list[Call]:
    """The calls that are taken; each gets the numbers that the host function gives."""
    host = of_numbers(hosts, whole, real)
    first, *others = [recorded(host, *map(zeros, shapes), *more) for shapes, more in several]
    function = first.compile(*others, **HOW)
    found = []
    for shapes, more in calls:
        gpu.clear()
        try:
            function(*(tensor(size)[0] for size in shapes), *more)
        except (ValueError, TypeError):
            continue
        tensors = [zeros(size) for size in shapes]
        wanted = whole(*tensors, *more), single(real(*tensors, *more))
        assert numbers(gpu) == wanted, (several, shapes, more)
        found.append((shapes, more))
    return found


def zero(*_: Any) -> int:
    return 0


def x_rows(x: Any, *_: Any) -> Any:
    return x.shape[0]


SAME: Shapes = (40, 20)
LONGER: Shapes = (60, 30)
CHOSEN: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "a bool and a float": (
        lambda x, w, p, on: 1 / (1 - p) if on and p > 0 else 1.0,
        (0.5, False),
        (0.0, True),
    ),
    "two bools": (lambda x, w, a, b: 2.0 if a != b else 1.0, (True, False), (False, True)),
    "a bool and an integer": (
        lambda x, w, k, on: k * 1.0 if on or k < 5 else 3.0,
        (9, True),
        (4, False),
    ),
    "a number of NumPy": (
        lambda x, w, k, p: p if k == 3 else 2.0,
        (np.int64(3), 0.5),
        (np.int64(5), 2.0),
    ),
    "an enumeration": (
        lambda x, w, k, p: 2.0 if k == Mode.SUM else p,
        (Mode.SUM, 0.5),
        (Mode.MEAN, 2.0),
    ),
    "a bool of NumPy": (lambda x, w, k, p: p if k else 3.0, (np.True_, 0.5), (np.False_, 3.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_recorded_values_hold_together(gpu: FakeCuda, hosts: ModuleType, name: str) -> None:
    real, *given = CHOSEN[name]
    several: list[Call] = [(SAME, each) for each in given]
    plain = [tuple(each.item() if hasattr(each, "item") else each for each in one) for one in given]
    calls: list[Call] = [(SAME, (a, b)) for a, _ in plain for _, b in plain]
    found = taken(gpu, hosts, several, calls, zero, real)
    assert {(SAME, each) for each in plain} <= {*found}


EXPLAINED: dict[str, tuple[Callable[..., Any], list[Call]]] = {
    "a size, or another one": (
        lambda x, w: 2 * x.shape[0] if w.shape[0] > 20 else w.shape[0],
        [((16, 32), ()), ((48, 16), ())],
    ),
    "an integer, or a size": (
        lambda x, w, k: k if k > 5 else x.shape[0],
        [((16, 8), (4,)), ((32, 8), (32,))],
    ),
    "an integer that is taken": (
        lambda x, w, k: int(k),
        [((50, 8), (50,)), ((90, 8), (90,))],
    ),
    "a part of a size": (
        lambda x, w: int(x.shape[0] * 0.5),
        [((40, 20), ()), ((60, 30), ())],
    ),
    "a float that is rounded": (
        lambda x, w, p: round(p),
        [((50, 8), (0.25,)), ((150, 8), (0.75,))],
    ),
    "a list": (
        lambda x, w: len([0] * x.shape[0]) + 3,
        [((40, 43), ()), ((60, 63), ())],
    ),
    "a key of a dict": (
        lambda x, w, k: {4: 40, 5: 60}.get(k, 7),
        [((40, 8), (4,)), ((60, 8), (5,))],
    ),
    "a constant on each side": (
        lambda x, w, p: 40 if p > 0 else 60,
        [((40, 8), (0.5,)), ((60, 8), (-0.5,))],
    ),
    "a constant of a bool": (
        lambda x, w, on: 40 if on else 60,
        [((40, 8), (True,)), ((60, 8), (False,))],
    ),
}


def crossed(several: list[Call]) -> list[Call]:
    """Calls with each size and argument of one recording or another, and with others."""
    rows, columns, given = (
        {shapes[0] for shapes, _ in several} | {45},
        {shapes[1] for shapes, _ in several} | {25},
        {more for _, more in several},
    )
    return [((x, w), more) for x in rows for w in columns for more in given]


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_explains_a_number_has_its_value(gpu: FakeCuda, hosts: ModuleType, name: str) -> None:
    """A size that had its values in all recordings is not what the number was made of."""
    whole, several = EXPLAINED[name]
    found = taken(gpu, hosts, several, crossed(several), whole, zero)
    assert {*several} <= {*found}


def test_a_float_that_an_argument_was_by_chance(gpu: FakeCuda, hosts: ModuleType) -> None:
    def real(x: Any, w: Any, p: float, q: float) -> Any:
        return 2 * p if p > 1 else q

    several: list[Call] = [(SAME, (2.0, 4.0)), (SAME, (0.5, 7.0))]
    calls: list[Call] = [(SAME, (p, q)) for p in (2.0, 3.0, 0.5) for q in (4.0, 7.0, 5.0)]
    found = taken(gpu, hosts, several, calls, zero, real)
    assert {*several} <= {*found}


def test_numbers_of_a_launch_alone_hold_for_what_was_taken(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    """Also where a recording has no `call`, or is of one launch."""

    def host(x: Any, w: Any) -> None:
        n = 2 * x.shape[0] if w.shape[0] > 20 else w.shape[0]
        hosts.scaled[(1,)](x, w, w, x, n, 7, 1.0, BLOCK=128)

    found = []
    for shapes in ((16, 32), (48, 16)):
        tensors = [*map(zeros, shapes)]
        with frontend.recording() as launches:
            host(*tensors)
        found.append(launches)
    one, other = found
    for function in (one.compile(other, results=(), **HOW), one[0].compile(other[0], **HOW)):
        names = [each.name for each in function.signature.params]
        sizes = {"x": 16, "total": 25, "w": 25, "weight": 25, "out": 16}
        with pytest.raises(ValueError, match="no call of this kind"):
            function(*(tensor(sizes[name])[0] for name in names))


@pytest.mark.parametrize(
    "values",
    [
        (b"mean", b"sum"),
        (b"sum", b"sum"),
        (1 << 70, 1 << 71),
        (1 << 70, 1 << 70),
        (1, 0.5),
        (1, True),
        (None, 2),
        (abs, max),
        (int, float),
        (1j, 2j),
        ((1, 2), (3, 4)),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_what_no_call_can_tell_is_refused_by_name(hosts: ModuleType, values: Any) -> None:
    def host(x: Any, mode: Any, p: float) -> None:
        hosts.scaled[(1,)](x, x, x, x, 5, 7, p, BLOCK=128)

    one, other = [recorded(host, zeros(40), value, 0.5) for value in values]
    for fixed in ([], ["mode"]):
        if fixed and repr(values[0]) == repr(values[1]):
            one.compile(other, fixed=fixed, **HOW)
            continue
        with pytest.raises(fe.CompileError, match=r"host: mode is .*no parameter of a call can"):
            one.compile(other, fixed=fixed, **HOW)


class Config:
    """Settings without an equality."""

    eps = 1e-5


def test_objects_without_an_equality_are_refused_by_name(gpu: FakeCuda, hosts: ModuleType) -> None:
    """What the host function reads of another object may be something else; a person knows, and of
    the context of autograd everybody does."""
    import torch

    def host(x: Any, config: Any, ctx: Any) -> None:
        hosts.scaled[(1,)](x, x, x, x, 5, 7, config.eps, BLOCK=128)

    def several(*configs: Config) -> list[frontend.Launches]:
        contexts = (torch.autograd.function.FunctionCtx() for _ in configs)
        arguments = zip((40, 60), configs, contexts, strict=True)
        return [recorded(host, zeros(n), *more) for n, *more in arguments]

    same = Config()
    one, other = several(same, same)
    one.compile(other, **HOW)(tensor(50)[0])
    one, other = several(Config(), Config())
    with pytest.raises(fe.CompileError, match="host: config is another Config in each recording"):
        one.compile(other, **HOW)
    one.compile(other, fixed=["config"], **HOW)(tensor(50)[0])


Texts = list[tuple[int, str | None]]
TEXTS: dict[str, Texts] = {
    "two texts": [(40, "mean"), (60, "mean"), (40, "sum"), (90, "sum")],
    "a text once": [(40, "mean"), (60, "mean"), (50, "sum")],
    "none": [(40, None), (60, None), (40, "sum"), (90, "sum")],
    "other orders": [(40, "sum"), (60, "mean"), (50, "sum"), (50, "mean"), (45, "max")],
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("general", [False, True])
def test_a_text_chooses_among_its_recordings(
    gpu: FakeCuda, hosts: ModuleType, name: str, general: bool
) -> None:
    def host(x: Any, how: str | None = "mean", p: float = 0.5) -> None:
        scale = p / x.shape[0] if how == "mean" else p if how == "sum" else -p
        hosts.scaled[(1,)](x, x, x, x, 5, 7, scale, BLOCK=128)

    several = TEXTS[name]
    floats = (float(at + 1) for at in range(len(several)))
    first, *others = [recorded(host, zeros(n), how, next(floats)) for n, how in several]
    function = first.compile(*others, general=general, **HOW)
    known = {how: [n for n, each in several if each == how] for _, how in several}
    calls = [(n, how) for n in (30, 40, 45, 50, 55, 75, 90) for how in ("mean", "sum", "max", None)]
    for n, how in calls:
        gpu.clear()
        sizes = known.get(how, [])
        is_within = bool(sizes) and min(sizes) <= n <= max(sizes)
        if not is_within and not (general and len(sizes) > 1):
            with pytest.raises((TypeError, ValueError), match="refuse|expected"):
                function(tensor(n)[0], how, 2.0)
            continue
        p = 2.0 if len(sizes) > 1 else 1.0 + several.index((n, how))
        function(tensor(n)[0], how, p)
        scale = p / n if how == "mean" else p if how == "sum" else -p
        assert numbers(gpu)[1] == single(scale), (n, how)


def test_names_of_general_are_those_of_a_text(hosts: ModuleType) -> None:
    def host(x: Any, how: str) -> None:
        hosts.scaled[(1,)](x, x, x, x, 5, 7, 1.0, BLOCK=128)

    several = [recorded(host, zeros(n), how) for n, how in TEXTS["a text once"]]
    several[0].compile(*several[1:], general=["x_0"], **HOW)
    with pytest.raises(fe.CompileError, match="general names 'y_0', which is no size or number"):
        several[0].compile(*several[1:], general=["y_0"], **HOW)
    with pytest.raises(fe.CompileError, match="host: how is 'mean' .*another"):
        several[0].compile(*several[1:], fixed=["how"], **HOW)


def test_numbers_of_other_kinds_are_those_of_python(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, mode: Any, scale: Any, on: Any) -> None:
        hosts.scaled[(1,)](x, x, x, x, 5, 7, 1.0, BLOCK=128)

    given = (Mode.SUM, np.float64(0.5), np.True_)
    one, other = [recorded(host, zeros(n), *given) for n in (40, 60)]
    function = one.compile(other, **HOW)
    x = tensor(50)[0]
    function(x, 3, 0.5, True)
    for wrong in ((5, 0.5, True), (3, 0.25, True), (3, 0.5, False)):
        with pytest.raises(ValueError, match="expected .*, but got "):
            function(x, *wrong)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'on'"):
        function(x, 3, 0.5)


# ---- random host functions ----

VALUES: dict[str, tuple[Any, ...]] = {
    "size": (2, 3, 4, 6),
    "int": (2, 3, 4, 6),
    "float": (0.0, 0.5, 1.0, 2.0, 3.0),
    "bool": (False, True),
}


class Text:
    """Random expressions over `n`, `m`, and parameters of these kinds."""

    def __init__(self, chance: random.Random, kinds: list[str]) -> None:
        self.chance = chance
        self.names = {
            kind: [f"p{at}" for at, each in enumerate(kinds) if each == kind] for kind in KINDS
        }

    def of(self, depth: int, *forms: str) -> str:
        """One of these forms: `I`, `F` and `C` in it are integers, floats and conditions."""
        made = {"I": self.integer, "F": self.real, "C": self.condition}
        form = self.chance.choice(forms)
        return "".join(made[each](depth - 1) if each in made else each for each in form)

    def integer(self, depth: int) -> str:
        """An integer."""
        if depth == 0 or self.chance.random() < 0.2:
            return self.chance.choice(["n", "m", "2", "3", *2 * self.names["int"]])
        return self.of(
            depth, "(I + 1)", "(I * 2)", "(I // 2)", "(I + I)", "(I - I)", "int(F)", "round(F)",
            "len([0] * I)", "{2: 3, 4: 2}.get(I, 6)", "min(I, I)", "int(I)", "(C + I)",
            *5 * ("(I if C else I)", "(3 if C else 6)"),
        )  # fmt: skip

    def real(self, depth: int) -> str:
        """A float."""
        if depth == 0 or self.chance.random() < 0.2:
            return self.chance.choice(["0.5", "1.0", *3 * self.names["float"]])
        return self.of(
            depth, "(F + F)", "(F * 2)", "(I * 0.5)", "(I / 4)", "float(I)", "float(F)",
            "max(F, F)", "math.sqrt(abs(F))", *3 * ("(F if C else F)", "(1.0 if C else 3.0)"),
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        """A condition."""
        if self.names["bool"] and self.chance.random() < 0.4:
            return self.chance.choice(self.names["bool"])
        if depth <= 0:
            return self.of(1, "(I > 3)", "(F > 0.5)", "(I > I)", "(I == 2)")
        return self.of(
            depth, "(not C)", "(C and C)", "(C or C)", "(C == C)", "(I % 2 == 0)", "(F > F)"
        )


Drawn = tuple[Any, ...]
"""Two sizes and the arguments of a call."""


def changed(chance: random.Random, call: Drawn, kinds: list[str], part: float) -> Drawn:
    """A call in which about this part is drawn again."""
    return tuple(
        chance.choice(VALUES[kind]) if chance.random() < part else value
        for kind, value in zip(kinds, call, strict=True)
    )


def coinciding(whole: Any, real: Any, call: Drawn) -> Drawn:
    """A call in which a size, and a float, are what the host function makes, by chance."""
    x, w = (SimpleNamespace(shape=(size,)) for size in call[:2])
    size, number = whole(x, w, *call[2:]), real(x, w, *call[2:]) * 1.0
    floats = (number if isinstance(each, float) else each for each in call[2:])
    return call[0], max(size, 2), *floats


def functions(seed: int) -> tuple[str, Any, Any, list[Call], list[Call]]:
    """A random host function as its text and two numbers, with recordings and calls of it."""
    chance = random.Random(seed)
    kinds = ["bool", *(chance.choice(KINDS) for _ in range(chance.choice((1, 2))))]
    text = Text(chance, kinds)
    pair = (text.integer(3), "1.0") if chance.random() < 0.5 else ("5", text.real(3))
    given = "".join(f", p{at}" for at in range(len(kinds)))
    sizes = "(lambda n, m: {})(x.shape[0], w.shape[0])"
    sources = [f"lambda x, w{given}: {sizes.format(each)}" for each in pair]
    whole, real = (eval(each, {"math": math}) for each in sources)
    all_kinds = ["size", "size", *kinds]
    first = changed(chance, tuple(all_kinds), all_kinds, 1.0)
    count = chance.choice((1, 1, 2))
    several = [first, *(changed(chance, first, all_kinds, 0.6) for _ in range(count))]
    if chance.random() < 0.5:
        several = [coinciding(whole, real, call) for call in several]
    mixed = [tuple(chance.choice(each) for each in zip(*several, strict=True)) for _ in range(30)]
    others = [changed(chance, each, all_kinds, 0.2) for each in mixed]
    return "\n".join(sources), whole, real, calls_of(several), calls_of([*mixed, *others])


def calls_of(several: list[Drawn]) -> list[Call]:
    """These calls, each once."""
    return [((x, w), more) for x, w, *rest in dict.fromkeys(several) for more in [tuple(rest)]]


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_random_host_functions_are_what_they_were(
    gpu: FakeCuda, hosts: ModuleType, first: int
) -> None:
    """Sizes and arguments are small numbers, which are equal to each other by chance."""
    compiled = count = 0
    for seed in range(first, first + 10):
        text, whole, real, several, calls = functions(seed)
        try:
            found = taken(gpu, hosts, several, [*several, *calls], whole, real)
        except fe.CompileError:
            continue
        assert {*several} <= {*found}, text
        compiled, count = compiled + 1, count + len(found)
    assert compiled >= 5 and count >= 3 * compiled
