"""Binding of arguments: the same outcome and the same words as Python's own functions."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule import specs
from ferrule.runtime.calls.callpath import bind
from ferrule.specs.text import marked

_NAMES = "abcd"


def _python(required: int, optional: int, unnamed: int, keywords: int) -> Any:
    names = _NAMES[: required + optional]
    params = [n if i < required else f"{n}={100 + i}" for i, n in enumerate(names)]
    listed = "".join(f"{name}, " for name in names)
    scope: dict[str, Any] = {}
    head = ", ".join(marked(params, unnamed, len(names) - keywords))
    exec(f"def f({head}): return [{listed}]", scope)
    return scope["f"]


def _params(required: int, optional: int) -> list[specs.Param]:
    return [
        specs.Scalar(name, specs.Int32, specs.REQUIRED if i < required else 100 + i)
        for i, name in enumerate(_NAMES[: required + optional])
    ]


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 3),
    st.integers(0, 1),
    st.integers(0, 6),
    st.lists(st.sampled_from([*_NAMES, "zz"]), max_size=4, unique=True),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_binds_like_python(
    required: int, optional: int, given: int, keywords: list[str], ways: tuple[int, int]
) -> None:
    count = required + optional
    unnamed, alone = min(ways[0], count), min(ways[1], count - min(ways[0], count))
    values = tuple(range(given))
    named = {name: 50 + i for i, name in enumerate(keywords)}
    try:
        expected: Any = _python(required, optional, unnamed, alone)(*values, **named)
    except TypeError as error:
        expected = str(error).split(". Did you mean")[0]
    try:
        params = _params(required, optional)
        signature = specs.Signature("f", tuple(params), None, unnamed, alone)
        places = {param.name: i for i, param in enumerate(params)}
        found: Any = bind(signature, places, (*values, *named.values()), tuple(named))
    except TypeError as error:
        found = str(error)
    assert found == expected
