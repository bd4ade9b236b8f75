"""The state of one lowering: the builder, the current frame, and its errors."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from inspect import Signature
from typing import Any, Final, Literal, NoReturn

from ferrule.compiler.artefacts import Fault, Location, Relation, literal
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Target
from ferrule.language.dependencies.mutable import ATOMS, Search
from ferrule.language.dependencies.witness import Witness
from ferrule.language.fastmath import united
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder, OpenRegion
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import Layout
from ferrule.language.lowering.regions import Region
from ferrule.language.source import Source
from ferrule.language.values import Number, Parts, ShownText, TensorView, Undefined
from ferrule.specs import Dim, Int64, Sym, symbols_of
from ferrule.specs.deferred import dataclass

MAX_INLINE_DEPTH = 50
MAX_NOTES = 5
# Each iteration is code of its own: a loop beyond this has meant `range`.
MAX_UNROLL = 10_000
MAX_UNROLLED = 100_000
_LIBRARY: Final = "ferrule.language.faces."
"""The modules with functions that are written in the language itself."""


@dataclass(slots=True)
class Frame:
    """A function that is being interpreted: its names, and its depth in run-time regions.

    `tails` are regions with the rest of the function, after a branch that has returned; `loops` are
    the enclosing run-time loops, for `assumptions`.  `yielded`: the items of a generator so far.
    """

    source: Source
    names: dict[str, Any]
    caller: Frame | None = None
    call_node: ast.AST | None = None
    regions: int = 0
    tails: int = 0
    loops: list[Any] = field(default_factory=list)
    yielded: list[Any] | None = None

    def depth_of_regions(self) -> int:
        """The number of open regions of this function."""
        return self.regions + self.tails

    def depth(self) -> int:
        """The call depth of this frame."""
        return 0 if self.caller is None else 1 + self.caller.depth()


def is_library(source: Source) -> bool:
    """Whether a function is ferrule's own, written in the language itself."""
    return str(source.outer.get("__name__")).startswith(_LIBRARY)


def users(frame: Frame, node: ast.AST) -> tuple[Frame, ast.AST]:
    """The place in the user's code from which a place in a library function of ours was reached."""
    while is_library(frame.source):
        if frame.caller is None or frame.call_node is None:
            break
        node = frame.call_node
        frame = frame.caller
    return frame, node


@dataclass(frozen=True, slots=True)
class Part:
    """How a view was made of a tensor: it begins at the indices `at`, None for a dim that it keeps,
    and has the `layout`.

    `arrange` makes its layout of that of the tensor, also of one with other strides; None if that
    is not known.  `keeps_shape`: the view begins elsewhere, but has the shape of the tensor.
    `has_no_others`: it has no elements but those of the tensor.
    """

    of: TensorView
    layout: Layout
    arrange: Callable[[Layout], Layout] | None = None
    at: tuple[Number | int | None, ...] = ()
    keeps_shape: bool = False
    has_no_others: bool = False


@dataclass(slots=True)
class ProgramState:
    """The state shared by the functions of one program: target, symbols, kernels by key and
    `changes`, relations of sizes.

    `fast_math`: the fast-math flags of all its functions; `fmad`: whether a product and a sum are
    one operation, where a function does not say; `promotes_as_cute`: whether arithmetic is CuTe
    DSL's; `sizes`: then the symbols that are sizes of tensors.
    `unlaunched`: for each kernel call without a launch so far, the error for it.  `unrolled`: the
    number of iterations of compile-time loops.  `writes`: the number of events so far that may have
    changed tensors: writes, launches and beginnings of loops.  `roots`: for a view that begins
    where another tensor does, that tensor; `bases`: for a view that begins anywhere in it; `parts`:
    how views of the host function were made.
    `returns`: the annotated result of the host function; `returned`: the classes of its actual
    results, by their words; `arrays`: the possible origins of Arrays that it returns in values of
    any kind, "tuple" for a tuple in the source, "container" for all others.  `made`: the symbols of
    numbers that are sizes of new tensors; `allocated` are those tensors; `shrunk`: for the first
    rows of a tensor, that tensor and their number.  `lent`: for a tensor that
    is a parameter, or may be one where it is none of these, the parameters; `held` are those whose
    objects are asked for.  `externs` are the
    functions of other objects that are called, by name; `name` is that of the function itself.
    `places`: the frame and node of each op, if requested.  `witness`: the outer values that were
    read.  `region` is the innermost enclosing code under a run-time condition.  `outside`: objects
    from outside of the program's functions.  `tables`: the contents of constant tables, with their
    sizes.  `changes`: the number of events so far that may have changed compile-time objects.
    `masks`: the bits that coordinates of swizzled tensors may have set.  `changing`: the attributes
    of classes of objects of values that loops were seen to change; `has_objects`: whether the
    program has made such an object.
    """

    symbols: dict[Sym, str]
    target: Target = "cpu"
    fast_math: tuple[str, ...] = ()
    fmad: bool | None = None
    promotes_as_cute: bool = False
    sizes: frozenset[Sym] = frozenset()
    kernels: dict[tuple[object, int], ops.Function] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    sources: dict[object, Source] = field(default_factory=dict)
    unlaunched: dict[object, CompileError] = field(default_factory=dict)
    unrolled: int = 0
    writes: int = 0
    roots: dict[ops.Value, ops.Value] = field(default_factory=dict)
    bases: dict[ops.Value, ops.Value] = field(default_factory=dict)
    parts: dict[ops.Value, Part] = field(default_factory=dict)
    returns: Any = Signature.empty
    returned: dict[str, type[Parts]] = field(default_factory=dict)
    arrays: set[Literal["tuple", "container"]] = field(default_factory=set)
    made: dict[ops.Value, Sym] = field(default_factory=dict)
    allocated: set[ops.Value] = field(default_factory=set)
    shrunk: dict[ops.Value, tuple[TensorView, ops.Value]] = field(default_factory=dict)
    lent: dict[ops.Value, frozenset[ops.Value]] = field(default_factory=dict)
    held: set[ops.Value] = field(default_factory=set)
    externs: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    places: dict[ops.Op, object] | None = None
    witness: Witness = field(default_factory=Witness)
    region: Region | None = None
    outside: Search = field(default_factory=Search)
    tables: dict[bytes, int] = field(default_factory=dict)
    changes: int = 0
    masks: dict[ops.Value, int] = field(default_factory=dict)
    changing: dict[type, set[str]] = field(default_factory=dict)
    has_objects: bool = False

    @contextmanager
    def undone_by(self, error: type[Exception]) -> Iterator[None]:
        """Drops the kernels that are added inside if it ends with this error."""
        kernels, unlaunched = dict(self.kernels), dict(self.unlaunched)
        try:
            yield
        except error:
            self.kernels, self.unlaunched = kernels, unlaunched
            raise

    def with_beginning(self, view: ops.Value, other: ops.Value) -> ops.Value:
        """The view, which is known from now on to begin where another tensor or pointer does."""
        for known in (self.roots, self.bases):
            known[view] = known.get(other, other)
        return view

    def kernel_name(self, wanted: str) -> str:
        """A name that is not used by a kernel."""
        taken = {kernel.name for kernel in self.kernels.values()}
        name, count = wanted, 0
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"
        return name


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Python's semantics, for the folders that must not import `python`; `Lowering` documents each
    function."""

    evaluate: Callable[[Lowering, ast.expr], Any]
    decide: Callable[[Lowering, ast.expr], Any]
    execute: Callable[[Lowering, list[ast.stmt]], Any]
    truth: Callable[[Lowering, Any, ast.AST], Any]
    unary: Callable[[Lowering, ast.unaryop, Any, ast.AST], Any]
    binary: Callable[[Lowering, ast.operator, Any, Any, ast.AST], Any]
    compare: Callable[[Lowering, ast.cmpop, Any, Any, ast.AST], Any]
    call: Callable[[Lowering, Any, list[Any], dict[str, Any], ast.Call], Any]
    choose: Callable[..., Any]
    require_inside: Callable[[Lowering, Any, ast.AST], None]


class Lowering:
    """Lowers one function of a program: the host function or a kernel.

    `interpreter` has Python's semantics: other folders must not import `python` and use it only
    through this object.  `elementwise`: whether the code runs for each element of whole tensors.
    `here`: the node whose attribute is read.  `own_bytes`: the bytes of the fragments so far.
    `shared`: the static shared memory so far, with the lines that request it.  `dynamic`: the bytes
    so far of dynamic shared memory whose size the launch need not say; `has_all_dynamic`: the
    kernel has asked for all of it.  `settings`: what tiled multiplications are set to, by the
    id of the object and the field, with the object; `cells`: the memory of those that the run
    decides.
    """

    def __init__(
        self,
        kind: Literal["host", "kernel"],
        state: ProgramState,
        frame: Frame,
        interpreter: Interpreter,
    ) -> None:
        self.kind = kind
        self.state = state
        self.frame = self.root = frame
        self.builder = Builder()
        self.builder.places = state.places
        self.elementwise = False
        self.own_bytes = 0
        self.shared: list[tuple[TensorType, int]] = []
        self.settings: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.cells: dict[tuple[int, Any], ops.Value] = {}
        self.dynamic = 0
        self.has_all_dynamic = False
        self.interpreter = interpreter
        self.here: ast.AST = frame.source.node

    def begin(self) -> None:
        """Takes what the compilation and the function say of the arithmetic on floats."""
        said, state = self.frame.source, self.state
        self.builder.flags = united(state.fast_math, said.fast_math)
        self.builder.fmad = state.fmad if said.fmad is None else said.fmad

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression: a compile-time object, or a run-time one of `values`."""
        outer, self.builder.at = self.builder.at, (self.frame, node)
        try:
            return self.interpreter.evaluate(self, node)
        finally:
            self.builder.at = outer

    def decide(self, node: ast.expr) -> Any:
        """The truth of a condition: a bool, or a run-time Boolean."""
        return self.interpreter.decide(self, node)

    def execute(self, body: list[ast.stmt]) -> Any:
        """Runs statements; returns a `Returned` if one of them returned, else None."""
        return self.interpreter.execute(self, body)

    def truth(self, value: Any, node: ast.AST) -> Any:
        """The truth of a value: a bool known at compile time, or a run-time Boolean."""
        return self.interpreter.truth(self, value, node)

    def unary(self, op: ast.unaryop, value: Any, node: ast.AST) -> Any:
        """`op value`, of values of any kind."""
        return self.interpreter.unary(self, op, value, node)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        """`left op right`, of values of any kind."""
        return self.interpreter.binary(self, op, left, right, node)

    def compare(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        """`left op right`, of values of any kind: a bool, or a run-time Boolean."""
        return self.interpreter.compare(self, op, left, right, node)

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        """`callee(*args, **kwargs)`, of anything that a program can call."""
        return self.interpreter.call(self, callee, args, kwargs, node)

    def choose(
        self,
        condition: Number,
        regions: tuple[OpenRegion, OpenRegion],
        values: tuple[Any, Any],
        name: str,
        node: ast.AST,
    ) -> Any:
        """The first value if the condition holds, else the second; each is computed in its
        region."""
        return self.interpreter.choose(self, condition, regions, values, name, node)

    def fork(self, kind: Literal["host", "kernel"], frame: Frame) -> Lowering:
        """A lowering of another function of the same program."""
        return Lowering(kind, self.state, frame, self.interpreter)

    @property
    def is_as_cute(self) -> bool:
        """Whether this is code of a program that follows CuTe DSL, not of ferrule's library."""
        return self.state.promotes_as_cute and not is_library(self.frame.source)

    @property
    def names(self) -> dict[str, Any]:
        """The local names of the current frame."""
        return self.frame.names

    def location(self, node: ast.AST) -> Location:
        """The place of a node in the current function; in a library function of ours, of its
        call."""
        frame, node = users(self.frame, node)
        return frame.source.location(node)

    @contextmanager
    def entered(self, frame: Frame) -> Iterator[None]:
        """Interprets another frame, for an inlined call."""
        outer, self.frame = self.frame, frame
        if self.state.region is not None:
            self.state.region.fresh[id(frame.names)] = frame.names
        try:
            yield
        finally:
            self.frame = outer

    @contextmanager
    def in_region(self) -> Iterator[None]:
        """Marks that the statements inside run under a run-time condition."""
        frame = self.frame
        frame.regions += 1
        try:
            yield
        finally:
            frame.regions -= 1

    @contextmanager
    def in_tail(self) -> Iterator[None]:
        """Marks that the statements inside are the rest of the function."""
        frame = self.frame
        frame.tails += 1
        try:
            yield
        finally:
            frame.tails -= 1

    @contextmanager
    def in_elements(self) -> Iterator[None]:
        """Marks code for each element of whole tensors: it is kernel code, also in a host
        function."""
        outer, self.elementwise = self.elementwise, True
        try:
            yield
        finally:
            self.elementwise = outer

    def is_conditional(self) -> bool:
        """Whether this place is under a run-time condition."""
        frame: Frame | None = self.frame
        while frame is not None:
            if frame.depth_of_regions():
                return True
            frame = None if frame is self.root else frame.caller
        return False

    def peek(self, name: str) -> Any:
        """The value of a name of a function; None for an unknown one."""
        names = self.frame.names
        return names[name] if name in names else self.frame.source.outer.get(name)

    def lookup(self, name: str, node: ast.AST) -> Any:
        """The value of a name.  A CompileError for an unknown or an undefined one."""
        for names in (self.frame.names, self.frame.source.outer):
            if name in names:
                value = names[name]
                if isinstance(value, Undefined):
                    raise self.undefined(value, name, node)
                if self.state.region is not None and type(value) not in ATOMS:
                    self.state.region.read(names, name, value)
                return value
        if hasattr(builtins, name):
            self.state.witness.add_dict_item(vars(builtins), name)
            return getattr(builtins, name)
        known = [*filter(str.isidentifier, self.frame.names), *self.frame.source.outer]
        near = difflib.get_close_matches(name, {*known} - {self.frame.source.name}, n=1)
        self.fail(
            node,
            f"the name {name!r} is not defined",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )

    def undefined(self, value: Undefined, name: str, node: ast.AST) -> CompileError:
        """The error of reading a name that is not defined on all paths, or with different kinds."""
        if value.error is None:
            return self.error(
                node,
                f"the name {name!r} may be undefined here",
                hint=f"give {name} a value before, so that it has one on every way",
                note=value.reason,
            )
        found = value.error.diagnostic
        note = f"{name!r} is read in line {self.location(node).line}"
        return CompileError(replace(found, notes=(note, *found.notes)))

    def known_text(self, text: Any) -> Any:
        """A text that the compiled function uses; a CompileError for one that only shows values of
        the call."""
        if isinstance(text, ShownText):
            place: Any = self.builder.at
            self.fail(
                place[1],
                f"the text {str.__str__(text)!r} was made while compiling, when the values in it "
                "were not known",
                expected="the f-string itself, in fe.printf, raise or assert",
                hint="the text is for print(), which shows types while compiling",
            )
        return text

    def relate(self, left: Dim, right: Dim, names: tuple[str, str], node: ast.AST) -> None:
        """Requires two sizes to be equal: known from their specs, checked by the wrapper, or a
        CompileError."""
        if left == right:
            return
        if isinstance(left, int) and isinstance(right, int):
            self.fail(
                node,
                f"the shapes of a whole-tensor expression differ: {names[0]} is {left}, "
                f"but {names[1]} is {right}",
                expected="equal sizes, or a size of 1 that is known at compile time",
            )
        if self._made_in(left) or self._made_in(right):
            self._compare(left, right, names, node)
            return
        relation = Relation(left, right, *names, self.location(node))
        key = (left, right, names)
        if all((r.left, r.right, (r.left_name, r.right_name)) != key for r in self.state.relations):
            self.state.relations.append(relation)

    def require_inside(self, value: Any, node: ast.AST) -> None:
        """Requires that a tensor that is used as a whole, or each in a tuple or record, has no
        elements but those of the tensor that it is a part of."""
        self.interpreter.require_inside(self, value, node)

    def _made_in(self, dim: Dim) -> bool:
        """Whether a size is computed in the body."""
        return not set(self.state.made.values()).isdisjoint(symbols_of(dim))

    def _compare(self, left: Dim, right: Dim, names: tuple[str, str], node: ast.AST) -> None:
        """Requires two sizes to be equal by a check in the body."""
        sizes = [self.builder.size(Int64, dim) for dim in (left, right)]
        first, second = map(literal, names)
        message = f"Mismatched {first}, expected to match {second} = {{}}, but got {{}}"
        same = self.builder.compare("eq", *sizes)
        fault = Fault("ValueError", message, self.location(node))
        self.builder.check(same, fault, sizes[1], sizes[0])

    def fail(
        self,
        node: ast.AST,
        message: str,
        *,
        expected: str | None = None,
        hint: str | None = None,
        note: str | None = None,
    ) -> NoReturn:
        """Raises a CompileError at this node; its notes list the calls of the function."""
        raise self.error(node, message, expected=expected, hint=hint, note=note)

    def error(
        self,
        node: ast.AST,
        message: str,
        *,
        expected: str | None = None,
        hint: str | None = None,
        note: str | None = None,
    ) -> CompileError:
        """The error that `fail` raises."""
        notes = [] if note is None else [note]
        first, node = frame, _ = users(self.frame, node)
        while frame.caller is not None and frame.call_node is not None:
            frame, call = users(frame.caller, frame.call_node)
            place = frame.source.location(call)
            notes.append(f'called from "{place.file}", line {place.line}, in {place.function}')
        if len(notes) > MAX_NOTES:
            left_out = f"... {len(notes) - MAX_NOTES} more calls ..."
            notes[MAX_NOTES - 1 : -1] = [left_out]
        span = first.source.span(node)
        return CompileError(Diagnostic(message, span, expected, hint, tuple(notes)))
