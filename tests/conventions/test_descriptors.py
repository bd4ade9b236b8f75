"""Descriptors of other systems: structs with the addresses of structs, arrays and functions."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from c_objects import c_object
from cuda_device import FakeCuda
from gpu_functions import floats

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import (
    NULL,
    Array,
    CArgument,
    CFunction,
    CString,
    CudaLaunch,
    FunctionPointer,
    HostCode,
    Reference,
    Struct,
    Union,
    cast,
)
from ferrule.compiler.errors import CompileError
from ferrule.specs import Scalar, Signature, Tensor

NUMBERS = {
    "int8_t": "int8",
    "uint16_t": "uint16",
    "int32_t": "int32",
    "uint64_t": "uint64",
    "float": "float32",
    "double": "float64",
}
SIZES = {"int8_t": 1, "uint16_t": 2, "int32_t": 4, "uint64_t": 8, "float": 4, "double": 8}


# ---- the layout, compared with a C compiler's ----


def drawn_type(chosen: random.Random, depth: int) -> tuple[str, CArgument]:
    """A type in C, with @ for what is declared with it, and an argument of this type."""
    kind = chosen.choice(["number"] * 3 + ["pointer"] + ["struct", "array", "union"] * (depth > 0))
    match kind:
        case "pointer":
            return "void* @", chosen.choice([NULL, Reference(cast(1, "int32")), CString("text")])
        case "struct":
            text, made = drawn_struct(chosen, depth - 1)
            return text.replace("#", "") + " @", made
        case "array":
            count = chosen.choice([1, 2, 3, 5])
            text, item = drawn_type(chosen, depth - 1)
            return text.replace("@", f"@[{count}]"), Array([item] * count)
        case "union":
            first, second = (chosen.choice([*NUMBERS]) for _ in range(2))
            size = max(SIZES[first], SIZES[second])
            one = Union(cast(1, NUMBERS[first]), size=size, align=size)
            return f"union {{ {first} a; {second} b; }} @", one
    number = chosen.choice([*NUMBERS])
    return f"{number} @", cast(1, NUMBERS[number])


def drawn_struct(chosen: random.Random, depth: int) -> tuple[str, Struct]:
    """A struct in C, with # for its name, and the argument."""
    fields = [drawn_type(chosen, depth) for _ in range(chosen.choice([1, 2, 3, 5]))]
    lines = " ".join(text.replace("@", f"m{i}") + ";" for i, (text, _) in enumerate(fields))
    align = chosen.choice([1, 1, 1, 16])
    wide = f"__attribute__((aligned({align})))" if align > 1 else ""
    return f"struct {wide} # {{ {lines} }}", Struct([each for _, each in fields], align=align)


def asserted(number: int) -> str:
    """A struct in C, with assertions that it is laid out as ours."""
    text, made = drawn_struct(random.Random(number), 3)
    name = f"struct s{number}"
    equal = {f"sizeof({name})": made.size, f"_Alignof({name})": made.align}
    for i, offset in enumerate(made.offsets):
        equal[f"__builtin_offsetof({name}, m{i})"] = offset
    lines = [f'_Static_assert({left} == {right}, "");' for left, right in equal.items()]
    return "\n".join([text.replace("#", f"s{number}") + ";", *lines])


@pytest.mark.needs_cc
def test_structs_are_laid_out_as_a_c_compiler_does() -> None:
    c_object("#include <stdint.h>\n" + "\n".join(map(asserted, range(300))))


# ---- descriptors ----

SOURCE = """
#include <stdint.h>
#include <string.h>

/* as Halide's buffers */
struct dim { int32_t min, extent, stride; uint32_t flags; };
struct buffer {
  uint64_t device; const void* interface; uint8_t* host; uint64_t flags;
  struct { uint8_t code, bits; uint16_t lanes; } type;
  int32_t dimensions; struct dim* dim; void* padding;
};
int fill(struct buffer* b, float value) {
  if (b->type.code != 2 || b->type.bits != 32 || b->type.lanes != 1 || b->padding) return -1;
  for (int32_t i = 0; i < b->dim[0].extent; i++)
    for (int32_t j = 0; j < b->dim[1].extent; j++)
      ((float*)b->host)[i * b->dim[0].stride + j * b->dim[1].stride] = value + b->dim[1].min;
  return 0;
}

/* as Arrow's C data interface */
struct schema {
  const char *format, *name, *metadata; int64_t flags, n_children;
  struct schema **children, *dictionary; void (*release)(struct schema*); void* private_data;
};
struct array {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers; struct array **children, *dictionary;
  void (*release)(struct array*); void* private_data;
};
void release(struct array* a) { a->release = 0; }
int64_t total(const struct schema* s, struct array* a, const char* name) {
  if (strcmp(s->format, "+s") || a->n_children != s->n_children) return -1;
  for (int64_t c = 0; c < s->n_children; c++) {
    if (strcmp(s->children[c]->name, name) || strcmp(s->children[c]->format, "i")) continue;
    const struct array* child = a->children[c];
    const uint8_t* valid = child->buffers[0];
    int64_t sum = 0;
    for (int64_t i = 0; i < child->length; i++)
      if (!valid || valid[i / 8] >> i % 8 & 1) sum += ((const int32_t*)child->buffers[1])[i];
    a->release(a);
    return a->release ? -3 : sum;
  }
  return -2;
}

/* as TACO's tensors */
struct tensor {
  int32_t order, *dimensions, csize, *mode_ordering, *mode_types;
  uint8_t ***indices, *vals, *fill_value; int32_t vals_size;
};
void multiply(struct tensor* y, struct tensor* a, struct tensor* x) {
  const int32_t *pos = (int32_t*)a->indices[1][0], *crd = (int32_t*)a->indices[1][1];
  for (int32_t i = 0; i < a->dimensions[0]; i++) {
    double sum = 0;
    for (int32_t k = pos[i]; k < pos[i + 1]; k++)
      sum += ((double*)a->vals)[k] * ((double*)x->vals)[crd[k]];
    ((double*)y->vals)[i] = sum;
  }
}

/* as MKL's descriptor of a matrix, by value; a flexible array; a pointer to a pointer */
struct matrix { int type, mode, diag; };
int32_t kinds(struct matrix m) { return 100 * m.type + 10 * m.mode + m.diag; }
struct message { uint32_t length; union { double number; uint8_t bytes[16]; } u; uint8_t text[]; };
struct listed { const int32_t* items; int32_t count[2]; };
int32_t dot(struct listed l) { return l.items[0] * l.count[0] + l.items[1] * l.count[1]; }
int32_t sum_of(struct message** list) {
  int32_t sum = list[0]->u.number * 1000 + list[0]->u.bytes[15];
  for (uint32_t i = 0; i < list[0]->length; i++) sum += list[0]->text[i];
  return list[1] ? -1 : sum;
}
"""


@pytest.fixture(scope="module")
def code() -> HostCode:
    return HostCode.from_object(c_object(SOURCE))


def ints(*values: int) -> Array:
    return Array([cast(each, "int32") for each in values])


def halide_buffer(x: Tensor) -> Reference:
    dims = [
        Struct([cast(0, "int32"), cast(size, "int32"), cast(stride, "int32"), cast(0, "uint32")])
        for size, stride in zip(x.shape, x.strides, strict=True)
    ]
    kind = Struct([cast(2, "uint8"), cast(x.dtype.bits, "uint8"), cast(1, "uint16")])
    rank = cast(len(dims), "int32")
    fields = [0, NULL, x.data, 0, kind, rank, Reference(Array(dims)), NULL]
    return Reference(Struct(fields), discards=True)


@pytest.mark.needs_cc
def test_a_buffer_has_its_dims_behind_an_address(code: HostCode) -> None:
    m, n = specs.sym_int64(symbol="m"), specs.sym_int64(symbol="n")
    x, value = Tensor("x", (m, n), "float32", contiguous=False), Scalar("value", "float32")
    call = CFunction("fill", [halide_buffer(x), value], returns="status", code=code)
    fill = compiler.build(Signature("fill", [x, value]), call)
    given = np.zeros((4, 6), np.float32)
    fill(given[::2, 1:4].T, 7)
    assert given.sum() == 6 * 7
    assert (given[::2, 1:4] == 7).all()
    with pytest.raises(ValueError, match="field #2 of field #0 of field #6 of argument #0 of fill"):
        fill(np.lib.stride_tricks.as_strided(given, (2, 1), (1 << 40, 4)), 7)


@pytest.mark.needs_cc
def test_arrays_of_arrow_have_children_texts_and_a_release_function(code: HostCode) -> None:
    n, bits = specs.sym_int64(symbol="n"), specs.sym_int64(symbol="bits")
    x, valid = Tensor("x", (n,), "int32"), Tensor("valid", (bits,), "uint8")
    name = specs.String("name")
    nothing = [NULL] * 4

    def schema(kind: str, called: CArgument, children: Sequence[Struct] = ()) -> Struct:
        inner = Reference(Array([Reference(each) for each in children])) if children else NULL
        return Struct([CString(kind), called, NULL, 0, len(children), inner, *nothing[1:]])

    def array(buffers: Sequence[CArgument], children: Sequence[Struct] = ()) -> Struct:
        inner = Reference(Array([Reference(each) for each in children])) if children else NULL
        head = [n, -1, 0, len(buffers), len(children)]
        release = FunctionPointer("release", code=code)
        return Struct([*head, Reference(Array(buffers)), inner, NULL, release, NULL])

    whole = schema("+s", CString(""), [schema("i", CString("one")), schema("i", CString("two"))])
    parts = [array([NULL, x.data]), array([valid.data, x.data])]
    values = Reference(array([NULL], parts), reads_only=True)
    arguments = [Reference(whole, reads_only=True), values, CString(name)]
    call = CFunction("total", arguments, returns="int64", code=code)
    total = compiler.build(Signature("total", [x, valid, name]), call)
    given = np.arange(10, dtype=np.int32)
    assert total(given, np.array([0b101, 0b10], np.uint8), "one") == 45
    assert total(given, np.array([0b101, 0b10], np.uint8), "two") == 0 + 2 + 9
    assert total(given, np.zeros(2, np.uint8), "three") == -2


@pytest.mark.needs_cc
def test_tensors_of_taco_point_to_arrays_of_addresses(code: HostCode) -> None:
    rows, columns, count, more = (specs.sym_int64(symbol=name) for name in "rcnp")
    pos, crd = Tensor("pos", (more,), "int32"), Tensor("crd", (count,), "int32")
    vals, x = Tensor("vals", (count,), "float64"), Tensor("x", (columns,), "float64")
    y = Tensor("y", (rows,), "float64")

    def tensor(values: Tensor, dims: Sequence[Any], indices: CArgument = NULL) -> Reference:
        dense = ints(*range(len(dims)))
        sizes = Array([cast(dim, "int32") for dim in dims])
        head = [cast(len(dims), "int32"), Reference(sizes), cast(8, "int32"), Reference(dense)]
        fields = [*head, NULL, indices, values.data, NULL, cast(0, "int32")]
        return Reference(Struct(fields), reads_only=True)

    indices = Reference(Array([NULL, Reference(Array([pos.data, crd.data]))]))
    arguments = [tensor(y, [rows]), tensor(vals, [rows, columns], indices), tensor(x, [columns])]
    call = CFunction("multiply", arguments, code=code)
    multiply = compiler.build(Signature("multiply", [pos, crd, vals, x, y]), call)
    a, given, out = np.array([[0, 2, 0], [3, 0, 4.0]]), np.array([1, 10, 100.0]), np.zeros(2)
    multiply(
        np.array([0, 1, 3], "i4"), np.array([1, 0, 2], "i4"), np.array([2, 3, 4.0]), given, out
    )
    assert out.tolist() == (a @ given).tolist()


@pytest.mark.needs_cc
def test_flexible_arrays_unions_and_pointers_to_pointers(code: HostCode) -> None:
    x = Scalar("x", "float64")
    text = Array([cast(each, "uint8") for each in b"abc"])
    message = Struct([cast(3, "uint32"), Union(x, size=16), text])
    listed = Reference(Array([Reference(message), NULL]), reads_only=True)
    call = CFunction("sum_of", [listed], returns="int32", code=code)
    assert compiler.build(Signature("f", [x]), call)(2.0) == 2000 + sum(b"abc")
    call = CFunction("kinds", [Struct([*ints(1, 2, 3).fields])], returns="int32", code=code)
    assert compiler.build(Signature("kinds", []), call)() == 123
    listed_items = Struct([Reference(ints(3, 4), reads_only=True), ints(10, 100)])
    call = CFunction("dot", [listed_items], returns="int32", code=code)
    assert compiler.build(Signature("dot", []), call)() == 430


def test_the_address_of_a_function_goes_into_a_struct_in_every_form_of_code() -> None:
    text = """define i32 @one() { ret i32 1 }
    define i32 @called(ptr %s) {
      %p = load ptr, ptr %s
      %r = call i32 %p()
      ret i32 %r
    }"""
    code = HostCode.from_llvm(text)
    pid = FunctionPointer("getpid")
    for pointer, wanted in ((FunctionPointer("one", code=code), 1), (pid, None)):
        call = CFunction("called", [Reference(Struct([pointer]))], returns="int32", code=code)
        found = compiler.build(Signature("f", []), call)()
        assert found == wanted or (wanted is None and found > 1)
    call = CFunction("called", [Reference(FunctionPointer("two", code=code))], code=code)
    with pytest.raises(CompileError, match="argument #0 of called: the code has no function two"):
        compiler.build(Signature("f", []), call)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: Array([]), ValueError, "leave an empty array out of its struct"),
        (lambda: Array(cast(1, "int8")), TypeError, "the items of an Array must be in a list"),  # type: ignore[arg-type]
        (
            lambda: Array([cast(1, "int32"), cast(1, "float32")]),
            TypeError,
            r"item #1 has another type in C than item #0: 4 bytes aligned to 4 \(float at 0\), "
            r"expected 4 bytes aligned to 4 \(i32 at 0\)",
        ),
        (lambda: Union(cast(1, "int64"), size=4), ValueError, "at least 8 bytes and a multiple"),
        (lambda: Union(cast(1, "int8"), size=9, align=8), ValueError, "but got 9"),
        (lambda: Union(cast(1, "int8"), size="1"), TypeError, "size must be an int"),  # type: ignore[arg-type]
        (lambda: Union(cast(1, "int8"), align=3), ValueError, "Union: align must be a power"),
        (lambda: Reference(None), TypeError, "what a Reference refers to must be .*NULL"),  # type: ignore[arg-type]
        (lambda: Struct([None]), TypeError, "field #0 of a struct must be"),  # type: ignore[list-item]
        (lambda: CFunction("f", [ints(1)]), TypeError, r"Reference\(Array\(…\)\)"),
        (
            lambda: CFunction("f", [Struct([Union(cast(1, "int64"))])]),
            TypeError,
            "argument #0 of f: the registers for a union",
        ),
        (lambda: FunctionPointer("f", code=HostCode.undefined()), TypeError, "has no address"),
        (lambda: FunctionPointer(0), ValueError, "expected the address of a C function"),
    ],
)
def test_what_c_has_not_is_refused(made: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made()


def test_no_kernel_gets_an_address_of_the_stack() -> None:
    ptx = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a) { ret; }"
    for field in (Reference(cast(1, "int32")), CString("text"), Struct([Reference(NULL)])):
        launch = CudaLaunch(fe.DeviceCode.from_ptx(ptx), "k", [Struct([field])], 1, 1)
        with pytest.raises(CompileError, match="an address in the memory of the host"):
            compiler.build(Signature("f", []), launch)


def test_kernels_take_arrays_and_unions(fake_cuda: FakeCuda) -> None:
    ptx = ".version 7.8\n.target sm_80\n.address_size 64\n"
    ptx += ".visible .entry k(.param .align 8 .b8 a[40]) { ret; }"
    n = specs.sym_int(symbol="n")
    field = Union(cast(n, "float32"), size=16)
    packed = Struct([Array([n, cast(5, "int32"), n]), field, cast(7, "int64")])
    launch = CudaLaunch(fe.DeviceCode.from_ptx(ptx), "k", [packed], 1, 1)
    compiler.build(Signature("f", [Tensor("x", (n,), "float32")]), launch)(floats(3))
    (seen,) = fake_cuda.launches()
    assert seen.parameters == (struct.pack("<3if12x4xq", 3, 5, 3, 3.0, 7),)


@pytest.mark.needs_cc
def test_a_large_union_goes_by_value() -> None:
    """Past the registers of every processor its members do not matter."""
    text = "struct large { union { long i; char c[72]; } u; }; "
    text += "long get(struct large l) { return l.u.i + l.u.c[71]; }"
    code = HostCode.from_object(c_object(text))
    given = Struct([Union(cast(9, "int64"), size=72)])
    call = CFunction("get", [given], returns="int64", code=code)
    assert compiler.build(Signature("f", []), call)() == 9


def test_a_struct_for_two_calls_is_warned_of() -> None:
    """Each call gets a new one: what the first writes there is lost, as GMP's numbers would be."""
    shared = Reference(Struct([cast(1, "int64"), NULL]), discards=True)
    steps = [CFunction("memset", [shared, cast(0, "int32"), cast(16, "uint64")]) for _ in range(2)]
    lost = "argument #0 of memset is a Reference that is handed over before: it is made anew here"
    with pytest.warns(compiler.BuildWarning, match=lost):
        compiler.build(Signature("f", []), conventions.Sequence(steps))
    read = Reference(shared.value, reads_only=True)
    number = Reference(cast(1, "int64"), discards=True)
    for kept in (read, number):
        twice = [CFunction("memchr", [kept, cast(1, "int32"), cast(8, "uint64")])] * 2
        assert compiler.build(Signature("f", []), conventions.Sequence(twice)).signature
