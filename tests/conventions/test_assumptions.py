"""What a function assumes of its arguments, and what its author should know, is said."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import BuildWarning
from ferrule.compiler.conventions import Apart, Call, CFunction, FirstOf, Sequence
from ferrule.specs import Signature, Tensor

n = specs.sym_int64(symbol="n", divisibility=16)
m = specs.sym_int64(symbol="m")
x = Tensor("x", (n,), "float32", align=32)
y = Tensor("y", (m,), "float32")
SIG = Signature("f", [x, y])
COPY = CFunction("memmove", [y.data, x.data, x.nbytes])


@dataclass(frozen=True)
class Said:
    """A convention that does nothing but say something."""

    text: str
    when: Any = None

    def codes(self) -> tuple[()]:
        return ()

    def results(self) -> tuple[()]:
        return ()

    def emit(self, call: Call) -> None:
        call.assume(self.text)
        call.remark(f"remarked {self.text}")


def built(convention: Any = COPY, **more: Any) -> Any:
    return compiler.build(SIG, convention, **more)


def test_what_the_specs_promise_stands_in_documentation_and_notes() -> None:
    fn = built(doc="Copies x.")
    assert fn.notes == {"assumes": ["n % 16 == 0", "x is 32-byte aligned"]}
    assert fn.__doc__.endswith("\n\nCopies x.\n\nAssumes: n % 16 == 0, x is 32-byte aligned")
    assert built().__doc__.endswith(")\n\nAssumes: n % 16 == 0, x is 32-byte aligned")


def test_where_nothing_is_assumed_nothing_is_said() -> None:
    fn = compiler.build(Signature("g", [y]), CFunction("memmove", [y.data, y.data, y.nbytes]))
    assert fn.notes == {} and "Assumes" not in fn.__doc__


def test_what_build_is_told_and_conventions_find_comes_behind(tmp_path: Path) -> None:
    check = Sequence([Apart(y, read=[x]), COPY])
    fn = built(check, assumes=[m > 3, "y is sorted"], notes={"mine": 1})
    wanted = [
        *("n % 16 == 0", "x is 32-byte aligned", "m > 3", "y is sorted"),
        "y shares no memory with x",
    ]
    assert fn.notes == {"mine": 1, "assumes": wanted}
    fn.export_to_c(str(tmp_path / "f.o"))
    loaded = fe.runtime.load_module(str(tmp_path / "f.o")).f
    assert loaded.notes["assumes"] == wanted and ", ".join(wanted) in loaded.__doc__


def test_what_a_choice_assumes_is_not_assumed_of_every_call() -> None:
    only, choice = Apart(y, read=[x], when=m > 3), FirstOf([Said("a", when=m > 3), Said("b")])
    with pytest.warns(BuildWarning):
        fn = built(Sequence([only, choice, COPY, Said("c")]))
    assert fn.notes["assumes"][2:] == ["c"]


def test_remarks_are_warnings_of_the_line_that_builds() -> None:
    with pytest.warns(BuildWarning, match="f: remarked c") as caught:
        fn = built(Said("c"))
    assert fn.notes["remarks"] == ["remarked c"]
    assert [each.filename for each in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built()


@pytest.mark.parametrize(
    ("more", "kind", "said"),
    [
        ({"assumes": "n"}, TypeError, "f: assumes must be in a list, but got 'n'"),
        ({"assumes": [3]}, TypeError, "an assumption is a text or a condition, but got 3"),
        ({"notes": {"assumes": "x"}}, ValueError, r"f: notes\['assumes'\] is a list"),
    ],
)
def test_wrong_assumptions(more: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        built(**more)
