"""`fe.type_info`: what tvm-ffi knows of a type, and the structs that it is read from."""

from __future__ import annotations

import ctypes
import dataclasses

import pytest
import tvm_ffi
from registered import base_class, node_class

import ferrule as fe
from ferrule.compiler.support import typetable
from ferrule.runtime.llvm.layouts import Layout
from ferrule.runtime.values import typeinfo


def test_fields_methods_and_ancestors_of_a_type() -> None:
    info = fe.type_info(node_class())
    assert (info.type_key, info.ancestors) == (
        "ferrule.test.Node", ("ffi.Object", "ferrule.test.Base"),
    )  # fmt: skip
    assert {f.name: f.type for f in info.fields} == {
        "number": "int", "label": "str", "weight": "float", "ready": "bool",
        "limit": "Optional[int]", "sizes": "Array[int]", "inner": "Optional[ferrule.test.Base]",
        "held": "Any",
    }  # fmt: skip
    number, label = info.field("number"), info.field("label")
    assert number is not None
    assert label is not None
    assert (number.offset, number.size, number.writable) == (24, 8, True)
    assert label.offset > number.offset
    assert info.field("nothing") is None


def test_a_type_key_an_object_and_a_class_are_the_same_type() -> None:
    info = fe.type_info("ferrule.test.Base")
    assert info == fe.type_info(base_class()) == fe.type_info(base_class()(1))
    assert fe.type_info(tvm_ffi.Array([1])).type_key == "ffi.Array"
    assert fe.type_info("ffi.Object").ancestors == ()


def test_methods_say_what_they_take_and_give() -> None:
    import tvm_ffi.testing

    info = fe.type_info(tvm_ffi.testing.TestIntPair)
    method = info.method("sum")
    assert method is not None
    assert (str(method), method.static) == ("sum() -> int", False)
    assert not info.fields[0].writable
    assert info.method("nothing") is None


def test_the_text_is_to_be_read() -> None:
    lines = repr(fe.type_info(base_class())).splitlines()
    assert lines[0].startswith("ferrule.test.Base < ffi.Object  (type index ")
    assert lines[1:] == ["  number: int", "  label: str"]
    import tvm_ffi.testing

    text = repr(fe.type_info(tvm_ffi.testing.TestIntPair))
    assert "  a: int  (read-only)" in text
    with pytest.raises(dataclasses.FrozenInstanceError):
        fe.type_info("ffi.Array").type_key = "other"  # type: ignore[misc]


def test_what_is_no_type_is_refused() -> None:
    with pytest.raises(TypeError, match="tvm-ffi has no type 'ferrule.test.Nobody': import"):
        fe.type_info("ferrule.test.Nobody")
    for other in (3, int, None):
        with pytest.raises(TypeError, match="expected a class that is registered with tvm-ffi"):
            fe.type_info(other)


@pytest.mark.parametrize(
    ("schema", "result"),
    [
        ({"type": "ffi.Function", "args": [{"type": "int"}, {"type": "float"}]}, ["float"]),
        (
            {"type": "ffi.Function", "named_args": {
                "return": [{"type": "int"}], "params": [{"type": "float"}]}},
            ["float"],
        ),
    ],
)  # fmt: skip
def test_signatures_of_older_and_newer_versions_are_read(
    schema: dict[str, object], result: list[str]
) -> None:
    params, returned = typeinfo._function_schema(schema)
    assert [each["type"] for each in params or ()] == result
    assert returned == {"type": "int"}


@pytest.mark.parametrize(
    ("struct", "layout"),
    [
        (typeinfo.CTypeInfo, typetable.TYPE_INFO),
        (typeinfo.CFieldInfo, typetable.FIELD_INFO),
        (typeinfo.CMethodInfo, typetable.METHOD_INFO),
    ],
)
def test_generated_code_and_python_read_the_same_structs(
    struct: type[ctypes.Structure], layout: Layout
) -> None:
    offsets = {name: getattr(struct, name).offset for name, *_ in struct._fields_}
    assert offsets == {name: layout.offset(name) for name in layout.names}
    assert ctypes.sizeof(struct) == layout.size
