"""The generated wrapper of an overload: its text, and which signatures exclude each other."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from llvm_text import verified

from ferrule.compiler.artefacts import Body
from ferrule.compiler.assemble import assemble
from ferrule.compiler.origin import host_module
from ferrule.compiler.overloading import overload_module
from ferrule.compiler.targets import host
from ferrule.compiler.wrapper.distinct import exclude_each_other
from ferrule.specs import Overloads, Signature, Sym, Tensor, parse_signature, sym_int


def body(*parameters: str) -> Body:
    declared = ", ".join(["ptr", *parameters])
    text = f"define i32 @ferrule_body({declared}) {{\n  ret i32 0\n}}\n"
    return Body(text, "ferrule_body", ())


def vector(dtype: str, n: Sym) -> Signature:
    return Signature("f", (Tensor("a", (n,), dtype, device="cpu"),))


def test_text(golden: Callable[[str, str], None]) -> None:
    signatures = [vector("float16", sym_int(divisibility=4)), vector("float16", sym_int())]
    modules = [host_module(each, body("ptr")) for each in signatures]
    text = verified(overload_module(Overloads("f", signatures), modules).wrapper)
    golden("special_and_general.ll", re.sub(r'\[\d+ x i8\] c"[^"]*"', '[… x i8] c"…"', text))


def test_names_that_llvm_cannot_read() -> None:
    signatures = [parse_signature(f"größe(k: {kind})") for kind in ("str", "int32")]
    modules = [
        host_module(signatures[0], body("ptr", "i64")),
        host_module(signatures[1], body("i32")),
    ]
    module = overload_module(Overloads("größe", signatures), modules)
    here = host()
    assert assemble(module, "größe", here.cpu, here.triple).data


ANY = "Tensor([n], float32, device=cpu)"


@pytest.mark.parametrize(
    ("left", "right", "excluded"),
    [
        (ANY, "Tensor([n], float16, device=cpu)", True),
        (ANY, "Tensor([n, 2], float32, device=cpu)", True),
        (ANY, "Tensor([n], float32, device=cuda)", True),
        (ANY, "Tensor([4], float32, device=cpu)", False),
        ("Tensor([3], float32, device=cpu)", "Tensor([4], float32, device=cpu)", True),
        ("Tensor([n], int8, device=cpu)", "Tensor([n], uint8, device=cpu)", False),
        (
            "Tensor([n], int8, device=cpu, exact=True)",
            "Tensor([n], uint8, device=cpu, exact=True)",
            True,
        ),
        (
            "Tensor([n], float32, device=cuda, device_id=0)",
            "Tensor([n], float32, device=cuda, device_id=1)",
            True,
        ),
        (ANY, "int32", True),
        (ANY, f"Optional[{ANY}]", False),
        (f"Optional[{ANY}]", "Optional[int32]", False),
        (f"Optional[{ANY}]", "int32", True),
        (f"Optional[{ANY}]", "None", False),
        (f"Optional[{ANY}]", "Pointer()", False),
        ("int32", "float32", False),
        ("int32", "str", True),
        ("int32", "Pointer()", False),
        ("Stream", "None", False),
        ("dtype", "str", False),
        ("Literal['a']", "Literal['b']", True),
        ("Literal['a']", "str", False),
        ("Literal[1]", "bool", False),
        ("Tuple[int32, str]", "Tuple[int32, int32]", True),
        ("Tuple[int32]", "Array[Any]", False),
        ("Shape([n])", "Shape([n, n])", True),
        ("Shape([n])", "Tuple[int32]", False),
        ("Union[int32, str]", "Union[bytes, Device]", False),
        ("Union[int32, str]", "bytes", True),
        ("Any", ANY, False),
        ("Object('a')", "Object('b')", False),
    ],
)
def test_signatures_that_exclude_each_other(left: str, right: str, excluded: bool) -> None:
    first, second = (parse_signature(f"f(a: {kind}) where n: int32") for kind in (left, right))
    assert exclude_each_other(first, second) is excluded
    assert exclude_each_other(second, first) is excluded


def test_another_number_of_arguments_excludes() -> None:
    one, two = parse_signature("f(a: int32)"), parse_signature("f(a: int32, b: int32)")
    assert exclude_each_other(one, two)
