"""The kernel language in plain Python: a module's source runs with a `Language` for `ferrule`.

Numbers carry their dtype and compute as the language's documentation says: promotion, weak Python
numbers, wrap-around, and what a division by zero is.  Control flow is Python's own.  So the model
knows nothing of lowering, and what a program does here is what its author means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, Final

import numpy as np
from interpreter import Memory, scalars
from interpreter.scalars import Scalar

from ferrule import specs
from ferrule.specs import Boolean, DType, Float32, Float64, Int32, Int64, TFloat32
from random_programs.operators import Operators
from random_programs.promotion import is_wide, promoted, weak

COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
FLOAT_FUNCTIONS: Final = (
    *("sqrt", "floor", "ceil", "trunc", "round", "fabs", "copysign", "fmod", "fma"),
    *("isnan", "isinf"),
)


def _common(left: DType, right: DType) -> DType:
    dtype = promoted(left, right)
    assert dtype is not None, f"no dtype for both {left} and {right}"
    return dtype


@dataclass(eq=False)
class Number(Operators):
    """A run-time number."""

    language: Language
    dtype: DType
    value: Scalar

    def __bool__(self) -> bool:
        return bool(self.value != 0)

    def to(self, dtype: DType | Conversion) -> Number:
        """The number in another dtype."""
        dtype = dtype.dtype if isinstance(dtype, Conversion) else dtype
        return Number(self.language, dtype, scalars.cast(self.dtype, dtype, self.value))

    def apply(self, op: str, *operands: Any) -> Any:
        """The result of an operator, one operand of which can be a Python number."""
        if any(isinstance(operand, Whole) for operand in operands):
            return NotImplemented
        dtypes = [each.computed().dtype for each in operands if isinstance(each, Number)]
        numbers = [self.language.number(each, dtypes[0]).computed() for each in operands]
        if len(numbers) == 1:
            return numbers[0].alone(op)
        dtype = reduce(_common, (number.dtype for number in numbers))
        if op in COMPARISONS:
            x, y = (number.to(dtype).value for number in numbers)
            return Number(self.language, Boolean, scalars.compare(op, x, y))
        return self.language.together(op, dtype, numbers)

    def computed(self) -> Number:
        """What operators make of the number first."""
        return self.to(Float32) if self.dtype is TFloat32 else self

    def alone(self, op: str) -> Number:
        """The result of an operator of one operand."""
        match op:
            case "abs" if self.dtype is Boolean:
                return self.to(Int32)
            case "abs" if self.dtype.kind == "uint":
                return self
            case "abs":
                return self.apply("max", self, -self)  # type: ignore[no-any-return]
            case "popc" | "clz":
                return Number(self.language, Int32, scalars.unary(op, self.dtype, self.value))
            case _ if op in FLOAT_FUNCTIONS and self.dtype.kind != "float":
                return self.to(Float32).alone(op)
            case "isnan" | "isinf":
                asked = {"isnan": np.isnan, "isinf": np.isinf}[op](self.value)
                return Number(self.language, Boolean, bool(asked))
            case "neg" | "pos" if self.dtype is Boolean:
                return self.to(Int32).alone(op)
            case "pos":
                return self
        return Number(self.language, self.dtype, scalars.unary(op, self.dtype, self.value))


@dataclass(eq=False)
class Whole(Operators):
    """A whole-tensor expression: a number for each element."""

    items: list[Number]

    def apply(self, op: str, *operands: Any) -> Any:
        """The result of an operator, element by element."""
        size = len(self.items)
        columns = [x.items if isinstance(x, Whole) else [x] * size for x in operands]
        pairs = zip(self.items, zip(*columns, strict=True), strict=True)
        return Whole([item.apply(op, *row) for item, row in pairs])

    def to(self, dtype: DType | Conversion) -> Whole:
        """Every number in another dtype."""
        return Whole([item.to(dtype) for item in self.items])

    def __getitem__(self, index: int) -> Number:
        return self.items[index]


class Array:
    """A tensor."""

    def __init__(self, language: Language, dtype: DType, array: np.ndarray[Any, Any]) -> None:
        self.language, self.dtype = language, dtype
        self.memory, self.array = Memory.of(array), array
        self.shape = tuple(language.number(size) for size in array.shape)

    def _offset(self, key: Any) -> int:
        key = key if isinstance(key, tuple) else (key,)
        at = [int(i.value) if isinstance(i, Number) else i for i in key]
        assert all(0 <= i < n for i, n in zip(at, self.array.shape, strict=True)), f"[{at}]"
        return sum(i * stride for i, stride in zip(at, self.array.strides, strict=True))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self.load()
        if isinstance(key, tuple) and any(index is None for index in key):
            return Array(self.language, self.dtype, self.array[tuple(map(_slice, key))])
        return Number(self.language, self.dtype, self.memory.read(self.dtype, self._offset(key)))

    def load(self) -> Whole:
        """All elements."""
        assert self.array.ndim == 1
        return Whole([self[i] for i in range(len(self.array))])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):
            items = value.items if isinstance(value, Whole) else [value] * len(self.array)
            for i, item in enumerate(items):
                self[i] = item
            return
        number = self.language.number(value, self.dtype).to(self.dtype)
        self.memory.write(self.dtype, self._offset(key), number.value)


def _slice(index: Any) -> Any:
    """An index with None for all of a dim, as NumPy's."""
    if index is None:
        return slice(None)
    return int(index.value) if isinstance(index, Number) else index


class Language:
    """What `ferrule` is to a program that runs in the model: its names, with a meaning."""

    Tensor = object

    def __init__(self) -> None:
        self.in_kernel = False
        self.thread: dict[str, tuple[int, ...]] = {}
        self.math = self.arch = self
        self.range_constexpr = range

    def __getattr__(self, name: str) -> Any:
        if name in ("thread_idx", "block_idx", "block_dim", "grid_dim"):
            return lambda: tuple(self.number(i) for i in self.thread[name])
        if name in (*FLOAT_FUNCTIONS, "popc", "clz"):
            return lambda *operands: self.function(name, operands)
        return Conversion(self, getattr(specs, name))

    def function(self, name: str, operands: tuple[Any, ...]) -> Any:
        """A function of `fe.math`; of Python numbers alone it is a Python number."""
        if any(isinstance(operand, (Whole, Number)) for operand in operands):
            return _leader(operands).apply(name, *operands)
        dtype = Int32 if name in ("popc", "clz") else Float64
        first, *rest = (Number(self, dtype, scalars.number(dtype, x)) for x in operands)
        value = first.apply(name, first, *rest).value
        return value.item() if isinstance(value, np.generic) else value

    def number(self, value: Any, near: DType | None = None) -> Number:
        """A number; a Python number takes the dtype that it has near another."""
        if isinstance(value, Number):
            return value
        dtype = weak(value, near)
        return Number(self, dtype, scalars.number(dtype, value))

    def make_fragment(self, count: int, dtype: Conversion) -> Array:
        """A new tensor; a dtype that NumPy lacks has its bits."""
        return Array(self, dtype.dtype, np.zeros(count, scalars.memory(dtype.dtype)))

    def full(self, shape: tuple[int], value: Number, dtype: Conversion) -> Whole:
        """A vector of one number."""
        return Whole([value.to(dtype)] * shape[0])

    def converted(self, value: Any, dtype: DType) -> Any:
        """What `fe.Int8(x)` is."""
        if isinstance(value, (Number, Whole)):
            return value.to(dtype)
        return Number(self, dtype, scalars.number(dtype, value))

    def together(self, op: str, dtype: DType, numbers: list[Number]) -> Number:
        """The result of an operator of numbers whose common dtype is this one."""
        if (op == "div" or op in FLOAT_FUNCTIONS) and dtype.kind != "float":
            dtype = Float32
        if dtype is Boolean and op in ("min", "max"):
            op = {"min": "and", "max": "or"}[op]
        if dtype is Boolean and op not in ("and", "or", "xor"):
            dtype = Int32
        values = [number.to(dtype).value for number in numbers]
        if op in ("floordiv", "mod") and values[1] == 0 and not self.in_kernel:
            raise ZeroDivisionError("integer division or modulo by zero")
        if op == "fma":
            return Number(self, dtype, scalars.fma(dtype, *values))
        return Number(self, dtype, scalars.binary(op, dtype, *values))

    def max(self, *values: Any) -> Any:
        """The largest; NaN if one is."""
        return self._extremum("max", values)

    def min(self, *values: Any) -> Any:
        """The smallest; NaN if one is."""
        return self._extremum("min", values)

    def _extremum(self, op: str, values: tuple[Any, ...]) -> Any:
        result = values[0]
        for value in values[1:]:
            if any(isinstance(each, (Whole, Number)) for each in (result, value)):
                result = _leader((result, value)).apply(op, result, value)
            else:
                result = {"min": min, "max": max}[op](result, value)
        return result

    def range(self, *bounds: Any) -> Iterator[Number]:
        """A run-time loop's indices: in 64 bits where a bound may need them."""
        numbers = [self.number(bound) for bound in bounds]
        dtype = Int64 if any(is_wide(number.dtype) for number in numbers) else Int32
        for i in range(*(int(number.to(dtype).value) for number in numbers)):
            yield Number(self, dtype, i)

    def jit(self, function: Callable[..., None]) -> Callable[..., None]:
        """A host function is itself."""
        return function

    def kernel(self, function: Callable[..., None]) -> Callable[..., Any]:
        """A kernel waits for its launch."""
        return lambda *args, **kwargs: _Call(self, lambda: function(*args, **kwargs))

    @contextmanager
    def running(self, thread: dict[str, tuple[int, ...]]) -> Iterator[None]:
        """Inside, this thread of a kernel runs."""
        self.in_kernel, self.thread = True, thread
        try:
            yield
        finally:
            self.in_kernel, self.thread = False, {}


@dataclass(frozen=True)
class Conversion:
    """`fe.Int8` and its like."""

    language: Language
    dtype: DType

    def __call__(self, value: Any) -> Any:
        return self.language.converted(value, self.dtype)


def _leader(operands: tuple[Any, ...]) -> Any:
    """The operand that decides what an operation is: a whole tensor before a number."""
    return next(x for kind in (Whole, Number) for x in operands if isinstance(x, kind))


@dataclass
class _Call:
    """A kernel's call before `.launch`."""

    language: Language
    function: Callable[[], None]

    def launch(self, *, grid: Any, block: Any) -> None:
        """Runs every thread of every block."""
        sizes = [_sizes(grid), _sizes(block)]
        for place in product(*(product(*map(range, size)) for size in sizes)):
            coordinates = (*place, *sizes)
            names = ("block_idx", "thread_idx", "grid_dim", "block_dim")
            with self.language.running(dict(zip(names, coordinates, strict=True))):
                self.function()


def _sizes(given: Any) -> tuple[int, ...]:
    items = given if isinstance(given, tuple) else (given,)
    sizes = [int(x.value) if isinstance(x, Number) else x for x in items]
    return (*sizes, 1, 1)[:3]


def execute(source: str, name: str, arguments: tuple[Any, ...], dtypes: list[DType]) -> None:
    """Runs the function `name` of a module in the model; its source leaves out what `fe` is.

    `dtypes`: of each argument, an array or a number.
    """
    language = Language()
    namespace = {
        "__name__": __name__,
        "fe": language,
        "range": language.range,
        "max": language.max,
        "min": language.min,
    }
    exec(compile(source, "<model>", "exec"), namespace)
    given = [
        Array(language, dtype, x) if isinstance(x, np.ndarray) else language.converted(x, dtype)
        for x, dtype in zip(arguments, dtypes, strict=True)
    ]
    with np.errstate(all="ignore"):
        namespace[name](*given)  # type: ignore[operator]
