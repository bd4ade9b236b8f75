"""Metadata: it reads back, tvm-ffi understands it, and wrong metadata is refused in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tvm_ffi import core

from ferrule.runtime.binaries.metadata import DeviceImage, Metadata, MetadataError, read_metadata
from ferrule.runtime.binaries.typeschema import type_schema
from ferrule.specs import parse_signature

EVERY_KIND = (
    "f(a: Tensor([n0, 8], float32), w: Tensor([n0], int8, owning=True), k: int32 = 3, "
    "u: uint64, h: bfloat16, t: bool, s: Shape([n0]), p: Pointer(float32), st: Stream, "
    "e: EnvStream(cuda), g: Tuple[int32, None], o: Optional[Tensor([n0], int8)], "
    "v: Union[int32, str], c: Literal[3], d: Literal['x'], l: List[int32], m: Map[str, Any], "
    "q: Dict[str, float32], y: Array[Any], b: bytes, dt: dtype, dv: Device, fn: Function, "
    "mod: Module, any: Any, ob: Object('my.Type')) -> Tuple[int32, float32] where n0: int32"
)


def made(text: str = EVERY_KIND, **changes: Any) -> Metadata:
    return Metadata(parse_signature(text), "x86_64-linux-gnu", "x86-64", **changes)


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    whole = json.loads(made("f(k: int32)").text())
    change(whole["ferrule"])
    return json.dumps(whole)


def test_metadata_reads_back() -> None:
    image = DeviceImage("ptx", "sm_90a", ("kernel_0", "kernel_1"))
    metadata = made(features=("avx2", "fma"), images=(image,), abi=(0, 1, 6), version="9.8.7")
    assert read_metadata(metadata.text()) == metadata
    assert read_metadata(metadata.text().encode()) == metadata


def test_the_same_metadata_gives_the_same_text(golden: Callable[[str, str], None]) -> None:
    assert made().text() == made().text()
    text = json.dumps(json.loads(made(version="0").text()), indent=1)
    golden("metadata.json", text)


def test_tvm_ffi_understands_the_schema() -> None:
    schema = core.TypeSchema.from_json_str(json.dumps(type_schema(parse_signature(EVERY_KIND))))
    text = repr(schema)
    assert text.startswith("Callable[[Tensor, Tensor, int, int, float, bool, ")
    assert "ctypes.c_void_p, tuple[int, None], Tensor | None, int | str, int, str, " in text
    assert text.endswith(", Any, my.Type], tuple[int, float]]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read: JSONDecodeError"),
        ("[]", "cannot be read: TypeError"),
        ("{}", "cannot be read: KeyError.'ferrule'"),
        ("[" * 100_000, "cannot be read: RecursionError"),
        (changed(lambda ours: ours.pop("target")), "cannot be read: KeyError.'target'"),
        (changed(lambda ours: ours.update(abi=[1])), "cannot be read: ValueError"),
        (changed(lambda ours: ours.update(signature="f(")), "'f.' is no signature"),
        (
            changed(lambda ours: ours.update(format=2, version="7.0")),
            "has format 2, made by ferrule 7.0; this ferrule, .*, reads up to 1: load it with a",
        ),
    ],
)
def test_wrong_metadata_is_refused(text: str, message: str) -> None:
    with pytest.raises(MetadataError, match=message):
        read_metadata(text)
