"""What the checker says, word for word, and that it says everything that is in its list."""

from __future__ import annotations

import ctypes
import math
import re
from typing import Any

import pytest
import tvm_ffi
from checker_calls import Checked
from oracle.arguments import (
    BASE,
    DERIVED,
    OTHER,
    UNREGISTERED,
    Big,
    Blob,
    Dev,
    Dtype,
    Handle,
    Items,
    NullView,
    Numbers,
    Opaque,
    Pairs,
    Text,
    View,
    compact,
)
from oracle.forge import forge, type_index
from wrapper_calls import Raw, Refused

from ferrule.compiler.artefacts import Location, Relation
from ferrule.compiler.checker.reports import _MESSAGES, Said
from ferrule.compiler.messages.catalogue import CATALOGUE
from ferrule.specs import Boolean, Float16, Float32, Int32, Scalar, Tensor, Uint64, sym_int
from ferrule.specs.params import (
    AnyValue,
    Array,
    Bytes,
    Constant,
    DataType,
    Device,
    Dict,
    EnvStream,
    Function,
    List,
    Map,
    NoneValue,
    Object,
    Optional,
    Pointer,
    Shape,
    Stream,
    String,
    Tuple,
    Union,
)

for key in (BASE, DERIVED, OTHER):
    type_index(key)  # registers it

N, M = sym_int(symbol="n"), sym_int(symbol="m")


def tensor(name: str, *shape: Any, **changes: Any) -> Tensor:
    return Tensor(name, shape, changes.pop("dtype", Float32), device="cpu", **changes)


def view(*shape: int, **changes: Any) -> View:
    return View(**{"shape": shape, "strides": compact(shape), **changes})


def run(checked: Checked, *arguments: Any) -> tuple[int, ...]:
    forged = forge(arguments)
    return checked.run(ctypes.addressof(forged.args), len(arguments))


def refusal(checked: Checked, *arguments: Any) -> str:
    """The error without the signature."""
    with pytest.raises(Refused) as caught:
        run(checked, *arguments)
    return re.sub(r" when calling: `.*`,", ",", str(caught.value), flags=re.S)


A = tensor("a", N)
T = Tuple("t", (Scalar("0", Int32), A))
GPU = [Tensor(name, (N,), Float32, device="cuda") for name in "ab"]
CASES: list[tuple[tuple[Any, ...], tuple[Any, ...], str]] = [
    # Kinds.
    ((A,), (None,), "TypeError: Mismatched type on argument #0, expected Tensor, but got None"),
    ((A,), (NullView(),),
     "TypeError: Mismatched type on argument #0, expected Tensor, but got a null DLTensor pointer"),
    ((String("s"),), (3,), "TypeError: Mismatched type on argument #0, expected str, but got int"),
    ((Shape("s", (N,)),), (3,),
     "TypeError: Mismatched type on argument #0, "
     "expected Shape or tuple or list, but got int"),
    ((Pointer("p"),), (1.5,),
     "TypeError: Mismatched type on argument #0, "
     "expected a pointer or int or None, but got float"),
    ((Stream("s"),), (Text(b"x", "small"),),
     "TypeError: Mismatched type on argument #0, expected a stream or int or None, but got str"),
    ((Scalar("k", Int32),), (Big(1 << 70),),
     "ValueError: Out of bound value on argument #0, "
     "expected to be in int32 range [-2147483648, 2147483647], "
     "but got an int above 9223372036854775807"),
    ((Optional("a", A),), (3,),
     "TypeError: Mismatched type on argument #0, expected Tensor or None, but got int"),
    ((Union("u", (Scalar("u", Int32), String("u"), A)),), (1.5,),
     "TypeError: Mismatched type on argument #0, expected int or str or Tensor, but got float"),
    ((T,), (Items((1, 2)),),
     "TypeError: Mismatched type on t[1] in argument #0, expected Tensor, but got int"),
    ((Array("xs", Scalar("xs", Int32)),), (Items((1,) * 17 + (None,)),),
     "TypeError: Mismatched type on xs[17] in argument #0, expected int, but got None"),
    ((Array("xs", List("xs", String("xs"))),), (Items((Items((), "list"), Items((3,), "list"))),),
     "TypeError: Mismatched type on xs[1][0] in argument #0, expected str, but got int"),
    ((Object("o", BASE),), (Handle(OTHER),),
     f"TypeError: Mismatched type on argument #0, expected {BASE}, but got {OTHER}"),
    ((Object("o", BASE),), (None,),
     f"TypeError: Mismatched type on argument #0, expected {BASE}, but got None"),
    ((Object("o", UNREGISTERED),), (Handle(BASE),),
     f"TypeError: Mismatched type on argument #0, expected {UNREGISTERED}, "
     f"which is no registered type here, but got {BASE}"),
    ((NoneValue("x"),), (3,),
     "TypeError: Mismatched type on argument #0, expected None, but got int"),
    ((Function("f"),), (Handle("ffi.Module"),),
     "TypeError: Mismatched type on argument #0, expected Function, but got Module"),
    ((Shape("s", (N, M)),), (Items((1, True)),),
     "TypeError: Invalid shape element type s[1] on argument #0, expected int, but got bool"),
    # Sizes of what holds others.
    ((T,), (Items((1,)),),
     "ValueError: Mismatched tuple size on argument #0, "
     "expected tuple size=2, but got tuple size=1"),
    ((Shape("s", (N, M)),), (Numbers((1, 2, 3)),),
     "ValueError: Mismatched Shape on argument #0, expected shape size=2, but got shape size=3"),
    # Headers.
    ((A,), (view(2, 2),),
     "ValueError: Mismatched Tensor on argument #0, expected ndim=1, but got ndim=2"),
    ((T,), (Items((1, view(2, 2))),),
     "ValueError: Mismatched Tensor on t[1] in argument #0, expected ndim=1, but got ndim=2"),
    ((A,), (view(2, dtype=0x00014002),),
     "ValueError: Mismatched Tensor on argument #0, "
     "expected dtype=float32, but got dtype=float64"),
    ((A,), (view(2, dtype=0x00042002),),
     "ValueError: Mismatched Tensor on argument #0, "
     "expected dtype=float32, but got dtype=(code 2, bits 32, lanes 4)"),
    ((tensor("a", 4, dtype="float4_e2m1fnx2"),), (view(2, dtype=0x00010801),),
     "ValueError: Mismatched Tensor on argument #0, "
     "expected dtype=float4_e2m1fnx2, but got dtype=uint8"),
    ((A,), (view(2, dtype=0x00020411),),
     "ValueError: Mismatched Tensor on argument #0, "
     "expected dtype=float32, but got dtype=float4_e2m1fnx2"),
    ((A,), (view(2, device=(2, 1)),),
     "ValueError: Mismatched Tensor on argument #0, "
     "expected device_type=cpu, but got device=cuda:1"),
    ((Tensor("a", (N,), Float32, device="cuda", device_id=1),), (view(2, device=(2, 0)),),
     "ValueError: Mismatched device index on argument #0, expected to be 1, but got 0"),
    (tuple(GPU), (view(2, device=(2, 0)), view(2, device=(2, 1))),
     "ValueError: Mismatched device index on argument #1, "
     "expected to match a.device.index = 0, but got 1"),
    # Sizes and strides.
    ((tensor("a", 4),), (view(5),),
     "ValueError: Mismatched a.shape[0] on argument #0, expected to be 4, but got 5"),
    ((A, tensor("b", N)), (view(5), view(6)),
     "ValueError: Mismatched b.shape[0] on argument #1, "
     "expected to match a.shape[0] = 5, but got 6"),
    ((T, tensor("b", N)), (Items((1, view(5))), view(6)),
     "ValueError: Mismatched b.shape[0] on argument #1, "
     "expected to match t[1].shape[0] = 5, but got 6"),
    ((A, T), (view(5), Items((1, view(6)))),
     "ValueError: Mismatched t[1].shape[0] on t[1] in argument #1, "
     "expected to match a.shape[0] = 5, but got 6"),
    ((A, Shape("s", (N,))), (view(5), Numbers((6,))),
     "ValueError: Mismatched s[0] on argument #1, expected to match a.shape[0] = 5, but got 6"),
    ((A, tensor("b", N * 2 + 1)), (view(16), view(32)),
     "ValueError: Mismatched b.shape[0] on argument #1, expected n * 2 + 1 = 33, but got 32"),
    ((tensor("a", N * 2),), (view(7),),
     "ValueError: Mismatched a.shape[0] on argument #0, expected n * 2 = 6, but got 7"),
    ((tensor("a", sym_int(symbol="n", divisibility=4) * 2),), (view(12),),
     "ValueError: Invalid n on argument #0, expected to be divisible by 4, but got 6"),
    ((tensor("a", N + 5),), (view(3),),
     "ValueError: Out of bound n on argument #0, "
     "expected to be in int32 range [0, 2147483647], but got -2"),
    ((A, tensor("b", M), tensor("c", N // M)), (view(3), view(0), view(1)),
     "ValueError: Invalid c.shape[0] on argument #2, "
     "expected n // m, which overflows 64 bits or divides by zero, but got 1"),
    ((tensor("a", sym_int(divisibility=4)),), (view(6),),
     "ValueError: Invalid a.shape[0] on argument #0, expected to be divisible by 4, but got 6"),
    ((A,), (view(1 << 31),),
     "ValueError: Out of bound a.shape[0] on argument #0, "
     "expected to be in int32 range [0, 2147483647], but got 2147483648"),
    ((tensor("a", N, M),), (view(16, 8, strides=(1, 16)),),
     "ValueError: Mismatched a.strides[0] on argument #0, "
     "expected to match a.shape[1] = 8, but got 1"
     "; hint: the parameter is row-major and this tensor looks column-major, "
     "which an example with stride_order=(0, 1) stands for"),
    ((tensor("a", N, M, strides=(1, N)),), (view(16, 8, strides=None),),
     "ValueError: Mismatched a.strides[0] on argument #0, expected to be 1, but got 8"
     "; hint: the parameter is column-major and this tensor looks row-major, "
     "which an example with stride_order=(1, 0) stands for"),
    ((tensor("a", 4, 8, dtype="float4_e2m1fnx2"),), (view(4, 5, dtype=0x00020411),),
     "ValueError: Mismatched a.shape[1] on argument #0, expected to be 8, but got 10"),
    # Data.
    ((A,), (view(2, data=4098),),
     "ValueError: Misaligned Tensor data on argument #0, "
     "expected data alignment=4 bytes, but got address 0x1002"),
    ((A,), (view(2, data=0),),
     "ValueError: Invalid Tensor data on argument #0, "
     "expected the address of the elements, but got a null pointer"),
    # Values.
    ((Scalar("k", Int32),), (1 << 40,),
     "ValueError: Out of bound value on argument #0, "
     "expected to be in int32 range [-2147483648, 2147483647], but got 1099511627776"),
    ((Tuple("t", (Scalar("0", "uint8"),)),), (Items((-1,)),),
     "ValueError: Out of bound value on t[0] in argument #0, "
     "expected to be in uint8 range [0, 255], but got -1"),
    ((Scalar("k", Uint64),), (-1,),
     "ValueError: Out of bound value on argument #0, "
     "expected to be in uint64 range [0, 18446744073709551615], but got -1"),
    ((Scalar("k", Uint64),), (Big(1 << 64),),
     "ValueError: Out of bound value on argument #0, expected to be in uint64 range "
     "[0, 18446744073709551615], but got an int above 18446744073709551615"),
    ((Scalar("k", Uint64),), (Big(-(1 << 64)),),
     "ValueError: Out of bound value on argument #0, expected to be in uint64 range "
     "[0, 18446744073709551615], but got an int below -9223372036854775808"),
    ((Scalar("k", Boolean),), (2,),
     "ValueError: Invalid value on argument #0, expected True, False, 0 or 1, but got 2"),
    ((Constant("c", 2),), (3,),
     "ValueError: Mismatched constant value on argument #0, expected 2, but got 3"),
    ((Constant("c", 2),), (True,),
     "ValueError: Mismatched constant value on argument #0, expected 2, but got True"),
    ((Constant("c", True),), (False,),
     "ValueError: Mismatched constant value on argument #0, expected True, but got False"),
    ((Constant("c", 0.5),), (0.25,),
     "ValueError: Mismatched constant value on argument #0, expected 0.5, but got 0.25"),
    ((Constant("c", "mean"),), (Text(b"sum", "small"),),
     "ValueError: Mismatched constant value on argument #0, expected 'mean', but got 'sum'"),
    ((DataType("d"),), (Text(b"what", "small"),),
     "ValueError: Invalid value on argument #0, "
     "expected the name of a dtype, but got 'what'"),
    ((Device("d"),), (Text(b"cuda:x", "small"),),
     "ValueError: Invalid value on argument #0, "
     "expected the name of a device, but got 'cuda:x'"),
    ((Pointer("p", nullable=False),), (None,),
     "ValueError: Invalid value on argument #0, expected an address, but got a null pointer"),
    ((Pointer("p", align=16),), (Opaque(24),),
     "ValueError: Misaligned pointer on argument #0, "
     "expected alignment=16 bytes, but got address 0x18"),
    ((Pointer("p"),), (-1,),
     "ValueError: Out of bound value on argument #0, "
     "expected to be in address range [0, 9223372036854775807], but got -1"),
    ((Map("m", String("m"), Scalar("m", Int32)),), (Pairs(((Text(b"a", "small"), 1.5),)),),
     "TypeError: Mismatched type on m.values()[0] in argument #0, expected int, but got float"),
    ((Dict("m", String("m"), None),), (Pairs(tuple((i, i) for i in range(9)), "dict"),),
     "TypeError: Mismatched type on m.keys()[0] in argument #0, expected str, but got int"),
]  # fmt: skip


@pytest.mark.parametrize(("params", "arguments", "message"), CASES)
def test_messages(params: tuple[Any, ...], arguments: tuple[Any, ...], message: str) -> None:
    assert refusal(Checked(*params), *arguments) == message


def test_null_pointers_are_no_objects() -> None:
    for param, index in ((Shape("s", (N,)), 69), (Tuple("t", ()), 71), (String("s"), 65)):
        assert Checked(param).refused(Raw(index)).endswith("but got a null pointer")


def test_a_tensor_without_sizes() -> None:
    forged = forge([view(2)])
    address = forged.args[0].payload
    ctypes.c_uint64.from_address(address + 24).value = 0
    with pytest.raises(Refused, match="Invalid Tensor shape .* but got a null pointer"):
        Checked(A).run(ctypes.addressof(forged.args), 1)


def test_the_number_of_arguments() -> None:
    assert Checked(A, EnvStream("s", "cpu"), name="add").refused() == (
        "TypeError: Expects 1 parameter when calling: `add(a: Tensor([n], float32))`, but got 0"
    )
    assert "Expects 2 parameters when" in Checked(A, tensor("b", N)).refused(1, 2, 3)


def test_where_the_function_comes_from_is_in_the_traceback() -> None:
    checked = Checked(A, location=Location("kernels.py", "add", 12))
    with pytest.raises(Refused) as caught:
        checked(None)
    assert caught.value.backtrace == '  File "kernels.py", line 12, in add\n'


def test_relations() -> None:
    where = Location("kernels.py", "add", 12)
    checked = Checked(A, tensor("b", M), relations=[Relation(N, M, "a.shape[0]", "b", where)])
    assert run(checked, view(3), view(3))[2:] == (3, 3)
    assert refusal(checked, view(3), view(4)) == (
        "ValueError: Mismatched a.shape[0], expected to match b = 4, but got 3"
    )
    checked = Checked(A, tensor("b", M), relations=[Relation(N // M, M, "the grid", "b", where)])
    assert refusal(checked, view(3), view(0)) == (
        "ValueError: Invalid the grid, expected n // m to be equal to m, "
        "but one of them overflows 64 bits or divides by zero"
    )


def test_every_message_is_of_the_catalogue_and_has_been_said() -> None:
    assert set(_MESSAGES) == set(Said)
    assert {entry for entry, _ in _MESSAGES.values()} <= set(CATALOGUE)
    texts = [message for _, _, message in CASES]
    unsaid = []
    for entry, _ in _MESSAGES.values():
        opening = entry.template.partition("{")[0]
        if not any(opening in text for text in texts):
            unsaid.append(entry.code)
    assert set(unsaid) <= {"CALL01", "CALL33"}  # in tests of their own


LEAVES: list[tuple[Any, Any, tuple[int, ...]]] = [
    (Scalar("x", Float16), 1.0, (0x3C00,)),
    (Scalar("x", Float16), 2.0**-24, (1,)),
    (Scalar("x", Float16), 65520.0, (0x7C00,)),
    (Scalar("x", "bfloat16"), 1.00390625 + 2**-40, (0x3F81,)),
    (Scalar("x", "bfloat16"), math.nan, (0x7FC0,)),
    (Scalar("x", Float32), 1, (0x3F800000,)),
    (Scalar("x", Uint64), Big(1 << 63), (-(1 << 63),)),
    (Pointer("p"), None, (0,)),
    (Stream("s"), Opaque(7), (7,)),
    (DataType("d"), Dtype(0x00012002), (0x00012002,)),
    (Scalar("x", "tfloat32"), 1 + 2.0**-11 + 2.0**-40, (0x3F802000,)),
    (Scalar("x", "tfloat32"), math.nan, (0x7FC00000,)),
    (Scalar("x", "tfloat32"), 3.4028e38, (0x7F800000,)),
    (DataType("d"), Text(b"bfloat16", "heap"), (0x00011004,)),
    (Device("d"), Dev(2, 3), (2 | 3 << 32,)),
    (Device("d"), Text(b"cuda_host:12", "heap"), (3 | 12 << 32,)),
    (Device("d"), Text(b"cpu", "small"), (1,)),
    (Optional("k", Scalar("k", Int32)), None, (0, 0)),
    (Optional("k", Scalar("k", Int32)), 5, (1, 5)),
    (Union("u", (Scalar("u", Int32), A)), view(2, data=64), (1, 0, 64, 2)),
    (Union("u", (Scalar("u", Int32), A)), 9, (0, 9, 0, 1)),
    (Shape("s", (N, -3), "Coord"), Items((4, -3), "list"), (4,)),
    (Tuple("t", (NoneValue("0"), Scalar("1", Int32))), Items((None, 7)), (7,)),
    (Constant("c", 1), True, ()),
    (Bytes("b"), Blob(b"", "heap"), None),
    (AnyValue("x"), 3, None),
    (Object("o", BASE), Handle(DERIVED), None),
]


@pytest.mark.parametrize(("param", "argument", "leaves"), LEAVES)
def test_leaves(param: Any, argument: Any, leaves: tuple[int, ...] | None) -> None:
    found = run(Checked(param), argument)
    assert leaves is None or found == leaves


def test_programs_are_the_same_each_time() -> None:
    assert Checked(A, T, name="f").program == Checked(A, T, name="f").program


def test_maps_are_given_back() -> None:
    """The checker holds what it iterates over only while it does."""
    checked = Checked(Map("m", String("m"), Array("m", Scalar("m", Int32))))
    held = tvm_ffi.Map({str(i): tvm_ffi.Array([i]) for i in range(20)})
    forged = forge([None])
    forged.args[0].type_index, forged.args[0].payload = 72, held.__chandle__()
    counts = ctypes.c_uint32.from_address(held.__chandle__())
    before = counts.value
    for _ in range(100):
        assert checked.run(ctypes.addressof(forged.args), 1) == (held.__chandle__(),)
    assert counts.value == before
