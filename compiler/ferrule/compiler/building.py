"""`build`: makes a function from a signature and a calling convention.

    n = specs.sym_int()
    sig = specs.Signature("add", [specs.Tensor("x", (n,), "float32"), …])
    fn = compiler.build(sig, conventions.CudaLaunch(code, "add_kernel", [sig["x"].data, n], …))

The wrapper checks the arguments of the signature; the convention generates the call in the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from llvmlite import ir

from ferrule.compiler.artefacts import Body, Location
from ferrule.compiler.assumptions import Assumption, assumed, documented, noted, warn
from ferrule.compiler.build_checks import check_options, check_request, checked_zero
from ferrule.compiler.cache.encoding import Encoder
from ferrule.compiler.cache.keys import Key, Uncacheable, key_of
from ferrule.compiler.cache.through import Wanted, through
from ferrule.compiler.cache.toolchain import of_images, parts_of
from ferrule.compiler.conventions.arguments import TYPES
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.give import Given
from ferrule.compiler.conventions.objects import held, place_of
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.conventions.requirements import with_requirements
from ferrule.compiler.conventions.steps import (
    allocates,
    frames_of,
    gives_tensors,
    has_endings,
    objects_of,
    places_of,
    streams_of,
    undefined,
    without_context,
)
from ferrule.compiler.conventions.zero import fill
from ferrule.compiler.cuda.code import joined_code
from ferrule.compiler.cuda.dumps import keep
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.exports import export_target
from ferrule.compiler.host.owned import SYMBOL, Frame, declare_inner
from ferrule.compiler.options import Options, parse_options
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.compiler.wrapper.results import result_leaves, result_parts
from ferrule.runtime.binaries.metadata import checked_notes
from ferrule.runtime.entry.key import CallTraits
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR
from ferrule.specs import (
    AnyValue,
    Device,
    EnvStream,
    NoneValue,
    Param,
    Signature,
    String,
    Tensor,
    Tuple,
)
from ferrule.specs import params as kinds
from ferrule.specs.copies import changed, placed
from ferrule.specs.deferred import dataclass
from ferrule.specs.strides import exactly

if TYPE_CHECKING:
    from ferrule.runtime import Function

_TABLE: Final = "handles"
_STRAIGHT: Final = ("noinline", "optnone")
"""Attributes of straight-line code, which optimising instruction selection does not improve."""
_NO_NOTES: Final[Mapping[str, Any]] = MappingProxyType({})
_NO_FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType({})


def build(
    signature: Signature,
    convention: CallingConvention,
    *,
    results: Sequence[Tensor | NoneValue | Given] = (),
    options: str | Options | None = None,
    doc: str | None = None,
    location: Location | None = None,
    sources: Mapping[str, Function] = _NO_FUNCTIONS,
    notes: Mapping[str, Any] = _NO_NOTES,
    assumes: Sequence[Assumption] = (),
    zero: bool | str | Sequence[str] = (),
) -> Function:
    """A function with this signature, which makes the call that the convention describes.

    `results` are tensors that the function allocates with the caller's allocator and returns: one
    tensor, or a tuple of several, in which a `NoneValue` is None.  A convention refers to their
    address as `.data`, like the address of a parameter.  Results that the convention gives come
    behind them, or at the places of `conventions.GIVEN` among them.  Their sizes are expressions
    over the signature's symbols.  Their memory is uninitialised; `zero` names the results to fill
    with zeros before the call, True means all.
    `options` as for `compile`; an option for the compilation of kernels is a CompileError here.
    Tensors of the signature without a device are on the GPU if the convention launches GPU kernels,
    otherwise on the CPU.  `location` is shown in tracebacks of errors.  `sources` are compiled
    functions that the code calls, by symbol.  `notes`, JSON values, stay with the function as
    `fn.notes`, also in files.  `assumes`, texts and conditions, tells callers which further
    properties of the arguments the compiled code relies on or checks.  It is in the function's
    documentation and in `notes["assumes"]`, together with the alignments and divisors of the specs.
    If a function is probably not as intended, `build` gives a `BuildWarning`; `notes["remarks"]`
    has these warnings, and remarks that may be intended.

    Raises TypeError, ValueError or CompileError if the arguments do not fit together.
    """
    chosen = parse_options(options)
    given = [signature, convention, results, doc, location, notes, assumes, zero]

    def make() -> CompiledOrigin:
        origin = compiled(
            signature,
            convention,
            results=results,
            options=chosen,
            doc=doc,
            location=location,
            sources=sources,
            notes=notes,
            assumes=assumes,
            zero=zero,
        )
        _check_defined(signature, convention)
        return origin

    name = getattr(signature, "name", "build")
    return through(
        Wanted(name, lambda: _key(name, convention, given, sources, chosen), make, chosen.cache)
    )


def build_later(
    name: str,
    told: Callable[[], Iterable[object]],
    make: Callable[[], Mapping[str, Any]],
    options: str | Options | None = None,
) -> Function:
    """A function that is built only if it is not in the cache; then `make` returns the arguments of
    `build`, without the options.

    `told` gives all that decides these arguments, as values that a key can hold; it raises
    Uncacheable if something else decides them, too.
    """
    chosen = parse_options(options)

    def key() -> Key:
        parts = {"what decides it": Encoder().items("", told())}
        # Whether there are kernels is known only when it is made: mostly there are.
        return key_of(f"build of {name}", {**parts, **of_images(), **parts_of(chosen)})

    def made() -> CompiledOrigin:
        return compiled(options=chosen, **make())

    return through(Wanted(name, key, made, chosen.cache))


def _key(
    name: str,
    convention: CallingConvention,
    given: Sequence[object],
    sources: Mapping[str, Function],
    options: Options,
) -> Key:
    """The key of a function that is built of these arguments.  Raises Uncacheable."""
    if sources:
        raise Uncacheable("its code calls functions of this process")
    parts = {"the arguments of build": Encoder().items("", given)}
    # What is no convention is refused later.
    if hasattr(convention, "codes") and convention.codes():
        parts |= of_images()
    return key_of(f"build of {name}", {**parts, **parts_of(options)})


def _check_defined(signature: Signature, convention: CallingConvention) -> None:
    missing = next(undefined(convention), None)
    if missing is not None:
        raise CompileError(
            Diagnostic(
                f"{signature.name}: {missing} is HostCode.undefined(), which nobody has yet",
                hint="compiler.emit_wrapper gives the wrapper as text, for the module that has it",
            )
        )


def _check_contexts(signature: Signature, convention: CallingConvention) -> None:
    lonely = without_context(convention)
    if lonely is not None:
        raise CompileError(
            Diagnostic(
                f"{signature.name}: {lonely.name} has context={lonely.context}, but no C function "
                f"gets its user_data, so C has nothing to hand through",
                hint="give callback.user_data where the C function takes the void* of its callback",
            )
        )


def compiled(
    signature: Signature,
    convention: CallingConvention,
    *,
    results: Sequence[Tensor | NoneValue | Given] = (),
    options: str | Options | None = None,
    doc: str | None = None,
    location: Location | None = None,
    sources: Mapping[str, Function] = _NO_FUNCTIONS,
    notes: Mapping[str, Any] = _NO_NOTES,
    assumes: Sequence[Assumption] = (),
    zero: bool | str | Sequence[str] = (),
) -> CompiledOrigin:
    """The origin of a function that `build` loads: the modules for its objects and files."""
    chosen = parse_options(options)
    check_request(signature, convention, results)
    allocated = tuple(each for each in results if isinstance(each, Tensor))
    if len(results) == 1 and not allocated:  # None alone is what a function without results returns
        results = ()
    zeroed = checked_zero(signature.name, allocated, zero)
    for what, value, kind in (("doc", doc, str), ("location", location, Location)):
        if not isinstance(value, (kind, type(None))):
            raise TypeError(f"build: {what} must be a {kind.__name__}, but got {value!r}")
    target = "cuda" if convention.codes() else "cpu"
    check_options(signature.name, chosen, target)
    signature = with_requirements(signature, convention)
    _check_contexts(signature, convention)
    building = _Building(signature, convention, allocated, target, zeroed, tuple(results))
    body, call = building.body()
    said, remarks = assumed(signature, assumes, call.assumed), tuple(call.remarks)
    loud = [text for text, is_loud in call.remarks.items() if is_loud]
    warn(signature.name, loud)
    if body.device_code is not None:
        keep(signature.name, body.device_code, chosen)
    params = held(signature, objects_of(convention)).params
    own = (_given(each, target) if isinstance(each, Tensor) else each for each in results)
    returned = _in_order([*own], convention.results())
    here = tuple(placed(param, target) for param in params)
    wrapped = signature.altered(
        params=exactly(here, signature, call.numbers, call.described, call.exact),
        result=_result([placed(each, target) for each in returned]),
    )
    place = None if chosen.strip_paths else location
    module = host_module(wrapped, body.placed(place), opt_level=chosen.opt_level)
    origin = CompiledOrigin(
        module,
        partial(call.steps.text, f"body of {signature}"),
        doc=documented(doc, said),
        target=export_target(chosen.host_target, chosen.host_cpu),
        traits=_traits(signature, convention, allocated, chosen),
        sources=sources,
        notes=noted(signature.name, checked_notes(notes), said, remarks),
    )
    origin.warned = bool(loud)
    return origin


def _given(result: Tensor, target: str) -> Param:
    """A result as callers get it: how much was allocated is not theirs."""
    return placed(changed(result, capacity=None), target)


def _in_order(results: Sequence[Param | Given], given: Sequence[Param]) -> list[Param]:
    """The results in their order: a `GIVEN` is replaced by the next result of the convention; the
    results of the convention that are left come last."""
    left = list(given)
    found: list[Param] = [left.pop(0) if isinstance(each, Given) else each for each in results]
    return [*found, *left]


def _result(parts: Sequence[Param]) -> Param | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return Tuple("result", tuple(parts))


def _traits(
    signature: Signature,
    convention: CallingConvention,
    results: Sequence[Tensor],
    options: Options,
) -> CallTraits:
    """The safe traits for foreign code: it may take long, ask for the stream, and allocate."""
    launches = bool(convention.codes())
    streams = any(isinstance(param, EnvStream) for param in signature.params)
    return CallTraits(
        releases_gil=True if options.release_gil == "auto" else options.release_gil,
        uses_stream=launches or streams,
        allocates=bool(results) or gives_tensors(convention) or allocates(convention),
    )


def _tells_device(param: Param) -> bool:
    """Whether an argument of this kind determines the GPU of a call."""
    return isinstance(param, (Tensor, Device, EnvStream))


@dataclass(frozen=True, slots=True)
class _Building:
    """Makes the body of one function: `ferrule_body` owns the objects that `inner` makes."""

    signature: Signature
    convention: CallingConvention
    results: tuple[Tensor, ...]
    target: str
    zero: tuple[Tensor, ...] = ()
    order: tuple[Tensor | NoneValue | Given, ...] = ()
    """What it returns of itself, and the places of what the convention gives."""

    @property
    def returns(self) -> bool:
        """Whether it returns anything of itself."""
        return bool(self.order)

    def body(self) -> tuple[Body, Call]:
        """The body, and the `Call` through which the convention generated its code."""
        emitter = Emitter(self.signature.name)
        types, names = self._types()
        straight = _STRAIGHT if self.target == "cuda" else ()
        outer = emitter.declare(SYMBOL, I32, types, names=names, attributes=("nounwind", *straight))
        inner = declare_inner(emitter, types, names, table=_TABLE, attributes=("alwaysinline",))
        with emitter.body(inner):
            call = self._inner(emitter, inner)
        with emitter.body(outer):
            self._frame(call, outer.args).emit(emitter, inner, outer.args, _TABLE)
        codes = self.convention.codes()
        given = objects_of(self.convention)
        body = Body(
            emitter.text(),
            SYMBOL,
            tuple(self.signature.symbols),
            tuple(call.faults),
            device_code=joined_code(codes),
            takes_device=True,
            parts=tuple(call.parts),
            links=tuple(call.links),
            keeps=self._keeps(),
            objects=tuple(place_of(self.signature, each) for each in given),
        )
        return body, call

    def _keeps(self) -> int:
        """The number of strings and values of any kind that the body keeps for the wrapper."""
        inner = (each for result in self.convention.results() for each in result_parts(result))
        return sum(isinstance(each, String | AnyValue) for each in inner)

    def _types(self) -> tuple[list[ir.Type], list[str]]:
        """Types and names of the body's parameters, see `Body`."""
        types, names = [PTR], ["values"]
        if self.returns or self.convention.results():
            types, names = [PTR, PTR], ["values", "results"]
        if self._keeps():
            types, names = [*types, PTR], [*names, "kept"]
        for param in self.signature.params:
            leaves = leaves_of(param)
            types += [TYPES[leaf] for leaf in leaves]
            names += [param.name] * len(leaves)
        for symbol, name in self.signature.symbols.items():
            types.append(I32 if symbol.width == 32 else I64)
            names.append(name)
        objects = objects_of(self.convention)
        types += [*([PTR] * len(objects)), I32]
        return types, [*names, *(f"{each.name}.object" for each in objects), "device"]

    def _inner(self, emitter: Emitter, inner: ir.Function) -> Call:
        handles, values, *rest = inner.args
        results = rest.pop(0) if self.returns or self.convention.results() else None
        keeps = rest.pop(0) if self._keeps() else None
        count = sum(len(leaves_of(param)) for param in self.signature.params)
        objects = objects_of(self.convention)
        behind, device = len(rest) - len(objects) - 1, rest[-1]
        given, numbers = rest[:count], rest[count:behind]
        wide = (n if n.type == I64 else emitter.builder.sext(n, I64) for n in numbers)
        symbols = dict(zip(self.signature.symbols, wide, strict=True))
        leaves = dict(enumerate(given))
        call = Call(emitter, values, self.signature, self.target, handles, device, leaves, symbols)
        call.keeps, call.frames = keeps, frames_of(self.convention)
        call.objects = dict(zip(map(id, objects), rest[behind:-1], strict=True))
        with self._on_device(call), call.ended(has_endings(self.convention)):
            for out in places_of(self.convention):
                out.open(call)
            for tensor in self.results:
                call.allocate(tensor)
            if self.zero:
                self._clear(call)
            with call.where(self.convention.when):
                call.make(self.convention)
            call.shrink()
            if results is not None:
                self._give(call, results)
        if call.owned:
            call.steps.add("release what the call owns, also after an error")
        emitter.ret(ir.Constant(I32, 0))
        return call

    @contextmanager
    def _on_device(self, call: Call) -> Iterator[None]:
        """Emit code for which the call's device is known.  If no argument determines it, it is the
        current device, and tensors are also allocated there."""
        codes = self.convention.codes()
        makes = self.results or allocates(self.convention)
        known = not makes or any(map(_tells_device, self.signature.params))
        if not codes or (known and not self._fills_there(call)):
            yield
            return
        with call.entered(codes[0]):
            yield

    def _stream(self, call: Call) -> ir.Value | None:
        """The stream of the first launch that names one."""
        stream = next(streams_of(self.convention), None)
        return None if stream is None else call.leaves(stream)[0]

    def _fills_there(self, call: Call) -> bool:
        """Whether GPU memory must be filled with zeros before the first launch."""
        return not all(map(call.on_host, self.zero))

    def _clear(self, call: Call) -> None:
        stream = self._stream(call)
        for tensor in self.zero:
            fill(call, tensor, stream)

    def _give(self, call: Call, results: ir.Value) -> None:
        """Store the results for the wrapper: the tensors of `results`, then the convention's."""
        names = [each.name for each in (*self.results, *self.convention.results())]
        call.steps.add(f"return {', '.join(names)}")
        e = call.emitter
        wanted = [len(result_leaves(each)) for each in self.convention.results()]
        given = [leaves() for leaves in call.given_back]
        if wanted != list(map(len, given)):
            raise ValueError(
                f"{self.signature.name}: a convention gives back what its `results` say, with as "
                f"many leaves ({wanted}), but its `emit` did {list(map(len, given))}"
            )
        made = [e.load(e.index(call.handles, PTR, at), PTR) for at in range(len(self.results))]
        leaves: list[ir.Value] = []
        for each in self.order:
            if isinstance(each, Given):
                leaves += given.pop(0)
            elif isinstance(each, Tensor):
                leaves.append(made.pop(0))
        for slot, leaf in enumerate((*leaves, *(leaf for several in given for leaf in several))):
            e.store(leaf, e.index(results, I64, slot))

    def _made(self) -> list[int]:
        """The slots of the results that are objects, tensors and handles too, which the caller
        shares with this body or with who gave them."""
        slots, position = [], 0
        for result in _in_order(self.order, self.convention.results()):
            for part in result_parts(result):
                if isinstance(part, Tensor) or kinds.payload_of(part) is kinds.Payload.OBJECT:
                    slots.append(position)
                position += len(result_leaves(part))
        return slots

    def _frame(self, call: Call, arguments: Sequence[ir.Value]) -> Frame:
        """The frame around the code that a `Call` has emitted."""
        keeps = self._keeps()
        return Frame(
            call.owned,
            keeps,
            kept=arguments[2] if keeps else None,
            results=arguments[1] if len(arguments) > 1 else None,
            returned=self._made(),
        )
