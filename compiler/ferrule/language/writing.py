"""Programs of the kernel IR, written op by op: `fe.ir.Writer`, for languages of expressions.

    w = fe.ir.Writer("scale", [alpha, x, out])
    with w.parallel(n) as (i,):
        w["out"][i] = w["alpha"] * fe.ir.call("exp", w["x"][i])
    scale = w.build("--target cpu")

A `parallel` is a loop over threads on a CPU and a kernel on a GPU.  Each number has one dtype, and
only `cast` converts it: two numbers of an operation have the same dtype, and a number of Python
becomes a constant of the other one's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder, OpenRegion
from ferrule.language.ir.scalars import BINARY, UNARY
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.values import Value
from ferrule.runtime.calls.function import Function
from ferrule.specs import Boolean, Dim, DType, Float32, Int64, Param, Signature, as_dtype
from ferrule.specs.expr import Compound, Sym, is_dim
from ferrule.specs.params import Scalar, Tensor
from ferrule.specs.rounding import nearest

__all__ = ["Array", "Loop", "Number", "Writer", "call"]


class Number:
    """A run-time number of a program that is being written; operators write operations.

    `+ - *` and the comparisons are for all numbers, `/` and `**` for floats, `//`, `%`, `<<` and
    `>>` for integers, `& | ^ ~` for integers and Booleans.  `//` and `%` round down, as Python's.
    """

    __slots__ = ("_writer", "value")

    def __init__(self, writer: Writer, value: Value) -> None:
        self._writer = writer
        self.value = value

    @property
    def dtype(self) -> DType:
        """Its dtype."""
        assert isinstance(self.value.type, DType)
        return self.value.type

    def cast(self, dtype: DType | str) -> Number:
        """The number in another dtype or one by its name, as `ferrule.Int32(x)` would convert it.

        TypeError and ValueError for what is none.
        """
        if not isinstance(dtype, (DType, str)):
            raise TypeError(f"cast: expected a dtype, such as ferrule.Float32, but got {dtype!r}")
        return Number(self._writer, self._writer.builder.cast(as_dtype(dtype), self.value))

    def where(self, on_true: Number | float, on_false: Number | float) -> Number:
        """One of two numbers, by this Boolean; both are computed."""
        if self.dtype is not Boolean:
            raise TypeError(f"where: expected a Boolean, such as x < y, but got {self.dtype}")
        one = on_true if isinstance(on_true, Number) else on_false
        if not isinstance(one, Number):
            raise TypeError("where: one of two numbers must have a dtype: write w.constant(…)")
        one, other = one.with_(on_true), one.with_(on_false)
        return Number(self._writer, self._writer.builder.select(self.value, one.value, other.value))

    def with_(self, other: object) -> Number:
        """Another number of the same dtype: as it is, or a constant for a number of Python or
        NumPy; for an Int64 also a size.

        Raises TypeError for another dtype.
        """
        if self.dtype is Int64 and isinstance(other, (Sym, Compound)):
            return self._writer.size(other)
        if not isinstance(other, Number):
            return self._writer.constant(self.dtype, other)
        if other.dtype is not self.dtype:
            raise TypeError(
                f"an operation of {self.dtype} and {other.dtype}: convert one of them, "
                f"x.cast(ferrule.{self.dtype})"
            )
        return other

    def apply(self, op: str, *others: object) -> Number:
        """An operation of the kernel IR, or a function of `fe.math`, on this number and others."""
        rows = UNARY if op in UNARY else BINARY
        given = [self, *map(self.with_, others)]
        if self.dtype.bits < 32 and self.dtype.kind == "float" and _is_rounded(op):
            wide = [each.cast(Float32) for each in given]
            return wide[0].apply(op, *wide[1:]).cast(self.dtype)
        if op not in rows or len(given) != (1 if rows is UNARY else 2):
            raise TypeError(f"{op!r} is no operation of {len(given)} numbers")
        if self.dtype.kind not in rows[op].kinds:  # type: ignore[index]
            kinds = " or ".join(rows[op].kinds)  # type: ignore[index]
            raise TypeError(f"{op} takes numbers of the kind {kinds}, but got {self.dtype}")
        write = self._writer.builder.unary if rows is UNARY else self._writer.builder.binary
        return Number(self._writer, write(op, *(each.value for each in given)))  # type: ignore[arg-type]

    def _compared(self, op: Any, other: object) -> Number:
        right = self.with_(other)
        return Number(self._writer, self._writer.builder.compare(op, self.value, right.value))

    def __bool__(self) -> bool:
        raise TypeError(
            "a number of a program has no value yet: write condition.where(x, y), or "
            "with w.when(condition)"
        )

    def __repr__(self) -> str:
        return f"<a {self.dtype} of a program>"

    def __abs__(self) -> Number:
        if self.dtype.kind == "float":
            return self.apply("fabs")
        return (self < 0).where(-self, self) if self.dtype.kind == "int" else self.apply("add", 0)

    def __neg__(self) -> Number:
        return self.apply("neg")

    def __invert__(self) -> Number:
        return self.apply("not")

    def __hash__(self) -> int:
        return id(self)

    def __add__(self, other: object) -> Number:
        return self.apply("add", other)

    def __radd__(self, other: object) -> Number:
        return self.with_(other).apply("add", self)

    def __sub__(self, other: object) -> Number:
        return self.apply("sub", other)

    def __rsub__(self, other: object) -> Number:
        return self.with_(other).apply("sub", self)

    def __mul__(self, other: object) -> Number:
        return self.apply("mul", other)

    def __rmul__(self, other: object) -> Number:
        return self.with_(other).apply("mul", self)

    def __truediv__(self, other: object) -> Number:
        return self.apply("div", other)

    def __rtruediv__(self, other: object) -> Number:
        return self.with_(other).apply("div", self)

    def __floordiv__(self, other: object) -> Number:
        return self.apply("floordiv", other)

    def __rfloordiv__(self, other: object) -> Number:
        return self.with_(other).apply("floordiv", self)

    def __mod__(self, other: object) -> Number:
        return self.apply("mod", other)

    def __rmod__(self, other: object) -> Number:
        return self.with_(other).apply("mod", self)

    def __pow__(self, other: object) -> Number:
        return self.apply("pow", other)

    def __rpow__(self, other: object) -> Number:
        return self.with_(other).apply("pow", self)

    def __and__(self, other: object) -> Number:
        return self.apply("and", other)

    def __rand__(self, other: object) -> Number:
        return self.with_(other).apply("and", self)

    def __or__(self, other: object) -> Number:
        return self.apply("or", other)

    def __ror__(self, other: object) -> Number:
        return self.with_(other).apply("or", self)

    def __xor__(self, other: object) -> Number:
        return self.apply("xor", other)

    def __rxor__(self, other: object) -> Number:
        return self.with_(other).apply("xor", self)

    def __lshift__(self, other: object) -> Number:
        return self.apply("shl", other)

    def __rlshift__(self, other: object) -> Number:
        return self.with_(other).apply("shl", self)

    def __rshift__(self, other: object) -> Number:
        return self.apply("shr", other)

    def __rrshift__(self, other: object) -> Number:
        return self.with_(other).apply("shr", self)

    def __lt__(self, other: object) -> Number:
        return self._compared("lt", other)

    def __le__(self, other: object) -> Number:
        return self._compared("le", other)

    def __gt__(self, other: object) -> Number:
        return self._compared("gt", other)

    def __ge__(self, other: object) -> Number:
        return self._compared("ge", other)

    def __eq__(self, other: object) -> Number:  # type: ignore[override]
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Number:  # type: ignore[override]
        return self._compared("ne", other)


def _is_rounded(op: str) -> bool:
    """Whether it is a function that halves are computed for in float32, as `fe.math` says."""
    row = UNARY.get(op) or BINARY.get(op)  # type: ignore[call-overload]
    return row is not None and row.function == "rounded"


Index = Number | Dim
"""An index: an integer number of the program, a size, or a number of Python."""


class Array:
    """A tensor of a program that is being written: `array[i, j]` reads and writes its elements.

    An index is a number of the program, a size, or a number of Python, which lies in the tensor as
    far as its size is known.  Others are not checked: a program that reads outside of a tensor
    reads other memory.
    """

    __slots__ = ("_writer", "value")

    def __init__(self, writer: Writer, value: Value) -> None:
        self._writer = writer
        self.value = value

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""
        return self.value.tensor.dtype

    @property
    def shape(self) -> tuple[Number, ...]:
        """Its sizes, Int64."""
        return tuple(map(self._writer.size, self.value.tensor.shape))

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Number:
        at = self._indices(indices)
        return Number(self._writer, self._writer.builder.load(self.value, at))

    def __setitem__(self, indices: Index | tuple[Index, ...], number: Number | float) -> None:
        at = self._indices(indices)
        given = number if isinstance(number, Number) else self._writer.constant(self.dtype, number)
        if given.dtype is not self.dtype:
            raise TypeError(
                f"{self.value.hint}: its elements are {self.dtype}, but got {given.dtype}: "
                f"convert it, x.cast(…)"
            )
        self._writer.builder.store(self.value, at, given.value)

    def _indices(self, indices: Index | tuple[Index, ...]) -> tuple[Value, ...]:
        given = indices if isinstance(indices, tuple) else (indices,)
        shape = self.value.tensor.shape
        if len(given) != len(shape):
            name, count = self.value.hint, len(shape)
            raise TypeError(f"{name} has {count} dims, but got {len(given)} indices")
        for each, size in zip(given, shape, strict=True):
            self._check_inside(each, size)
        return tuple(self._writer.whole(each, f"an index of {self.value.hint}") for each in given)

    def _check_inside(self, index: Index, size: Dim) -> None:
        """Raises IndexError for a number of Python that no tensor of this size has."""
        if not isinstance(index, int) or (index >= 0 and not isinstance(size, int)):
            return
        if index < 0 or index >= int(size):
            raise IndexError(
                f"{index} is no index of {self.value.hint}, whose size there is {size}"
                + (f": the last one is w.size({size} - 1)" if index < 0 else "")
            )


class Loop:
    """A loop that is being written: its `index`, and the numbers that it carries.

    `carried` are their values in an iteration; `next` tells those of the next one, and `results`
    are those after the last.
    """

    __slots__ = ("_next", "_writer", "carried", "index", "results")

    def __init__(self, writer: Writer, index: Number, carried: tuple[Number, ...]) -> None:
        self._writer = writer
        self._next: tuple[Number, ...] | None = None
        self.index = index
        self.carried = carried
        self.results: tuple[Number, ...] = ()

    def next(self, *numbers: Number | float) -> None:
        """The numbers that the next iteration gets, in order."""
        if len(numbers) != len(self.carried):
            raise TypeError(f"the loop carries {len(self.carried)} numbers, but got {len(numbers)}")
        pairs = zip(self.carried, numbers, strict=True)
        self._next = tuple(one.with_(other) for one, other in pairs)

    def _yields(self) -> tuple[Value, ...]:
        if self.carried and self._next is None:
            raise CompileError("a loop that carries numbers must say those of the next iteration")
        return tuple(each.value for each in self._next or ())


class Writer:
    """One function that is being written.

    `params` are tensors and numbers; `writer["x"]` is the `Array` or `Number` of one.  Raises
    TypeError for other parameters, and ValueError as a `Signature` does.
    """

    def __init__(self, name: str, params: Sequence[Param], *, doc: str | None = None) -> None:
        self.signature: Final = Signature(name, tuple(params))
        self.builder: Final = Builder()
        self._doc: Final = doc
        self._values: Final = [_value(param) for param in self.signature.params]
        self._region: Final = OpenRegion()
        self._names: Final = {
            param.name: value
            for param, value in zip(self.signature.params, self._values, strict=True)
        }
        self._inside = False
        self._blocks = 0
        # The function's body is open as long as the writer lives.
        self._opened: Final = ExitStack()
        self._opened.enter_context(self.builder.region(self._region))

    def __getitem__(self, name: str) -> Any:
        """The `Array` or `Number` of a parameter.  Raises KeyError."""
        if name not in self._names:
            raise KeyError(f"{self.signature} has no parameter {name!r}")
        value = self._names[name]
        return (Array if isinstance(value.type, TensorType) else Number)(self, value)

    def constant(self, dtype: DType | str, number: object) -> Number:
        """A number of a dtype.  Raises TypeError for one of another kind, OverflowError for an
        integer that does not fit."""
        dtype = as_dtype(dtype)
        if getattr(number, "shape", None) == () and hasattr(number, "item"):
            number = number.item()
        kinds = {"float": (int, float), "bool": (bool,)}.get(dtype.kind, (int,))
        is_flag = isinstance(number, bool)
        if not isinstance(number, kinds) or (is_flag and dtype.kind != "bool"):
            raise TypeError(f"expected {dtype}, but got {number!r}")
        assert isinstance(number, (int, float))
        if dtype.is_integer and not dtype.range[0] <= number <= dtype.range[1]:
            raise OverflowError(f"{number} does not fit {dtype}")
        number = nearest(dtype, number) if dtype.kind == "float" else number
        return Number(self, self.builder.constant(dtype, number))

    def size(self, dim: Dim) -> Number:
        """The value of a size, Int64.  Raises TypeError for something else."""
        if not is_dim(dim):
            raise TypeError(f"expected a size, but got {dim!r}")
        if isinstance(dim, int):
            return self.constant(Int64, dim)
        return Number(self, self.builder.size(Int64, dim))

    def whole(self, number: object, what: str) -> Value:
        """An integer number of the program; a Python int and a size become an Int64."""
        if isinstance(number, (Sym, Compound)):
            return self.size(number).value
        if isinstance(number, int) and not isinstance(number, bool):
            return self.constant(Int64, number).value
        if isinstance(number, Number) and number.dtype.kind in ("int", "uint"):
            return number.value
        shown = str(number.dtype) if isinstance(number, Number) else repr(number)
        raise TypeError(f"expected an integer as {what}, but got {shown}")

    @contextmanager
    def parallel(self, *extents: Dim) -> Iterator[tuple[Number, ...]]:
        """Write what is done for each coordinate below the extents, in any order: by threads of the
        CPU, or by a kernel of a GPU.  It gives the coordinates, Int64."""
        if self._inside or not extents:
            raise CompileError(
                Diagnostic(
                    "a parallel loop stands in the function's body and has extents",
                    hint="write w.range(…) for a loop inside, or w.parallel(n, m)",
                )
            )
        counts = tuple(self.size(each).value for each in extents)
        indices = tuple(Value(Int64, f"i{axis}") for axis, _ in enumerate(extents))
        self._inside = True
        try:
            with self._block() as region:
                yield tuple(Number(self, each) for each in indices)
        finally:
            self._inside = False
        self.builder.append(ops.Parallel(indices, counts, region.freeze()))

    @contextmanager
    def _block(self) -> Iterator[OpenRegion]:
        self._blocks += 1
        try:
            with self.builder.region() as region:
                yield region
        finally:
            self._blocks -= 1

    @contextmanager
    def range(
        self, start: Dim | Number, stop: Dim | Number, carried: Sequence[Number] = ()
    ) -> Iterator[Loop]:
        """Write a loop in order, whose bounds are sizes or Int64 numbers, as Python's `range`."""
        for each in carried:
            if not isinstance(each, Number):
                raise TypeError(
                    f"range: a loop carries numbers of the program, but got {each!r}: "
                    "w.constant(dtype, number) makes one"
                )
        first, last = self._bound(start), self._bound(stop)
        step = self.constant(Int64, 1).value
        index = Value(Int64, "k")
        inner = tuple(Value(each.dtype, "carried") for each in carried)
        loop = Loop(self, Number(self, index), tuple(Number(self, each) for each in inner))
        with self._block() as region:
            yield loop
        results = tuple(Value(each.dtype, "result") for each in carried)
        initial = tuple(each.value for each in carried)
        body = region.freeze(*loop._yields())
        self.builder.append(ops.For(results, index, first, last, step, initial, inner, body))
        loop.results = tuple(Number(self, each) for each in results)

    def _bound(self, given: Dim | Number) -> Value:
        if not isinstance(given, Number):
            return self.size(given).value
        if given.dtype is not Int64:
            raise TypeError(f"expected a size or an Int64 as a bound, but got {given.dtype}")
        return given.value

    @contextmanager
    def when(self, condition: Number) -> Iterator[None]:
        """Write what is done if a Boolean is true."""
        if not isinstance(condition, Number) or condition.dtype is not Boolean:
            raise TypeError("when: expected a Boolean of the program, such as x < y")
        with self._block() as region:
            yield
        self.builder.if_(condition.value, region.freeze(), OpenRegion().freeze(), ())

    def program(self) -> ops.Program:
        """What was written until now, verified.  Raises CompileError, such as for a number that is
        used outside of the loop that it belongs to, and inside of a loop or branch."""
        if self._blocks:
            raise CompileError(
                f"{self.signature.name} is asked for inside of a loop or branch, which is not a "
                "part of it yet: build it behind the block"
            )
        from ferrule.language.ir.rules.verifier import VerifierError, verify

        name = self.signature.name
        host = ops.Function(name, "host", tuple(self._values), self._region.freeze())
        made = ops.Program(name, (), host, dict(self.signature.symbols))
        try:
            verify(made)
        except VerifierError as error:
            raise CompileError(f"the program {name} breaks a rule: {error}") from None
        return made

    def build(self, options: str | Options | None = None) -> Function:
        """The TVM-FFI function of what was written until now, for `options` as `fe.compile` takes
        them.  It may be built for several targets.  Raises CompileError."""
        from ferrule.language.stages import build_program

        return build_program(self.program(), self.signature, options, self._doc)


def call(function: str, *numbers: Number) -> Number:
    """A function of `fe.math`, by its name: `call("exp", x)`, `call("fma", x, y, z)`.

    Raises TypeError for an unknown one, and for numbers of other dtypes.
    """
    if not numbers or not isinstance(numbers[0], Number):
        raise TypeError(f"call({function!r}, …): expected numbers of a program")
    first, *others = numbers
    if function == "fma" and len(numbers) == 3:
        if first.dtype.kind != "float":
            raise TypeError(f"fma takes floats, but got {first.dtype}")
        rest = [first.with_(each).value for each in others]
        return Number(first._writer, first._writer.builder.fma(first.value, *rest))
    return first.apply(function, *others)


def _value(param: Param) -> Value:
    """The value of a parameter."""
    match param:
        case Tensor():
            kind = TensorType(param.dtype, param.shape, param.strides, param.align)
            return Value(kind, param.name)
        case Scalar():
            return Value(param.dtype, param.name)
        case _:
            raise TypeError(
                f"{param.name}: expected a Tensor or a Scalar of ferrule.specs, but got a "
                f"{type(param).__name__}"
            )
