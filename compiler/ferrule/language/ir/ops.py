"""The kernel IR: a small, typed, target-independent language of frozen ops in regions.

A `Program` is the IR of one compiled function: kernels, then one host function.  A function body is
a `Region`: a tuple of ops in order, and the values that it yields to the op that owns it.  Control
flow is structured as in MLIR's `scf`; there are no blocks and no jumps.  A `Value` is defined once,
by a parameter, a region argument or an op's result, and used after it in the same region or a
nested one.  The full list of rules is the docstring of `verifier`.

The semantics of all targets:

* integer arithmetic wraps; `floordiv` and `mod` are Python's (floor), x // 0 and x % 0 are 0, and
  INT_MIN // -1 wraps to INT_MIN: nothing traps;
* `shl` and `shr` shift by an unsigned count: a count of at least the width shifts every bit out;
  `shr` of a signed integer keeps its sign;
* `div` is the division of floats; float `max` and `min` are NaN if an operand is NaN, and treat
  -0.0 as less than 0.0 (IEEE 754-2019 maximum and minimum);
* `popc` counts the 1 bits, `clz` the zeros above the highest 1 bit (all bits for 0);
* the functions of floats are those of C's math.h, with its special values (Annex F); `round` is to
  nearest, ties to even; `fma` rounds once.  `fast` allows a target a less precise instruction;
* `cast` from float to integer truncates towards zero, saturates, and converts NaN to 0; to bool it
  tests for "not zero"; to a narrower float it rounds to nearest, ties to even;
* `Size` reads an expression over the program's symbols; it never wraps: a result outside of its
  type or a division by zero is its fault;
* `Check` ends the call with its fault if its condition is false; in a kernel other threads need not
  continue after it.  A kernel on a GPU prints the message, and a later call fails;
* `Print` writes to the standard output; the threads of a kernel do so in any order;
* `Alloc` makes a tensor that is compact, row-major and uninitialised; it lives until the call ends,
  or until the same op makes the next one, and longer if it is returned.  Dims that are symbols
  without a value from the caller get their values here, and the first size of a `Shrink`;
* `Launch` runs the kernel for each block and thread; a grid with a zero runs nothing.  Its sizes
  are within CUDA's limits: the language puts `Check`s before it, so every target refuses the same
  launches.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal

from ferrule.compiler.artefacts import Fault, Location, Relation
from ferrule.language.ir.arithmetic import *
from ferrule.language.ir.arithmetic import Arithmetic, Constant
from ferrule.language.ir.asynchronous import *
from ferrule.language.ir.calls import *
from ferrule.language.ir.calls import Outgoing
from ferrule.language.ir.control import *
from ferrule.language.ir.control import Parallel, RegionOp
from ferrule.language.ir.facts import Facts
from ferrule.language.ir.mbarriers import *
from ferrule.language.ir.objects import *
from ferrule.language.ir.objects import ObjectOp
from ferrule.language.ir.operation import Effects, Operation, Result
from ferrule.language.ir.scalars import *
from ferrule.language.ir.tensor_cores import *
from ferrule.language.ir.threads import *
from ferrule.language.ir.threads import Cooperation, CooperationEffect
from ferrule.language.ir.values import *
from ferrule.language.ir.values import LaunchOptions, Region, Value
from ferrule.specs import Dim, Param, Sym
from ferrule.specs.conditions import Comparison
from ferrule.specs.deferred import dataclass

_NO_EFFECT: Final[Effects] = frozenset()
_FAILS: Final[Effects] = frozenset(("fails",))

Register = Literal[
    "thread_idx",
    "block_idx",
    "block_dim",
    "grid_dim",
    "cluster_idx",
    "cluster_dim",
    "block_in_cluster_idx",
    "block_in_cluster_dim",
]


@dataclass(frozen=True, slots=True, eq=False)
class Size(Operation, text="size {dim:dim}", effects=(), uniform=True, speculative=True):
    """The value of an expression over the program's symbols, as an Int32 or Int64."""

    result: Result
    dim: Dim
    fault: Fault | None = None

    @property
    def effects(self) -> Effects:
        """A size with a fault may end the call."""
        return _NO_EFFECT if self.fault is None else _FAILS

    @property
    def is_speculative(self) -> bool:
        """Only a size without a fault is speculative."""
        return self.fault is None


@dataclass(frozen=True, slots=True, eq=False)
class Special(
    Operation,
    text="{register} {axis:axis}",
    effects=(),
    uniform=True,
    speculative=True,
    place="kernel",
):
    """A coordinate of the running thread, Int32 (kernels only)."""

    result: Result
    register: Register
    axis: int

    @property
    def is_uniform(self) -> bool:
        """Whether it is uniform: coordinates of blocks and sizes are."""
        return self.register != "thread_idx"


@dataclass(frozen=True, slots=True, eq=False)
class Load(Operation, text="load {tensor}[{indices}]", effects=("reads",), uniform=True):
    """The element of a tensor at these coordinates (one integer for each dim)."""

    result: Result
    tensor: Value
    indices: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class View(Operation, text="view {tensor}{indices:at}", effects=(), uniform=True):
    """A tensor that begins at an element of another one, with its own shape and strides.

    Without indices it begins at the first element, and may have another dtype; then `tensor` may be
    the handle of a pointer.  It is the same memory.  A view that is `whole` is the same tensor but
    for the known alignment, and has its object.
    """

    result: Result
    tensor: Value
    indices: tuple[Value, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pointer(Operation, text="pointer {address}", effects=(), uniform=True):
    """The memory at an address, an Int64 such as the result of `Address`: a tensor of one dim.

    It may be the memory of any tensor that is in the same address space.
    """

    result: Result
    address: Value


@dataclass(frozen=True, slots=True, eq=False)
class Fragment(Operation, text="fragment", effects=("makes",)):
    """A new tensor of the running thread only, in registers or on its stack.

    Its elements are undefined until they are written, each time the op runs.
    """

    result: Result


@dataclass(frozen=True, slots=True, eq=False)
class Table(Operation, text="table {data:bytes}", effects=(), uniform=True, speculative=True):
    """A tensor of constants, which live as long as the code; nothing writes to it.

    `data` are its elements in row-major order, as a little-endian machine has them in memory.
    """

    result: Result
    data: bytes


class _NewTensor:
    """What ops that make a tensor object derive from, besides `Operation`."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def result(self) -> Value:
            """The tensor."""

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """The dims that are symbols."""
        return tuple(dim for dim in self.result.tensor.shape if isinstance(dim, Sym))

    @property
    def objects(self) -> int:
        """See `Operation`."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(
    _NewTensor,
    Operation,
    text="alloc ({sizes})",
    effects=("makes", "blocks", "asks"),
    place="host",
):
    """A new tensor (host only).  `sizes` are the values of its dims: Int64, none negative."""

    result: Result
    sizes: tuple[Value, ...]
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shrink(
    _NewTensor,
    Operation,
    text="shrink {tensor}, {size}",
    effects=("reads", "makes", "asks"),
    place="host",
):
    """The first rows of a tensor that this function owns, as one that it owns, too (host only).

    It is the same memory; the tensor of the operand stays as it is.  `size` is an Int64 from 0 to
    the operand's first size: the number of rows.
    """

    result: Result
    tensor: Value
    size: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Define(
    Operation,
    text="define {symbol:dim} = {value}",
    effects=("writes",),
    writes=(),
    place="host",
):
    """Gives a `made` symbol its value, an Int64, from here on (host only)."""

    symbol: Sym
    value: Value

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """The symbol."""
        return (self.symbol,)


@dataclass(frozen=True, slots=True, eq=False)
class Text(Operation, text="text {data!r}", effects=(), place="host"):
    """The address of constant bytes, which live as long as the code: a handle."""

    result: Result
    data: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Address(Operation, text="address {operand}", effects=(), uniform=True):
    """A handle as a number, Int64; for a tensor the address of its first element.

    For the result of an `Alloc` of this function it is the object, which a `Return` needs.
    """

    result: Result
    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class CallDevice(Operation, text="call_device", effects=(), place="host"):
    """The device of the call's tensors as the bits of a DLDevice, Int64: its type, and its index 32
    bits above (host functions only)."""

    result: Result


@dataclass(frozen=True, slots=True, eq=False)
class Store(
    Operation, text="store {value}, {tensor}[{indices}]", effects=("writes",), writes=("tensor",)
):
    """Writes an element of a tensor."""

    tensor: Value
    indices: tuple[Value, ...]
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Check(
    Operation,
    text="{inserted:prefix}check {condition}, {fault.kind} {fault.message!r}({values})",
    effects=("fails",),
):
    """Ends the call with `fault` if `condition` is false.

    An `inserted` check concerns only the op after it: other ops may come before it.
    """

    condition: Value
    fault: Fault
    values: tuple[Value, ...] = ()
    inserted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Print(Operation, text="print {format!r}({values})", effects=("shows", "blocks")):
    """Writes text to the standard output of the process.

    `format` is a format of C's `printf`, with a conversion for each value: `%lld` for an Int64,
    `%llu` or another one for a Uint64, `%f` or another one for a Float64, `%s` for a Boolean
    ("True", "False"), `%.*s` for the length of a text, an Int32, and its bytes.
    """

    format: str
    values: tuple[Value, ...]
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Return(Operation, text="return {values}", effects=("ends",), place="host"):
    """Returns the parts of the program's result: the last op of its host function.

    A tensor or object is its address; so is a string, followed by its length.
    """

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Launch(
    Operation,
    text="launch @{kernel}({arguments}) grid({grid}) block({block}){stream:word}{smem:word}"
    "{cluster:word}{priority:word}{completion_event:word}{programmatic_event:word}{options.words}",
    effects=("reads", "writes", "shows", "fails", "blocks", "calls"),
    place="host",
):
    """Runs a kernel of the program with these arguments (host functions only).

    Grid and block are three Int64 each (x, y, z), within CUDA's limits.  `stream` is a handle, by
    default the caller's current stream; targets without streams run in order and ignore it.
    `smem`, an Int64 within CUDA's limit, is the dynamic shared memory of a block, in bytes.
    `cluster`, three Int64, is the number of blocks in a cluster; `priority`, an Int32, is like the
    priority of streams; the events, pointers, are recorded when all blocks are done, and when all
    of them let the next launch begin.
    """

    kernel: str
    grid: tuple[Value, Value, Value]
    block: tuple[Value, Value, Value]
    arguments: tuple[Value, ...]
    stream: Value | None = None
    smem: Value | None = None
    location: Location | None = None
    cluster: tuple[Value, ...] = ()
    priority: Value | None = None
    completion_event: Value | None = None
    programmatic_event: Value | None = None
    options: LaunchOptions = LaunchOptions()


SimpleOp = (
    Constant
    | Size
    | Special
    | Arithmetic
    | Load
    | View
    | Pointer
    | Fragment
    | Table
    | Alloc
    | Shrink
    | Text
    | Address
    | CallDevice
    | Outgoing
    | ObjectOp
    | Cooperation
)
"""Ops with one result and no region."""

HostOp = Launch | Parallel | Alloc | Shrink | CallDevice | Outgoing | ObjectOp
"""Ops of host functions that the code of a target emits."""

EffectOp = Store | Check | Print | Launch | Return | Define | CooperationEffect
"""Ops without a result."""

Op = SimpleOp | EffectOp | RegionOp


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel or the host function.  Its parameters are tensors and scalars.

    Symbols need no parameter: every function of a program sees their values.
    """

    name: str
    kind: Literal["kernel", "host"]
    params: tuple[Value, ...]
    body: Region
    _facts: Facts | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def facts(self) -> Facts:
        """What the function is made of."""
        found = self._facts
        if found is None:
            found = Facts.of(self.body)
            object.__setattr__(self, "_facts", found)
        return found


@dataclass(frozen=True, slots=True)
class Program:
    """The IR of one compiled function.  The parameters of `host` are those of its signature.

    `symbols` maps every symbol to its name in text; the host function's caller provides their
    values, except for `made` symbols, which get them from an `Alloc`, `Shrink` or `Define`.
    `result`: its result.  `facts` hold of the symbols in every call, which the caller has checked.
    `objects` are the parameters of `host` whose Tensor objects the function gets, since it may
    return them: their positions there, and where they stand in a call, see `Body.objects`.
    `contracted`: it has an fma, in place of a product and a sum or in the formula of a function, so
    a CPU needs the instruction.
    """

    name: str
    kernels: tuple[Function, ...]
    host: Function
    symbols: dict[Sym, str]
    relations: tuple[Relation, ...] = ()
    result: Param | None = None
    made: frozenset[Sym] = frozenset()
    facts: tuple[Comparison, ...] = ()
    contracted: bool = False
    objects: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def held(self) -> tuple[Value, ...]:
        """The parameters of `host` with their Tensor objects."""
        return tuple(self.host.params[position] for position, _ in self.objects)

    @property
    def given(self) -> dict[Sym, str]:
        """The symbols whose values the caller of the host function provides."""
        return {symbol: name for symbol, name in self.symbols.items() if symbol not in self.made}

    def kernel(self, name: str) -> Function:
        """The kernel with this name.  Raises KeyError."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)
