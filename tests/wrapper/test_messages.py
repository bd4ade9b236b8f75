"""Every message of the catalogue, word for word."""

from __future__ import annotations

import ctypes
import re

import pytest
from wrapper_calls import NullView, Raw, Refused, Wrapped, view

from ferrule.compiler.artefacts import Fault, Location, Relation, literal
from ferrule.compiler.messages.catalogue import CATALOGUE
from ferrule.specs import (
    Boolean,
    Float32,
    Int32,
    Scalar,
    Tensor,
    Uint8,
    Uint64,
    ceil_div,
    divisible,
    equal,
    require,
    sym_int,
    sym_int64,
)

N = sym_int(symbol="n")
M = sym_int(symbol="m")


def tensor(name: str, *shape: object, **changes: object) -> Tensor:
    return Tensor(name, shape, changes.pop("dtype", Float32), device="cpu", **changes)


@pytest.fixture(scope="module")
def add_one() -> Wrapped:
    n = sym_int()
    return Wrapped(tensor("a", n), tensor("b", n), name="add_one")


SIGNATURE = "`add_one(a: Tensor([n0], float32), b: Tensor([n0], float32))`"
A = view(128)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A,), f"TypeError: Expects 2 parameters when calling: {SIGNATURE}, but got 1"),
        ((A, A, A), f"TypeError: Expects 2 parameters when calling: {SIGNATURE}, but got 3"),
        (
            (A, 5),
            f"TypeError: Mismatched type on argument #1 when calling: {SIGNATURE}, "
            "expected Tensor, but got int",
        ),
        (
            (view(4, 4), A),
            f"ValueError: Mismatched Tensor on argument #0 when calling: {SIGNATURE}, "
            "expected ndim=1, but got ndim=2",
        ),
        (
            (A, view(128, dtype=0x00014002)),
            f"ValueError: Mismatched Tensor on argument #1 when calling: {SIGNATURE}, "
            "expected dtype=float32, but got dtype=float64",
        ),
        (
            (A, view(128, dtype=0x00042002)),
            f"ValueError: Mismatched Tensor on argument #1 when calling: {SIGNATURE}, "
            "expected dtype=float32, but got dtype=(code 2, bits 32, lanes 4)",
        ),
        (
            (view(128, device=(2, 1)), A),
            f"ValueError: Mismatched Tensor on argument #0 when calling: {SIGNATURE}, "
            "expected device_type=cpu, but got device=cuda:1",
        ),
        (
            (view(128, device=(77, 0)), A),
            f"ValueError: Mismatched Tensor on argument #0 when calling: {SIGNATURE}, "
            "expected device_type=cpu, but got device=(device type 77):0",
        ),
        (
            (A, view(126)),
            f"ValueError: Mismatched b.shape[0] on argument #1 when calling: {SIGNATURE}, "
            "expected to match a.shape[0] = 128, but got 126",
        ),
        (
            (view(128, strides=(2,)), A),
            f"ValueError: Mismatched a.strides[0] on argument #0 when calling: {SIGNATURE}, "
            "expected to be 1, but got 2",
        ),
        (
            (view(1 << 31), A),
            f"ValueError: Out of bound a.shape[0] on argument #0 when calling: {SIGNATURE}, "
            "expected to be in int32 range [0, 2147483647], but got 2147483648",
        ),
        (
            (view(-1), A),
            f"ValueError: Out of bound a.shape[0] on argument #0 when calling: {SIGNATURE}, "
            "expected to be in int32 range [0, 2147483647], but got -1",
        ),
        (
            (view(128, data=4098), A),
            f"ValueError: Misaligned Tensor data on argument #0 when calling: {SIGNATURE}, "
            "expected data alignment=4 bytes, but got address 0x1002",
        ),
        (
            (view(128, byte_offset=3), A),
            f"ValueError: Misaligned Tensor data on argument #0 when calling: {SIGNATURE}, "
            "expected data alignment=4 bytes, but got address 0x1003",
        ),
        (
            (A, view(128, data=0)),
            f"ValueError: Invalid Tensor data on argument #1 when calling: {SIGNATURE}, "
            "expected the address of the elements, but got a null pointer",
        ),
    ],
)
def test_messages_of_tensors(add_one: Wrapped, arguments: tuple, message: str) -> None:
    assert add_one.refused(*arguments) == message


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "None"),
        (True, "bool"),
        (1.5, "float"),
        (Raw(4), "a pointer"),
        (Raw(5), "dtype"),
        (Raw(6), "Device"),
        (NullView(), "a null DLTensor pointer"),
        (Raw(8), "str"),
        (Raw(11), "str"),
        (Raw(65), "str"),
        (Raw(12), "bytes"),
        (Raw(66), "bytes"),
        (Raw(68), "Function"),
        (Raw(69), "Shape"),
        (Raw(71), "tuple or list"),
        (Raw(72), "dict"),
        (Raw(74), "a Python object of another kind"),
        (Raw(13), "a value of type index 13"),
    ],
)
def test_every_kind_has_a_name(add_one: Wrapped, value: object, name: str) -> None:
    message = add_one.refused(value, A)
    assert message.endswith(f"expected Tensor, but got {name}")
    assert message.startswith("TypeError: Mismatched type on argument #0 ")


def tail(message: str) -> str:
    """A message without its signature."""
    return re.sub(r"when calling: `.*`, ", "", message)


def test_exact_sizes() -> None:
    wrapped = Wrapped(tensor("a", 4))
    assert tail(wrapped.refused(view(5))) == (
        "ValueError: Mismatched a.shape[0] on argument #0 expected to be 4, but got 5"
    )


def test_divisibility() -> None:
    wrapped = Wrapped(tensor("a", sym_int(divisibility=16)), tensor("b", sym_int(divisibility=3)))
    assert tail(wrapped.refused(view(126), view(3))) == (
        "ValueError: Invalid a.shape[0] on argument #0 expected to be divisible by 16, but got 126"
    )
    assert tail(wrapped.refused(view(16), view(16))) == (
        "ValueError: Invalid b.shape[0] on argument #1 expected to be divisible by 3, but got 16"
    )
    assert wrapped(view(32), view(9))[2:] == (32, 9)


def test_bounds_of_sizes() -> None:
    n = sym_int(min=2, max=4096, symbol="n")
    wrapped = Wrapped(tensor("a", n), tensor("b", sym_int(max=3)), tensor("c", sym_int(min=-4)))
    shown = "`f(a: Tensor([n: 2..4096], float32), b: Tensor([n0: ..3], float32), "
    shown += "c: Tensor([n1: -4..], float32))`"
    assert wrapped.refused(view(8192), view(3), view(3)) == (
        f"ValueError: Out of bound a.shape[0] on argument #0 when calling: {shown}, "
        "expected to be at most 4096, but got 8192"
    )
    assert tail(wrapped.refused(view(1), view(3), view(3))).endswith(
        "expected to be at least 2, but got 1"
    )
    assert tail(wrapped.refused(view(1 << 40), view(3), view(3))).endswith(
        "expected to be at most 4096, but got 1099511627776"
    )
    assert tail(wrapped.refused(view(2), view(-1), view(3))).endswith(
        "expected to be in int32 range [0, 2147483647], but got -1"
    )
    assert tail(wrapped.refused(view(2), view(0), view(-1))).endswith(
        "expected to be in int32 range [0, 2147483647], but got -1"
    )
    assert wrapped(view(4096), view(3), view(0))[3:] == (4096, 3, 0)


def test_requirements() -> None:
    k, flag = Scalar("k", Int32), Scalar("flag", Boolean)
    requires = [
        require(N * k.value <= 1 << 20, "the scratch has a MiB"),
        divisible(M, 4) | (flag.value < 1),
        ~equal(M // k.value, 7),
    ]
    wrapped = Wrapped(tensor("a", N), tensor("b", M), k, flag, requires=requires)
    shown = "`f(a: Tensor([n], float32), b: Tensor([m], float32), k: int32, flag: bool)`"
    assert wrapped(view(1024), view(3), 1024, False)[4:] == (1024, 3)
    assert wrapped.refused(view(2048), view(4), 1024, True) == (
        f"ValueError: Invalid sizes when calling: {shown}, "
        "expected n * k <= 1048576, but got n = 2048, k = 1024: the scratch has a MiB"
    )
    assert tail(wrapped.refused(view(1), view(6), -1, True)) == (
        "ValueError: Invalid sizes expected m % 4 == 0 or flag < 1, but got m = 6, flag = 1"
    )
    assert tail(wrapped.refused(view(1), view(28), 4, True)) == (
        "ValueError: Invalid sizes expected not (m // k == 7), but got m = 28, k = 4"
    )
    assert tail(wrapped.refused(view(1), view(8), 0, True)) == (
        "ValueError: Invalid sizes expected not (m // k == 7), a part of which overflows "
        "64 bits or divides by zero, but got m = 8, k = 0"
    )


def test_a_message_shows_every_value_of_a_requirement() -> None:
    sizes = [sym_int64(symbol=f"n{i}") for i in range(7)]
    total = sum(sizes[1:], sizes[0])
    wrapped = Wrapped(tensor("a", *sizes), requires=[total < 10])
    assert tail(wrapped.refused(view(*range(7)))) == (
        "ValueError: Invalid sizes expected n0 + n1 + n2 + n3 + n4 + n5 + n6 < 10, but got "
        + ", ".join(f"n{i} = {i}" for i in range(7))
    )


def test_expressions() -> None:
    wrapped = Wrapped(tensor("a", N), tensor("b", N * 2 + 1))
    assert tail(wrapped.refused(view(16), view(32))) == (
        "ValueError: Mismatched b.shape[0] on argument #1 expected n * 2 + 1 = 33, but got 32"
    )
    assert wrapped(view(16), view(33))[2:] == (16,)
    wrapped = Wrapped(tensor("a", N), tensor("b", N - 5))
    assert tail(wrapped.refused(view(2), view(-3))) == (
        "ValueError: Out of bound b.shape[0] on argument #1 "
        "expected to be in int64 range [0, 9223372036854775807], but got -3"
    )
    assert wrapped(view(5), view(0))[2:] == (5,)


def test_expressions_without_a_value() -> None:
    wrapped = Wrapped(tensor("a", N), tensor("b", M), tensor("c", ceil_div(N, M)))
    assert tail(wrapped.refused(view(16), view(0), view(1))) == (
        "ValueError: Invalid c.shape[0] on argument #2 expected ceil_div(n, m), "
        "which overflows 64 bits or divides by zero, but got 1"
    )
    assert wrapped(view(16), view(5), view(4))[3:] == (16, 5)


def test_hints_at_the_other_order() -> None:
    columns = Wrapped(tensor("a", N, M, strides=(1, N)))
    assert tail(columns.refused(view(16, 8))) == (
        "ValueError: Mismatched a.strides[0] on argument #0 expected to be 1, but got 8"
        "; hint: the parameter is column-major and this tensor looks row-major, "
        "which an example with stride_order=(1, 0) stands for"
    )
    rows = Wrapped(tensor("a", N, M))
    assert tail(rows.refused(view(16, 8, strides=(1, 16)))) == (
        "ValueError: Mismatched a.strides[0] on argument #0 "
        "expected to match a.shape[1] = 8, but got 1"
        "; hint: the parameter is row-major and this tensor looks column-major, "
        "which an example with stride_order=(0, 1) stands for"
    )
    assert tail(rows.refused(view(16, 8, strides=(9, 2)))) == (
        "ValueError: Mismatched a.strides[0] on argument #0 "
        "expected to match a.shape[1] = 8, but got 9"
    )


def test_strides_that_are_missing_are_shown() -> None:
    columns = Wrapped(tensor("a", N, M, strides=(1, N)))
    assert "expected to be 1, but got 8; hint" in columns.refused(view(16, 8, strides=None))


def test_stride_symbols() -> None:
    s = sym_int(symbol="s")
    wrapped = Wrapped(*(tensor(name, N, M, strides=(s, 1)) for name in "abc"))
    moot = view(1, 8, strides=(77, 1))
    assert wrapped(moot, moot, moot)[3:] == (1, 8, 1)
    one, other = view(1, 8, strides=(10, 1)), view(1, 8, strides=(11, 1))
    assert wrapped(one, other, one)[3:] == (1, 8, 1)
    one, other = view(4, 8, strides=(10, 1)), view(4, 8, strides=(11, 1))
    assert tail(wrapped.refused(one, other, one)) == (
        "ValueError: Mismatched b.strides[0] on argument #1 "
        "expected to match a.strides[0] = 10, but got 11"
    )
    assert tail(wrapped.refused(one, one, other)) == (
        "ValueError: Mismatched c.strides[0] on argument #2 "
        "expected to match a.strides[0] = 10, but got 11"
    )
    far = view(4, 8, strides=(1 << 31, 1))
    assert tail(wrapped.refused(far, far, far)) == (
        "ValueError: Out of bound a.strides[0] on argument #0 "
        "expected to be in int32 range [-2147483648, 2147483647], but got 2147483648"
    )


def test_the_stride_that_bound_a_symbol_is_named() -> None:
    s, other = sym_int(symbol="s"), sym_int(symbol="k")
    wrapped = Wrapped(
        tensor("a", N, strides=(s,)), tensor("b", M, strides=(s,)), tensor("c", other, strides=(s,))
    )
    message = wrapped.refused(view(1, strides=(9,)), view(3, strides=(5,)), view(3, strides=(6,)))
    assert tail(message) == (
        "ValueError: Mismatched c.strides[0] on argument #2 "
        "expected to match b.strides[0] = 5, but got 6"
    )
    message = wrapped.refused(view(2, strides=(4,)), view(1, strides=(5,)), view(3, strides=(6,)))
    assert "expected to match a.strides[0] = 4, but got 6" in message


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (Uint8, 300, "Out of bound value on argument #0 expected to be in uint8 range [0, 255]"),
        (Uint8, -1, "Out of bound value on argument #0 expected to be in uint8 range [0, 255]"),
        (
            Int32,
            1 << 40,
            "Out of bound value on argument #0 "
            "expected to be in int32 range [-2147483648, 2147483647]",
        ),
        (
            Uint64,
            -1,
            "Out of bound value on argument #0 "
            "expected to be in uint64 range [0, 18446744073709551615]",
        ),
        (Boolean, 2, "Invalid value on argument #0 expected True, False, 0 or 1"),
        (Boolean, -1, "Invalid value on argument #0 expected True, False, 0 or 1"),
    ],
)
def test_messages_of_scalars(dtype: type, value: int, text: str) -> None:
    wrapped = Wrapped(Scalar("k", dtype))
    assert tail(wrapped.refused(value)) == f"ValueError: {text}, but got {value}"


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (Int32, 1.0, "int, but got float"),
        (Int32, None, "int, but got None"),
        (Float32, Raw(65), "float, but got str"),
        (Boolean, 1.0, "bool, but got float"),
        (Int32, view(1), "int, but got Tensor"),
    ],
)
def test_kinds_of_scalars(dtype: type, value: object, text: str) -> None:
    message = Wrapped(Scalar("k", dtype)).refused(value)
    assert tail(message) == f"TypeError: Mismatched type on argument #0 expected {text}"


WHERE = Location("kernels.py", "add", 12)


def test_relations() -> None:
    relation = Relation(N, M, "a.shape[0]", "b.shape[0]", WHERE)
    wrapped = Wrapped(tensor("a", N), tensor("b", M), relations=[relation])
    assert wrapped(view(3), view(3))[2:] == (3, 3)
    assert tail(wrapped.refused(view(3), view(4))) == (
        "ValueError: Mismatched a.shape[0] expected to match b.shape[0] = 4, but got 3"
    )


def test_relations_without_a_value() -> None:
    relation = Relation(N // M, M, "the grid", "b.shape[0]", WHERE)
    wrapped = Wrapped(tensor("a", N), tensor("b", M), relations=[relation])
    assert tail(wrapped.refused(view(3), view(0))) == (
        "ValueError: Invalid the grid expected n // m to be equal to m, "
        "but one of them overflows 64 bits or divides by zero"
    )


def test_faults_of_the_body() -> None:
    faults = [
        Fault("ZeroDivisionError", "integer division by zero", WHERE),
        Fault("LaunchError", "grid ({}, {}) is too large", None),
    ]
    wrapped = Wrapped(tensor("a", N), faults=faults, status=2, values=(7, -8))
    with pytest.raises(Refused) as caught:
        wrapped(view(3))
    assert str(caught.value) == "LaunchError: grid (7, -8) is too large"
    assert caught.value.backtrace == ""
    with pytest.raises(Refused) as caught:
        Wrapped(faults=faults, status=1)()
    assert str(caught.value) == "ZeroDivisionError: integer division by zero"
    assert caught.value.backtrace == '  File "kernels.py", line 12, in add\n'


def fault_of(message: str, *values: int) -> str:
    """The error of a body that fails so."""
    wrapped = Wrapped(faults=[Fault("ValueError", message)], status=1, values=values)
    with pytest.raises(Refused) as caught:
        wrapped()
    return str(caught.value).removeprefix("ValueError: ")


def test_texts_in_faults_of_the_body() -> None:
    texts = ("cuInit", "größer " * 99, "")
    held = [ctypes.create_string_buffer(text.encode()) for text in texts]
    first, *others = map(ctypes.addressof, held)
    message = fault_of("{text} ({}): {text}, {text}.", first, 3, *others)
    assert message == f"cuInit (3): {texts[1]}, ."
    assert fault_of("nothing: {text}!", 0) == "nothing: !"


@pytest.mark.parametrize("text", ["{}", "{text}", "{{}}", "{x} {", "}{", "{{text}}", "100 %s"])
def test_braces_in_faults_of_the_body(text: str) -> None:
    assert fault_of(literal(text) + ": {}", 7) == f"{text}: 7"


def test_one_parameter_is_no_plural() -> None:
    assert Wrapped(Scalar("k", Int32)).refused() == (
        "TypeError: Expects 1 parameter when calling: `f(k: int32)`, but got 0"
    )


def test_codes_are_unique() -> None:
    codes = [entry.code for entry in CATALOGUE]
    assert len(codes) == len(set(codes))


def test_a_long_signature_is_not_cut_off() -> None:
    params = [tensor(f"parameter_{i}", sym_int(), sym_int()) for i in range(20)]
    wrapped = Wrapped(*params)
    message = wrapped.refused(*[view(2, 2)] * 19, 3)
    assert str(wrapped.signature) in message
    assert message.endswith("expected Tensor, but got int")


def test_a_view_where_a_tensor_is_kept_is_told_what_is_wanted() -> None:
    kept = Wrapped(tensor("a", sym_int(), owning=True), name="keep")
    for given, name in ((A, "Tensor"), (5, "int")):
        with pytest.raises(
            Refused,
            match=r"expected a tensor object that can be kept, not a DLTensor\* \(view\), "
            f"but got {name}",
        ):
            kept(given)
