"""The host function in the text that people read: memrefs, their sizes, assertions, launches.

    func.func @scale(%x: memref<?xf32>, %y: memref<?xf32>, %factor: f32) { … }

Symbols are sizes and strides of the memrefs; a symbol that none of them has is an argument after
the parameters.  At its beginning the function asserts what the signature promises about its sizes.
A check is a `cf.assert`, whose message has no values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import Final

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.mlir.attributes import UNSIGNED
from ferrule.language.codegen.cuda.output import still
from ferrule.language.codegen.host.allocation import owned_tensors
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType, Type
from ferrule.language.mlir import host, memory, output
from ferrule.language.mlir import requests as outside
from ferrule.language.mlir.device.lines import Lines
from ferrule.language.mlir.folding import without_unused
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.readable.launches import Launches
from ferrule.language.mlir.text import Text, escaped, quoted
from ferrule.language.mlir.types import Spaces, static_size, static_stride, value_type, whole_type
from ferrule.specs import Dim, DType, Param, Sym, TFloat32, params, symbols_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import ValueOf, format_dim

SHOWN: Final = Spaces(boolean="i1")
"""The memory of a host function."""
_MOST: Final = (1 << 31) - 1


@dataclass(slots=True)
class ShownHost:
    """The surroundings of the host function; `unchecked`: it launches
    kernels, and launches check the sizes.
    """

    program: ops.Program
    launches: Launches
    unchecked: bool
    spaces: Spaces = SHOWN
    unwritten: Set[ops.Value] = frozenset()
    approximates: bool = False
    native: bool = False
    returned: list[tuple[str, str, str]] = field(default_factory=list)
    """The results, their types and attributes."""

    def fails(self, op: ops.Op) -> bool:
        return False  # an assertion has no status

    def check(self, f: FunctionText, ok: str, fault: Fault, values: Sequence[str]) -> None:
        if not (self.unchecked and fault.kind == "LaunchError"):
            f.t.line(f"cf.assert {ok}, {escaped(still(fault).encode())}")

    def print_(self, f: FunctionText, op: ops.Print) -> None:
        output.print_(f, op)

    def other(self, f: FunctionText, op: ops.Op) -> None:
        match op:
            case ops.Parallel():
                host.parallel(f, op)
            case ops.Launch():
                self.launches.launch(f, op)
            case ops.Alloc(result, sizes):
                f.values[result] = _allocated(f, result, sizes)
                outside.give_sizes(f, op)
            case ops.Shrink(result, tensor):
                outside.give_sizes(f, op)
                f.values[result] = _shrunk(f, result, tensor)
            case ops.Define():
                outside.define(f, op)
            case ops.Return(values):
                self.returned = list(_results(f, self.program, values))
            case _:
                outside.emit(f, op)


def _allocated(f: FunctionText, result: ops.Value, sizes: Sequence[ops.Value]) -> str:
    """A new tensor."""
    t, type_ = f.t, result.tensor
    given = [
        t.as_index(f.values[size])
        for dim, size in zip(type_.shape, sizes, strict=True)
        if not static_size(dim)
    ]
    kind = whole_type(type_, f.spaces)
    text = f"memref.alloc({', '.join(given)}) {{alignment = {type_.align} : i64}} : {kind}"
    return t.op(text, kind, result.hint)


def _shrunk(f: FunctionText, result: ops.Value, tensor: ops.Value) -> str:
    """The first rows of a tensor."""
    kind = whole_type(result.tensor, f.spaces)
    part = memory.view(f, ops.View(result, tensor))
    return f.t.op(f"memref.cast {part} : {f.t.types[part]} to {kind}", kind, result.hint)


# ---- results ----


def _results(
    f: FunctionText, program: ops.Program, values: Sequence[ops.Value]
) -> Iterator[tuple[str, str, str]]:
    """What the function returns, with types and attributes: numbers; memrefs that it has made;
    pointers to other objects."""
    assert program.result is not None
    owned = owned_tensors(program)
    made = {
        op.result: op.operand
        for op in program.host.body.ops
        if isinstance(op, ops.Address) and op.operand in owned
    }
    for value, is_object in zip(values, _parts(program.result), strict=True):
        if value in made:
            name = f.values[made[value]]
            yield name, f.t.types[name], _sign(made[value].type)
        elif is_object:
            name, kind = f.values[value], "!llvm.ptr"
            yield f.t.op(f"llvm.inttoptr {name} : i64 to {kind}", kind), kind, ""
        else:
            yield f.values[value], f.type_of(value), _sign(value.type)


def _as_objects(program: ops.Program) -> frozenset[ops.Value]:
    """The tensors of the function that it uses as objects, and does not only return."""
    used = {
        value
        for op in program.host.facts.ops
        if not isinstance(op, ops.Return)
        for value in (*op.operands, *(each for region in op.regions for each in region.yields))
    }
    every = program.host.facts.each(ops.Address)
    addresses = [address for address in every if address.result in used]
    return owned_tensors(program) & {op.operand for op in addresses}


def _parts(result: Param) -> Iterator[bool]:
    """For each part of a result, whether it is an object."""
    match result:
        case params.Scalar():
            yield False
        case params.Tuple(items=items):
            for item in items:
                yield from _parts(item)
        case params.Shape(dims=dims):
            yield from (False for _ in dims)
        case params.WithTraits(traits=traits):
            yield from (False for _ in traits.leaves)
        case _:
            yield True


# ---- the function ----


def emit_host(t: Text, program: ops.Program, launches: Launches, lines: Lines | None) -> None:
    """Emits the host function."""
    before = t.lines
    t.start()
    launching = program.host.facts.has(ops.Launch)
    where = ShownHost(program, launches, launching)
    f = FunctionText(t, where, owned=_as_objects(program), lines=lines)
    arguments = [(p, t.known(t.name(p.hint), _argument_type(p.type))) for p in program.host.params]
    f.values.update(arguments)
    sizes = Sizes(f, program, dict(arguments))
    with t.indented():
        sizes.bind()
        for param, argument in arguments:
            if param.type is TFloat32:  # a caller passes any float32
                f.values[param] = f.narrowed(TFloat32, argument)
        start = len(t.lines)
        with t.scope():  # what the body computes is not known to the assertions before it
            f.region(program.host.body)
            _free(f, program, where)
        end = t.lines[start:]
        del t.lines[start:]
        sizes.require()
        t.lines += end
        shown = ", ".join(each for each, _, _ in where.returned)
        kinds = ", ".join(kind for _, kind, _ in where.returned)
        t.line(f"return {shown} : {kinds}" if shown else "return")
    given = [f"{name}: {t.types[name]}{_sign(param.type)}" for param, name in arguments]
    header = ", ".join([*given, *(f"{each}: {t.types[each]}" for each in sizes.more)])
    typed = ", ".join(kind + sign for _, kind, sign in where.returned)
    plain = len(where.returned) == 1 and typed == kinds
    arrow = f" -> {typed}" if plain else f" -> ({typed})" if typed else ""
    inside = without_unused([*t.prologue, *t.lines])
    t.lines = [*before, f"  func.func @{quoted(program.name)}({header}){arrow} {{", *inside, "  }"]


def _sign(type_: Type) -> str:
    """The attribute of an argument or result whose integers have no sign, which MLIR's types do not
    say."""
    dtype = type_.dtype if isinstance(type_, TensorType) else type_
    return f" {{{UNSIGNED}}}" if isinstance(dtype, DType) and dtype.kind == "uint" else ""


def _argument_type(type_: Type) -> str:
    return whole_type(type_, SHOWN) if isinstance(type_, TensorType) else value_type(type_, SHOWN)


def _free(f: FunctionText, program: ops.Program, where: ShownHost) -> None:
    """Frees the function's tensors; if it returns memrefs, MLIR's own passes know which to free."""
    if any(kind.startswith("memref") for _, kind, _ in where.returned):
        return
    for op in program.host.body.ops:
        if isinstance(op, ops.Alloc):
            name = f.values[op.result]
            f.t.line(f"memref.dealloc {name} : {f.t.types[name]}")


@dataclass(slots=True)
class Sizes:
    """The sizes of a function's arguments: the symbols that they are, and what holds for them.

    `more`: the arguments for symbols that no tensor has.
    """

    f: FunctionText
    program: ops.Program
    arguments: Mapping[ops.Value, str]
    more: list[str] = field(default_factory=list)
    _bound: dict[Sym, tuple[str, str]] = field(default_factory=dict)
    _equal: list[tuple[str, Dim, str]] = field(default_factory=list)

    def bind(self) -> None:
        """Gives the function the values of its symbols."""
        t, f = self.f.t, self.f
        for param, argument in self.arguments.items():
            if isinstance(param.type, TensorType):
                self._tensor(param.type, argument, param.hint)
        for symbol, name in self.program.given.items():
            if symbol not in self._bound:
                self._bound[symbol] = self._elsewhere(symbol, name), name
        symbols = {s: t.cast("index_cast", name, "i64") for s, (name, _) in self._bound.items()}
        made = [symbol for symbol in self.program.symbols if symbol in self.program.made]
        f.symbols = outside.Symbols.of(t, symbols, made)

    def _tensor(self, type_: TensorType, argument: str, name: str) -> None:
        t = self.f.t
        kind = t.types[argument]
        for axis, dim in enumerate(type_.shape):
            if not static_size(dim):
                text = f"memref.dim {argument}, {t.index(axis)} : {kind}"
                self._size(text, dim, f"{name}.shape[{axis}]")
        if "strided" in kind and not all(map(static_stride, type_.strides)):
            strides = memory.strides_of(self.f, type_, argument)
            for axis, dim in enumerate(type_.strides):
                if not static_stride(dim):
                    self._number(strides[axis], dim, f"{name}.strides[{axis}]")

    def _size(self, text: str, dim: Dim, name: str) -> None:
        hint = self.program.symbols.get(dim, "") if isinstance(dim, Sym) else ""
        self._number(self.f.t.op(text, "index", hint), dim, name)

    def _number(self, value: str, dim: Dim, name: str) -> None:
        """A size or stride of an argument: it is a symbol, or must equal a known one."""
        if isinstance(dim, Sym) and dim not in self._bound and dim in self.program.given:
            self._bound[dim] = value, name
            folding = self.f.t.folding
            if dim.width == 32 and folding is not None:
                folding.small[value] = 32
        else:
            self._equal.append((value, dim, name))

    def _elsewhere(self, symbol: Sym, name: str) -> str:
        """The value of a symbol that is the value of an argument, or an argument of its own."""
        t = self.f.t
        if isinstance(symbol.key, ValueOf):
            for param, argument in self.arguments.items():
                if param.hint == symbol.key.param and isinstance(param.type, DType):
                    form = "extui" if param.type.kind == "uint" else "extsi"
                    wide = t.cast(form, argument, "i64")
                    return t.cast("index_cast", wide, "index")
        self.more.append(t.known(t.name(name), "index"))
        return self.more[-1]

    def require(self) -> None:
        """Asserts what the signature promises about the sizes."""
        f, t = self.f, self.f.t
        for value, dim, name in self._equal:
            if self._is_known(dim):
                wanted = t.as_index(f.dim(dim))
                self._assert("eq", value, wanted, f"{name} must equal {self._shown(dim)}")
        for relation in self.program.relations:
            if self._is_known(relation.left) and self._is_known(relation.right):
                left, right = (t.as_index(f.dim(d)) for d in (relation.left, relation.right))
                said = f"{relation.left_name} must equal {relation.right_name}"
                self._assert("eq", left, right, said)
        for symbol, (value, name) in self._bound.items():
            if symbol.divisibility > 1:
                rest = t.arith("remui", value, t.index(symbol.divisibility))
                said = f"{name} must be a multiple of {symbol.divisibility}"
                self._assert("eq", rest, t.index(0), said)
            if symbol.min is not None:
                said = f"{name} must be at least {symbol.min}"
                self._assert("sge", value, t.index(symbol.min), said)
            if symbol.max is not None:
                said = f"{name} must be at most {symbol.max}"
                self._assert("sle", value, t.index(symbol.max), said)
            elif t.folding is not None and value in t.folding.small and self._narrow(value):
                self._assert("ule", value, t.index(_MOST), f"{name} must be at most {_MOST}")

    def _narrow(self, value: str) -> bool:
        """Whether the program uses that a size fits into 32 bits."""
        folding = self.f.t.folding
        return bool(self.program.kernels) or folding is None or value in folding.relied

    def _is_known(self, dim: Dim) -> bool:
        return all(symbol in self._bound for symbol in symbols_of(dim))

    def _shown(self, dim: Dim) -> str:
        return format_dim(dim, {s: name for s, (_, name) in self._bound.items()})

    def _assert(self, predicate: str, left: str, right: str, said: str) -> None:
        t = self.f.t
        if left != right:
            holds = t.op(f"arith.cmpi {predicate}, {left}, {right} : {t.types[left]}", "i1", "fits")
            t.line(f"cf.assert {holds}, {escaped(said.encode())}")
