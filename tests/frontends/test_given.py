"""What callers hand to a frontend by mistake, and the names of C++."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ferrule import frontends, specs
from ferrule.compiler.errors import CompileError
from ferrule.compiler.hostcode import advice
from ferrule.compiler.mangled import by_spoken_names, spoken_name
from ferrule.frontends import given
from ferrule.frontends.examples import spec_of
from ferrule.frontends.sources import read_source
from ferrule.specs import Tensor

NO_FRONTENDS = ("fixed", "files")
OUT = Tensor("out", (4,), "float32")


@pytest.mark.parametrize(
    ("example", "wanted"),
    [
        (np.float32, "float32"),
        (np.dtype("int8"), "int8"),
        (int, "int64"),
        (bool, "bool"),
        ("uint16", "uint16"),
        (np.zeros((2, 3), np.float16)[:, ::2], "Tensor([n0, n1], float16)"),
    ],
)
def test_examples_are_dtypes_as_anybody_writes_them_and_real_tensors(
    example: Any, wanted: str
) -> None:
    assert str(specs.Signature("f", (spec_of("x", example),))) == f"f(x: {wanted})"


def test_a_spec_of_another_name_is_refused_or_renamed() -> None:
    assert spec_of("x", OUT, rename=True).name == "x"
    with pytest.raises(CompileError, match="the spec of the parameter 'x' has the name 'out'"):
        spec_of("x", OUT)


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ("complex64", "is Complex64, which no number of a call has"),
        ([1] * 999, "is .{120}…\n  expected: a fake tensor, a spec"),
        (object, "is <class 'object'>"),
    ],
)
def test_what_is_no_example_is_refused(example: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        spec_of("x", example)


@pytest.mark.parametrize("name", [name for name in frontends.__all__ if name not in NO_FRONTENDS])
def test_what_all_frontends_take_comes_last_and_in_one_order(name: str) -> None:
    taken = list(inspect.signature(getattr(frontends, name).compile).parameters)
    common = ["results", "zero", "name", "doc", "requires", "options"]
    shared = [each for each in taken if each in common]
    assert [each for each in taken if each != "more"][-len(shared) :] == shared
    assert shared == [each for each in common if each in shared] and shared[-1] == common[-1]
    assert ("requires" in shared) != (taken[1] == "signature")


def test_lists_of_texts_take_paths() -> None:
    assert given.texts("flags", ["-O3", Path("/usr")]) == ("-O3", "/usr")


@pytest.mark.parametrize("wrong", ["-O3 -g", {"N": 1}, None, [3], 3])
def test_what_is_no_list_of_texts(wrong: Any) -> None:
    with pytest.raises(TypeError, match="flags must be a list of texts, but got"):
        given.texts("flags", wrong)


def test_requirements_are_added_to_a_signature() -> None:
    n = specs.sym_int(symbol="n")
    signature = specs.Signature("f", [Tensor("x", (n,), "float32")], requires=[n < 9])
    assert given.requiring(signature, []) is signature
    assert given.requiring(signature, [n > 2, n < 9]).text().endswith("requires n < 9, n > 2")
    with pytest.raises(CompileError, match="f: requires m < 3: the symbol m is in no parameter"):
        given.requiring(signature, [specs.sym_int(symbol="m") < 3])
    with pytest.raises(TypeError, match="f: requires must be a list, but got Comparison"):
        given.requiring(signature, n < 9)  # type: ignore[arg-type]


def test_results_are_names() -> None:
    assert given.names("out") == given.names(["out"]) == ("out",)
    for wrong in (OUT, [OUT]):
        with pytest.raises(TypeError, match="names of parameters, .* but got Tensor 'out'"):
            given.names(wrong)


def test_architectures_are_one_or_several() -> None:
    assert given.architectures("target", "sm_80, sm_90a,sm_80") == ("sm_80", "sm_90a")
    wrongs = ("cuda", "'cpu', or such as 'sm_90a'$"), ("SM-100F", "mean 'sm_100f'")
    wrong: Any
    for wrong, said in (*wrongs, (b"cpu", "target b'cpu' is no architecture")):
        with pytest.raises(CompileError, match=said):
            given.architectures("target", wrong, "'cpu', or ")


def test_code_for_the_cpu_takes_no_tensor_on_a_gpu() -> None:
    given.check_on_cpu([OUT], "f")
    with pytest.raises(CompileError, match="f: the parameter 'x' is on a GPU, but the target is"):
        given.check_on_cpu([Tensor("x", (specs.sym_int(),), "float32", device="cuda")], "f")


def test_a_source_is_what_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "latin.c"
    path.write_bytes(b"// caf\xe9\r\nint f;\r\n")
    source = read_source(path, "")
    assert (source.data, source.name) == (b"// caf\xe9\nint f;\n", str(path))


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z1kPffi", "k"),
        ("_ZN2ns3setEPff", "ns::set"),
        ("plain", "plain"),
        ("_Z5scaleIfLi4EEvPT_S0_i", "scale<float, 4>"),
        ("_ZN2ns5scaleI6__halfLb1ELxn3EEEvPT_", "ns::scale<__half, true, -3>"),
        ("_Z5scaleIPfEvT_", "_Z5scaleIPfEvT_"),
        ("_Z", "_Z"),
        ("_Z9x", "_Z9x"),
    ],
)
def test_names_are_spoken_as_the_source_has_them(symbol: str, name: str) -> None:
    assert spoken_name(symbol) == name


def test_overloads_keep_their_own_names() -> None:
    both = {each: each for each in ("_Z1fi", "_Z1ff")}
    assert by_spoken_names(["_Z1fi", "_Z1ff", "_Z1gv"]) == {**both, "g": "_Z1gv"}


@pytest.mark.parametrize(
    ("name", "symbols", "said"),
    [
        ("add", ["_Z3addPf"], 'C++ calls it _Z3addPf: declare it extern "C", or name it so'),
        ("add", ["add_"], "Fortran calls it add_: name it so, or declare it bind(C)"),
        ("ad", ["add", "sub"], "did you mean add?"),
        ("add", [], "functions that are static or inline have no name in an object"),
        ("add", ["scale"], None),
    ],
)
def test_a_function_that_is_not_there_has_advice(
    name: str, symbols: list[str], said: str | None
) -> None:
    assert advice.for_name(name, symbols) == said
