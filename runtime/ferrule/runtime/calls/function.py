"""`Function`: a compiled kernel in Python, a subclass of `tvm_ffi.Function` with fast calls.

Each API that takes a TVM-FFI function takes a `Function`. Through C, all its parameters are
positional. In Python it accepts keywords and defaults, describes its parameters, and can be
exported.

The first calls of a function are made by Python (`_FirstCalls`): the machine code for calls, the
gate and the direct entry, takes longer to make than all calls of many programs. The call of number
`CALLS_BEFORE_PREPARED` makes it, or `prepare`. What a call does and raises is the same.

Ownership: the TVM-FFI function object holds the engine and the call plan (`_Lifeline`). Each
reference to the function object, also one in a C++ host, keeps the code alive. The Python object
holds the function object. Nothing else keeps code alive: no list, and no attribute of the instance.
The gate lives as long as the process.

The type is the heap type of `heaptype` if the interpreter supports it, otherwise an ordinary
subclass. Both have the members of `_Members`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import tvm_ffi

from ferrule import specs
from ferrule.runtime.artefacts import (
    KernelInfo,
    ObjectCode,
    Origin,
    Page,
    RemarkedOrigin,
    Remarks,
    kernel_info_of,
    ptx_of,
)
from ferrule.runtime.calls.callpath import name_hidden, ordered, prepare_call, ways_of
from ferrule.runtime.calls.dynamo import keep_out
from ferrule.runtime.calls.heaptype import HeapType, make_heap_type
from ferrule.runtime.calls.interpreter import Unfit
from ferrule.runtime.calls.plan import (
    FUNCTIONS,
    STATE,
    CallPlan,
    Count,
    State,
    described,
    make_plan,
    state_of,
)
from ferrule.runtime.calls.results import unpack
from ferrule.runtime.entry.key import ANY_FUNCTION, CallTraits, entry_key
from ferrule.runtime.errors import StageError
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.values.storages import alias, storages_of
from ferrule.runtime.values.versions import version_words, written_tensors
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from typing_extensions import Self

    from ferrule.runtime.calls.gate import Gate
    from ferrule.runtime.calls.variants import Explanation
    from ferrule.runtime.exporting.export import StrPath

_DOC = "A compiled function: a `tvm_ffi.Function` with names, defaults, checks and exports."

_OF_CLASS_STATEMENT = frozenset(
    {"__slots__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__"}
)


_NO_NOTES: Final[Mapping[str, Any]] = MappingProxyType({})

CALLS_BEFORE_PREPARED: Final = 16
"""The call of a function that makes the machine code for its calls: by then a program has spent a
thousandth of what that takes on calls by Python."""


@dataclass(frozen=True, slots=True)
class _Lifeline:
    """The objects that must live as long as the function object."""

    engine: object
    plan: CallPlan


class _Annotation(str):
    """An annotation that `inspect.Signature` shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _SignatureOfInstance:
    """`__signature__` of instances; the class has none of its own."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: type[Any]) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return python_signature(instance.signature)


class _Members:
    """The members that `Function` adds to `tvm_ffi.Function`."""

    __slots__ = ()

    __signature__ = _SignatureOfInstance()

    @property
    def signature(self) -> specs.Signature:
        """Name, parameters and result, as messages show them."""
        return state_of(self).signature

    @property
    def name(self) -> str:
        """The function's name."""
        return state_of(self).signature.name

    @property
    def notes(self) -> dict[str, Any]:
        """A copy of the notes that were given to `build`; exported files contain the notes too."""
        return copy.deepcopy(dict(state_of(self).notes))

    @property
    def call_plan(self) -> CallPlan:
        """The call plan: among others, the Python types that each parameter takes unconverted."""
        return state_of(self).plan

    @property
    def origin(self) -> str:
        """Where the code is from: "compiled" by this call of the compiler, "from the cache", or
        "loaded" from a file or a pickle."""
        return getattr(state_of(self).origin, "where", "compiled")

    def prepare(self) -> Self:
        """Make the machine code that calls from Python go through, and return the function.

        Otherwise the sixteenth call makes it, which takes some milliseconds, and some tens of
        milliseconds in a process that has none yet; the calls before take microseconds instead of
        a fraction of one. A program that measures calls prepares the function first.
        """
        _prepare(self)
        return self

    def bind(self, /, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """A callable without parameters that calls this function with these arguments each time.

        `bind` binds, converts and packs the arguments once, and keeps them alive. Each call of the
        result runs the checks and the function. It uses the memory and shape that a tensor has at
        `bind`, and the `release_gil` of that time; it reads the elements that the tensor has at the
        call. `bind` raises the errors for arguments of a wrong form. Each call raises the errors of
        the wrapper, and RuntimeError if the storage of a torch tensor was resized or moved after
        `bind`.
        """
        state, gate = state_of(self), _shared_gate()
        given, names = alias((*args, *kwargs.values())), tuple(kwargs)
        # A plain tuple: an `OnStream` would keep the stream that is current now, which is wrong for
        # later calls. `alias` runs again because conversion made containers that it can walk.
        values = alias(tuple(prepare_call(self, given, names)))
        signature, arguments = ordered(self, given, names)
        written = list(written_tensors(signature.arguments, arguments))
        if gate is None or (written and version_words() is None):
            return lambda: self(*values)  # type: ignore[operator]
        storages = [storages_of(argument) for argument in arguments]
        try:
            bound: Callable[[], Any] = gate.bind(
                self, state.plan, values, signature, storages, written
            )
        except Exception:
            name_hidden(self, values)
            raise
        return bound

    def explain(self, /, *args: Any, **kwargs: Any) -> Explanation:
        """The variant of the code that a call with these arguments takes, and what it lacks for
        each better one; nothing is called.

            print(rms_norm.explain(x, w))
            # rms_norm takes all but x
            #   not all: x is 16-byte aligned, but its address is 2 bytes past a multiple of 16

        The variants are in `notes["variants"]`; a function without them takes its only one.  Memory
        that the call allocates is taken for aligned.  Raises TypeError and ValueError for arguments
        that it does not take.
        """
        from ferrule.runtime.calls.variants import explained

        state, given = state_of(self), (*args, *kwargs.values())
        signature, arguments = ordered(self, given, tuple(kwargs))
        return explained(state.notes, signature, arguments)

    def inspect_ir(self) -> str:
        """The kernel IR as text; for a function that `build` made, the steps of its convention."""
        return state_of(self).origin.text("ir")

    def inspect_mlir(self) -> str:
        """The kernel IR as MLIR, in upstream dialects; it needs no MLIR package.

        StageError if there is no kernel IR, CompileError for an op that MLIR cannot express.
        """
        return state_of(self).origin.text("mlir")

    def inspect_llvm(self) -> str:
        """The LLVM IR before any optimisation."""
        return state_of(self).origin.text("llvm")

    def inspect_asm(self) -> str:
        """The assembly of the code that runs on the CPU."""
        return state_of(self).origin.text("asm")

    def inspect_ptx(self) -> str | dict[str, str]:
        """The PTX of the kernels; for several architectures, a dict by architecture.

        StageError if the function has no kernels for a GPU.
        """
        return ptx_of(state_of(self).origin)

    def kernel_info(self) -> dict[str, KernelInfo] | dict[str, dict[str, KernelInfo]]:
        """The resources of each kernel (registers, spills, …) by its name, as ptxas or nvJitLink
        reports them; for several architectures, by architecture and name.

        StageError if the function has no kernels for a GPU, CompileError without an assembler.
        """
        return kernel_info_of(state_of(self).origin)

    @property
    def remarks(self) -> Remarks:
        """What became of each loop and launch on the CPU: vectorised or not, and why not.

        It compiles the function once more, in a process of its own, and is remembered. StageError
        if the function was not compiled from Python for the CPU, CompileError if that process
        cannot run.
        """
        origin = state_of(self).origin
        if not isinstance(origin, RemarkedOrigin):
            raise StageError("remarks", (), "it was loaded as machine code")
        return origin.remarks()

    def report(self, path: StrPath | None = None) -> Page:
        """A page about the compilation, in HTML: source, kernel IR, LLVM IR and machine code side
        by side, with lines that lead to each other; signature and checks, remarks, the time of each
        stage, sizes.  It is one file that needs nothing from elsewhere.  Notebooks show it framed.

        With `path` it is also written there.  It compiles the function once more.  StageError if
        the function was not compiled from Python.
        """
        origin = state_of(self).origin
        if not isinstance(origin, RemarkedOrigin):
            raise StageError("report", (), "it was loaded as machine code")
        page = Page(origin.report())
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def export_to_c(
        self,
        path: StrPath | None = None,
        function_name: str | None = None,
        *,
        system_lib: str | None = None,
        file_path: StrPath | None = None,
        file_name: str | None = None,
        function_prefix: str | None = None,
    ) -> None:
        """Write the code that defines `__tvm_ffi_<function_name>`, with metadata and docstring.

        The suffix chooses the form: `.o` is an object, `.s` assembly, `.ll` and `.bc` LLVM IR as
        text and bitcode, `.ptx` the kernels alone, `.mlir` the text of `inspect_mlir`. The code
        runs on every CPU of the architecture, unless the option --host-cpu names another one, and
        needs only libtvm_ffi and libc. `function_name` is by default the function's own name. With
        `system_lib`, a program that contains the object finds the function in
        `tvm_ffi.system_lib(prefix)`. ValueError for a name that is not a C identifier or begins
        with an underscore, and for another suffix; StageError for a form that the function does not
        have.

        CuTe DSL's form, with `file_path`, a folder, `file_name` without a suffix, and
        `function_prefix`, the name of the function, writes the object and a header for C.
        """
        from ferrule.runtime.exporting.export import export_code, object_and_header

        state = state_of(self)
        if file_path is not None or file_name is not None or function_prefix is not None:
            given = (path, function_name, system_lib)
            found = object_and_header(given, file_path, file_name)
            self.export_header(found[1], function_prefix)
            path, function_name = found[0], function_prefix
        if path is None:
            raise TypeError("export_to_c() lacks the path of the file")
        export_code(state.origin, _chosen(function_name, state), path, system_lib)

    def export_library(
        self,
        path: StrPath,
        function_name: str | None = None,
        *,
        torch_op: str | None = None,
        xla_handler: str | None = None,
        out: Sequence[str] | None = None,
    ) -> None:
        """Write a shared library (`.so`) that `tvm_ffi.load_module` loads, or an archive (`.a`).

        The C compiler in the variable `CC` links a shared library, otherwise the first of cc, gcc,
        clang, ld.lld and ld that is found. LinkError if there is none or it fails.

        `torch_op`, `"namespace::name"`, also makes the library register an operator of PyTorch as
        soon as it is loaded, by `torch.ops.load_library` or a C++ program; `out` is as for
        `ferrule.torch_op`. ValueError for what no operator can be, and ImportError without PyTorch,
        with whose libraries it is linked.

        `xla_handler`, a C identifier, is a function of the library that JAX registers with
        `jax.ffi.register_ffi_target`. `out` are the names of the written tensors that are outputs
        alone, by default all; the others are inputs, too, with `input_output_aliases`. ValueError
        for what no call in JAX can be; it needs no JAX.
        """
        from ferrule.runtime.exporting import export

        state = state_of(self)
        name = _chosen(function_name, state)
        export.library_target(path)
        found = export.operator_objects(name, state.origin, torch_op, xla_handler, out)
        export.write_library(path, {name: state.origin}, operators=found)

    def export_header(self, path: StrPath, function_name: str | None = None) -> None:
        """Write a header that declares the exported function: `.h` for C, `.hpp` for C++."""
        from ferrule.runtime.exporting.export import check_export_name, export_header

        state = state_of(self)
        name = _chosen(function_name, state)
        check_export_name(name)
        export_header(path, [(state.signature.renamed(name), state.doc)])

    def export_stub(self, path: StrPath) -> None:
        """Write the stub (`.pyi`) of a module that has this function."""
        from ferrule.runtime.exporting.export import export_stub

        export_stub(path, [described(self)])

    def __repr__(self) -> str:
        state = self.__dict__.get(STATE)
        return f"<ferrule.Function {state.signature if state else 'without code'}>"

    def _repr_html_(self) -> str:
        """As notebooks show it: each parameter with what a call checks."""
        from ferrule.runtime.calls.shown import function_html

        return function_html(self, state_of(self).doc)  # type: ignore[arg-type]

    def __copy__(self) -> _Members:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> _Members:
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, tuple[bytes, str]]:
        """Pickle the object that `export_to_c` writes: machine code, without the kernel IR."""
        from ferrule.runtime.loading.files import load_pickled

        state = state_of(self)
        try:
            name = state.signature.name
            return load_pickled, (state.origin.export(name, ".o"), name)
        except StageError as error:
            raise TypeError(f"{self!r} cannot be pickled: {error}") from None


def _chosen(function_name: str | None, state: State) -> str:
    return state.signature.name if function_name is None else function_name


keep_out()

if TYPE_CHECKING:

    class Function(_Members, tvm_ffi.Function):
        """The declaration, for type checkers, of the type that is made below."""

        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    HEAP: HeapType | None
    _GENERIC: str | None
else:

    def _heap_type() -> tuple[HeapType | None, str | None]:
        """The heap type and None, or None and the reason why there is no heap type."""
        if find_spec("llvmlite") is None:
            return None, "llvmlite, which makes the code, is not installed"
        try:
            return make_heap_type("ferrule.Function", _DOC, _FirstCalls), None
        except Unfit as unfit:
            return None, str(unfit)

    class _FirstCalls(tvm_ffi.Function):
        """Calls as Python makes them, as long as there is no machine code for them."""

        __slots__ = ()

        def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
            if _is_prepared(self):
                return HEAP.call(self, args, kwargs)
            values = prepare_call(self, (*args, *kwargs.values()), tuple(kwargs))
            try:
                result = tvm_ffi.Function.__call__(self, *values)
            except Exception:
                name_hidden(self, values)
                raise
            return unpack(result, self.call_plan.form)

    HEAP, _GENERIC = _heap_type()

    def _make_type() -> type[Any]:
        if HEAP is not None:
            made = HEAP.type
        else:
            body = {"__slots__": ("__weakref__",), "__doc__": _DOC}
            made = type("Function", (_FirstCalls,), {**body, "__module__": "ferrule"})
        for name, value in vars(_Members).items():
            # Not a base class: its slots for == and hash, object's own, would come first.
            if name not in _OF_CLASS_STATEMENT:
                setattr(made, name, value)
        return made

    Function = _make_type()

FUNCTIONS.append(Function)


def why_generic_calls() -> str | None:
    """Why calls in this process use tvm-ffi's generic call, which is several times slower.

    None if calls use code that is generated for the parameters, which is the case nearly
    everywhere. Results, checks and errors are the same.
    """
    return _GENERIC


def make_function(
    address: int,
    signature: specs.Signature,
    origin: Origin,
    *,
    owner: object,
    doc: str | None = None,
    kind: type[Function] = Function,
    traits: CallTraits = ANY_FUNCTION,
    notes: Mapping[str, Any] = _NO_NOTES,
) -> Function:
    """A function whose code is at `address`, valid as long as `owner` (the engine) lives.

    `kind` is the type to make, `Function` or a subclass of it.
    """
    plan = make_plan(signature, address, entry_key(signature, traits))
    lifeline = _Lifeline(owner, plan)
    function: Function = kind.__new__(kind)
    function.__move_handle_from__(
        tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=lifeline)
    )
    said = inspect.cleandoc(doc) if doc else None
    function.__dict__.update(_attributes(State(signature, origin, plan, said, notes, Count())))
    function.release_gil = traits.releases_gil
    if HEAP is not None:
        HEAP.own(function, plan.address)
        if not HEAP.is_late:
            _prepare(function)
    return function


def _is_prepared(function: _Members) -> bool:
    """Whether there is machine code for calls of a function, which this call may make."""
    if HEAP is None:
        return False
    state = state_of(function)
    if HEAP.is_installed(function):
        return True
    state.made.calls += 1
    if state.made.calls < CALLS_BEFORE_PREPARED:
        return False
    _prepare(function)
    return True


def _prepare(function: _Members) -> None:
    state, gate = state_of(function), _shared_gate()
    if gate is not None and not gate.heap.is_installed(function):
        gate.install(function, state.plan)


def _attributes(state: State) -> dict[str, Any]:
    # A type cannot have a property called __name__, its own name is in the way.
    name, text = state.signature.name, str(state.signature)
    return {
        STATE: state,
        "__name__": name,
        "__qualname__": name,
        "__doc__": f"{text}\n\n{state.doc}" if state.doc else text,
    }


def python_signature(signature: specs.Signature) -> inspect.Signature:
    """The signature as Python's functions have one; annotations are the kinds as text."""
    parameters: list[inspect.Parameter] = []
    behind_default = False
    for i, (param, kind) in enumerate(zip(signature.arguments, ways_of(signature), strict=True)):
        required = param.default is specs.REQUIRED
        if required and i and parameters[-1].default is not inspect.Parameter.empty:
            # Python's own signatures have no required parameter behind one with a default.
            behind_default = True
        kind = inspect.Parameter.KEYWORD_ONLY if behind_default else kind
        default = inspect.Parameter.empty if required else param.default
        annotation = _Annotation(signature.kind(param))
        parameters.append(
            inspect.Parameter(param.name, kind, default=default, annotation=annotation)
        )
    if signature.result is None:
        return inspect.Signature(parameters)
    returns = _Annotation(signature.kind_of_result())
    return inspect.Signature(parameters, return_annotation=returns)


_GATE_LOCK = ForkLock()  # a finaliser may make a function meanwhile


@cache
def _make_gate() -> Gate:
    from ferrule.runtime.calls.gate import Gate

    assert HEAP is not None
    return Gate(HEAP, prepare_call, name_hidden)


def _shared_gate() -> Gate | None:
    """The gate of this process; None if there is no heap type, so that nothing uses a gate."""
    if HEAP is None:
        return None
    with _GATE_LOCK:
        return _make_gate()


def load_function(
    code: ObjectCode, signature: specs.Signature, origin: Origin, *, doc: str | None = None
) -> Function:
    """Load an object and make the function that it defines."""
    from ferrule.runtime.linking.engine import Engine

    engine = Engine.load(code)
    return make_function(engine.address(code.symbol), signature, origin, owner=engine, doc=doc)
