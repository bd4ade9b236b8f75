"""From example arguments and annotations to specs.

An example has a spec through `__ferrule_spec__`, or is a spec itself; this module handles numbers,
DSL scalars, dtypes, strings, tuples, named tuples, dataclasses and real tensors.  Anything else is
a CompileError that lists the possible examples.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, get_args

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.language.faces import base as faces
from ferrule.language.faces.containers import annotated_spec, example_spec
from ferrule.language.marks import has_dynamic_layout
from ferrule.language.recognised import (
    UNIONS,
    hints_of,
    is_event,
    is_stream,
    is_stream_annotation,
    scalar_dtype,
    tensor_spec,
)
from ferrule.language.source import is_hashable, outer_names
from ferrule.specs import (
    Boolean,
    DType,
    Float32,
    Float64,
    Int32,
    Numeric,
    Requirement,
    SupportsSpec,
    Sym,
    params,
)
from ferrule.specs.binding import Path
from ferrule.specs.copies import changed
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, sym_int64
from ferrule.specs.requirements import kept

_SHAPES: Final[dict[object, params.TupleKind]] = {
    faces.Shape: "Shape",
    faces.Stride: "Stride",
    faces.Coord: "Coord",
    faces.Tile: "Tile",
    faces.IntTuple: "IntTuple",
}
_NUMBERS: Final[dict[object, DType]] = {int: Int32, float: Float32, bool: Boolean}
_EMPTY: Final = inspect.Parameter.empty


@dataclass(slots=True)
class Examples:
    """A function's parameters according to its examples.

    `given`: the arguments of the call, by name.  `constants`: parameters known at compile time.
    `classes`: the named tuples and dataclasses of tuples, the dtypes of narrow floats, and the
    objects that make others of values in memory of C, by path.
    `variadic`: the name of `*args` and the names of the parameters that it became.
    `positional_only`, `keyword_only` and `requires` as in `Signature`.  `dynamic`: sizes and
    strides of real tensors may be others in a call.
    """

    parameters: tuple[params.Param, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    classes: dict[Path, Any] = field(default_factory=dict)
    variadic: tuple[str, tuple[str, ...]] | None = None
    positional_only: int = 0
    keyword_only: int = 0
    requires: tuple[Requirement, ...] = ()
    dynamic: bool = False

    def add(self, param: params.Param, parameter: inspect.Parameter) -> None:
        """Adds the next parameter, and how callers pass it."""
        self.parameters = (*self.parameters, param)
        self.positional_only += parameter.kind is parameter.POSITIONAL_ONLY
        self.keyword_only += parameter.kind is parameter.KEYWORD_ONLY


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """A function's Python signature, with evaluated string annotations.

    A name that is undefined at run time (it was imported only for type checkers) stays a string;
    any other error is a CompileError, because a misspelt annotation would change the meaning.
    """
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_evaluated(function, parameter))
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


def _evaluated(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    text = parameter.annotation
    plain = inspect.unwrap(function)
    if not isinstance(text, str) or not isinstance(plain, types.FunctionType):
        return text
    try:
        return eval(text, outer_names(plain))
    except NameError:
        return text
    except Exception as error:
        raise CompileError(
            f"{plain.__name__}: the annotation {text!r} of the parameter {parameter.name!r} cannot "
            f"be evaluated: {type(error).__name__}: {error}"
        ) from None


def bind_examples(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic: bool = False,
) -> Examples:
    """The specs of a function's parameters.  Raises CompileError for an invalid example.

    `dynamic`: real tensors stand for tensors of other sizes and strides, too, as they do where the
    function's decorator says so.
    """
    name = getattr(function, "__name__", repr(function))
    signature = signature_of(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise CompileError(
            Diagnostic(
                f"{name}: the example arguments do not fit: {error}",
                expected=f"one example for each parameter of {name}{_shown(signature)}",
            )
        ) from None
    given = dict(bound.arguments)
    bound.apply_defaults()
    examples = Examples(given=given, dynamic=dynamic or has_dynamic_layout(function))
    for place, parameter in enumerate(signature.parameters.values()):
        example = bound.arguments[parameter.name]
        if place == 0 and parameter.annotation is _EMPTY and is_object_of(function, example):
            examples.constants[parameter.name] = example
        else:
            _derive_parameter(name, parameter, example, examples)
    return examples


def is_object_of(function: Callable[..., Any], example: Any) -> bool:
    """Whether a function is a method that was called on this object or class, which is not an
    argument by itself, as a dataclass is."""
    cls, _, _ = function.__qualname__.rpartition(".")
    owners = example.__mro__ if isinstance(example, type) else type(example).__mro__
    if not any((o.__module__, o.__qualname__) == (function.__module__, cls) for o in owners):
        return False
    try:
        _Derivation(function.__name__, {}).plain("self", example, _EMPTY, (0,))
    except (CompileError, ValueError):
        return isinstance(example, type) or not _is_record(example)
    return False


def _is_tag(annotation: Any) -> bool:
    """Whether this is a dataclass without fields: a value of it tells nothing but its class."""
    if not isinstance(annotation, type) or not dataclasses.is_dataclass(annotation):
        return False
    return not dataclasses.fields(annotation)


def _chooses_a_tag(annotation: Any, example: Any) -> bool:
    """Whether the example is one of several tags.  Its class is known while compiling, and a call
    must have one of that class."""
    if typing.get_origin(annotation) not in UNIONS:
        return False
    return any(_is_tag(each) and type(example) is each for each in get_args(annotation))


def _is_record(example: Any) -> bool:
    return dataclasses.is_dataclass(example) or isinstance(example, tuple)


def _shown(signature: inspect.Signature) -> str:
    """A signature with the names that users write, such as `fe.Tensor`."""
    return re.sub(r"\bferrule(?:\.\w+)*\.(\w+)", r"fe.\1", str(signature))


def check_binds(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raise TypeError, with Python's own message, if the arguments do not fit the parameters."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        bare = [
            each.replace(annotation=_EMPTY, default=_EMPTY if each.default is _EMPTY else None)
            for each in signature.parameters.values()
        ]
        scope: dict[str, Any] = {}
        name = function.__name__
        exec(f"def {name}{inspect.Signature(bare)}: pass", scope)
        try:
            scope[name](*args, **kwargs)
        except TypeError as error:
            raise TypeError(str(error)) from None


def _derive_parameter(
    function: str, parameter: inspect.Parameter, example: Any, examples: Examples
) -> None:
    """Adds the parameters for one parameter of the function: a constant, a spec, or those of
    `*args`."""
    name = parameter.name
    annotation = parameter.annotation if is_hashable(parameter.annotation) else parameter.empty
    derivation = _Derivation(function, examples.classes, examples.dynamic)
    if parameter.kind is parameter.VAR_KEYWORD:
        if example:
            raise CompileError(f"{function}: parameters such as **{name} are not supported")
        examples.constants[name] = {}
    elif annotation is faces.Constexpr or typing.get_origin(annotation) is type:
        examples.constants[name] = example
    elif parameter.kind is parameter.VAR_POSITIONAL:
        names = tuple(f"{name}_{i}" for i in range(len(example)))
        examples.variadic = (name, names)
        for each, item in zip(names, example, strict=True):
            spec = derivation.spec(each, item, annotation, (len(examples.parameters),))
            examples.add(spec, parameter)
    else:
        spec = derivation.spec(name, example, annotation, (len(examples.parameters),))
        examples.add(with_default(spec, parameter.default), parameter)
        if isinstance(example, Sym) and isinstance(spec, params.Scalar):
            examples.requires += kept(spec.value, example)


def with_default(spec: params.Param, default: Any) -> params.Param:
    """The spec with the default of a parameter, so that a call can omit it.

    A default of another kind than the example, such as 1.0 for an integer, is dropped: the function
    that is compiled for that example requires the argument.
    """
    if default is _EMPTY or isinstance(spec, (params.Tensor, params.EnvStream)):
        return spec
    if isinstance(default, (SupportsSpec, DType, *get_args(params.Param))):
        return spec
    if not _holds(spec, default):
        return spec
    if isinstance(spec, params.Scalar):
        return params.Scalar(spec.name, spec.dtype, default)
    return changed(spec, default=default)


def _holds(spec: params.Param, default: Any) -> bool:
    """Whether a default is of a kind that the spec accepts."""
    match spec:
        case params.Scalar(dtype=dtype):
            try:
                dtype(default)
            except (TypeError, ValueError, OverflowError):
                return False
            return True
        case params.Optional(item=item):
            return default is None or _holds(item, default)
        case params.Union(members=members):
            return any(_holds(member, default) for member in members)
        case params.NoneValue():
            return default is None
        case params.String():
            return isinstance(default, str)
        case params.Bytes():
            return isinstance(default, bytes)
        case params.Tuple(items=items) if isinstance(default, (tuple, list)):
            return len(items) == len(default) and all(map(_holds, items, default))
        case params.Tensor():
            return hasattr(type(default), "__dlpack__")
    return default is not None or isinstance(spec, params.AnyValue)


@dataclass(frozen=True, slots=True)
class _Derivation:
    """Derives the spec of one example, and records what its values become in `classes`."""

    function: str
    classes: dict[Path, Any]
    dynamic: bool = False

    def fail(self, name: str, message: str, expected: str | None = None) -> typing.NoReturn:
        raise CompileError(
            Diagnostic(
                f"{self.function}: the example for the parameter {name!r} cannot be used: "
                f"{message}",
                expected=expected,
            )
        )

    def spec(self, name: str, example: Any, annotation: Any, path: Path) -> params.Param:
        """The spec of an example."""
        example, annotation = self.widened(example, annotation, path)
        try:
            found = self.annotated(name, example, annotation, path)
            if found is None:
                found = self.plain(name, example, annotation, path)
        except ValueError as error:
            self.fail(name, str(error))
        self.check_annotation(name, found, annotation, example)
        return found

    def widened(self, example: Any, annotation: Any, path: Path) -> tuple[Any, Any]:
        """A float of 8 bits or fewer as a float64, which the function rounds when it begins: calls
        have no such numbers."""
        kind = example if isinstance(example, DType) else type(example)
        dtype = annotation if isinstance(annotation, DType) else kind
        if not isinstance(dtype, DType) or not dtype.is_narrow:
            return example, annotation
        self.classes[path] = dtype
        if isinstance(example, Numeric):
            return Float64(example), Float64
        return (Float64 if isinstance(example, DType) else example), Float64

    def annotated(
        self, name: str, example: Any, annotation: Any, path: Path
    ) -> params.Param | None:
        """The spec from the annotation, if it determines one."""
        if annotation is faces.Constexpr:
            return self.constant(name, example)
        if is_event(example):
            return params.Pointer(name)
        if _chooses_a_tag(annotation, example):
            self.classes[path] = type(example)
            return params.Constant(name, type(example).__qualname__)
        if typing.get_origin(annotation) in UNIONS:
            return self.union(name, example, get_args(annotation), path)
        if annotation in _SHAPES and isinstance(example, (tuple, list)):
            return self.shape(name, example, _SHAPES[annotation])
        found = annotated_spec(annotation, name)
        if found is not None:
            return found
        if isinstance(annotation, get_args(params.Param)):
            return self.stated(name, example, annotation)
        if example is None and annotation in (str, bytes):
            return self.member(name, None, annotation, path)
        if is_stream_annotation(annotation) and not isinstance(example, SupportsSpec):
            return params.Stream(name)
        return None

    def stated(self, name: str, example: Any, annotation: params.Param) -> params.Param | None:
        """The spec that an annotation is, for a value; an example that says more is not changed."""
        if isinstance(example, (SupportsSpec, Sym, *get_args(params.Param))):
            return None
        if (
            example is not None
            and not isinstance(example, DType)
            and not _holds(annotation, example)
        ):
            self.fail(name, f"{example!r} is none of what its annotation says", repr(annotation))
        named: params.Param = changed(annotation, name=name)
        return named

    def plain(self, name: str, example: Any, annotation: Any, path: Path) -> params.Param:
        """The spec from the example itself."""
        if isinstance(example, get_args(params.Param)):
            named: params.Param = changed(example, name=name)
            return named
        if isinstance(example, SupportsSpec):
            return example.__ferrule_spec__(name)
        if isinstance(example, Sym):
            if example.bounds and len(path) > 1:
                self.fail(name, "the bounds of a number in a tuple or *args are not checked")
            return self.scalar(name, example, annotation)
        if dataclasses.is_dataclass(example) and not isinstance(example, type):
            fields = [f.name for f in dataclasses.fields(example)]
            return self.record(name, example, fields, path)
        if isinstance(example, tuple) and hasattr(example, "_fields"):
            return self.record(name, example, list(example._fields), path)
        if isinstance(example, (tuple, list)):
            return self.tuple(name, example, annotation, path)
        if hasattr(example, "__extract_mlir_values__"):
            from ferrule.language.values import is_value_object  # few programs have one

            if is_value_object(example):
                return self.value_object(name, example, path)
        if hasattr(example, "__c_pointers__") and hasattr(example, "__new_from_mlir_values__"):
            return self.c_values(name, example, path)
        match example:
            case None:
                return params.NoneValue(name)
            case str() | bytes():
                return params.String(name) if isinstance(example, str) else params.Bytes(name)
            case _ if example is str or example is bytes:
                return params.String(name) if example is str else params.Bytes(name)
            case _ if example is Any:
                return params.AnyValue(name)
            case types.FunctionType() | types.BuiltinFunctionType():
                return params.Function(name)
        found = example_spec(name, example) or annotated_spec(example, name)
        if found is not None:
            return found
        if hasattr(type(example), "__dlpack__"):
            return tensor_spec(name, example, self.dynamic)
        if is_stream(example):
            return params.Stream(name)
        if is_event(example):
            return params.Pointer(name, None)
        return self.scalar(name, example, annotation)

    def constant(self, name: str, example: Any) -> params.Constant:
        """A field that is known at compile time: a call must pass the same value."""
        value = example.value if isinstance(example, Numeric) else example
        if not isinstance(value, (bool, int, float, str)):
            self.fail(name, f"{example!r} is no constant", "a bool, int, float or str")
        return params.Constant(name, value)

    def union(
        self, name: str, example: Any, annotations: tuple[Any, ...], path: Path
    ) -> params.Param:
        """`Optional[X]`, `Union[X, Y]`, and both."""
        kinds = [each for each in annotations if each is not type(None)]
        if isinstance(example, get_args(params.Param)):
            return self.given_union(name, example, kinds, len(kinds) < len(annotations), path)
        members = [self.member(name, example, each, path) for each in kinds]
        known = [member for member in members if member is not None]
        if not known:  # only None is possible: nothing tells the other type
            return self.plain(name, example, _EMPTY, path)
        if len(known) < len(members) and example is not None:
            self.fail(name, f"{example!r} says nothing of the other members of {annotations}")
        inner = known[0] if len(known) == 1 else params.Union(name, tuple(known))
        return params.Optional(name, inner) if len(kinds) < len(annotations) else inner

    def given_union(
        self, name: str, spec: Any, kinds: list[Any], optional: bool, path: Path
    ) -> params.Param:
        """A spec that was given for one: as it is, and optional where only that is missing."""
        if isinstance(spec, (params.Optional, params.Union)):
            return self.plain(name, spec, _EMPTY, path)
        if len(kinds) > 1:
            self.fail(name, f"{spec!r} is one of several kinds", "a Union, as its annotation is")
        inner = self.spec(name, spec, kinds[0], path)
        return params.Optional(name, inner) if optional else inner

    def member(self, name: str, example: Any, annotation: Any, path: Path) -> params.Param | None:
        """One member of a union: by its annotation, or by the example if it is of that member."""
        if isinstance(annotation, DType):
            return params.Scalar(name, annotation)
        if annotation is str:
            return params.String(name)
        if annotation is bytes:
            return params.Bytes(name)
        if annotation in _NUMBERS:
            return params.Scalar(name, _NUMBERS[annotation])
        if example is None:
            return None
        try:
            return self.spec(name, example, annotation, path)
        except CompileError:
            return None

    def shape(self, name: str, example: Any, kind: params.TupleKind) -> params.Param:
        """A tuple of sizes; None means any size.  A nested one is a tuple of these."""
        if any(isinstance(item, (tuple, list)) for item in example):
            items = [
                self.shape(str(i), item if isinstance(item, (tuple, list)) else (item,), kind)
                for i, item in enumerate(example)
            ]
            return params.Tuple(name, tuple(items))
        dims = tuple(sym_int64() if item is None else item for item in example)
        for dim in dims:
            if not is_dim(dim):
                self.fail(name, f"{dim!r} is no size", "ints, symbolic ints, None for any")
        return params.Shape(name, dims, kind)

    def record(self, name: str, example: Any, fields: list[str], path: Path) -> params.Tuple:
        """A named tuple or dataclass."""
        self.classes[path] = type(example)
        hints = hints_of(type(example))
        items = tuple(
            self.spec(each, getattr(example, each), hints.get(each, _EMPTY), (*path, i))
            for i, each in enumerate(fields)
        )
        return params.Tuple(name, items, fields=True)

    def value_object(self, name: str, example: Any, path: Path) -> params.Tuple:
        """An object whose class says which of its values the run has: each attribute that an
        argument can be is one; what is known while compiling must be the same in a call."""
        self.classes[path] = type(example)
        items = tuple(
            self.attribute(each, value, (*path, i))
            for i, (each, value) in enumerate(vars(example).items())
        )
        return params.Tuple(name, items, fields=True)

    def c_values(self, name: str, example: Any, path: Path) -> params.Param:
        """An object whose values are in memory of C, from which its class makes another object."""
        from ferrule.runtime.values import cvalues  # few programs have one

        if not cvalues.points_to_values(example):
            self.fail(name, "it has __c_pointers__ but no __get_mlir_types__")
        try:
            items = cvalues.items_of(example)
        except TypeError as error:
            self.fail(name, str(error))
        self.classes[path] = example
        return params.Tuple(name, items)

    def attribute(self, name: str, value: Any, path: Path) -> params.Param:
        """An attribute of such an object: ints and texts, and tuples of them, are constants."""
        if isinstance(value, (bool, int, float, str)):
            return self.constant(name, value)
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            items = (self.attribute(str(i), each, (*path, i)) for i, each in enumerate(value))
            return params.Tuple(name, tuple(items))
        return self.spec(name, value, _EMPTY, path)

    def tuple(self, name: str, example: Any, annotation: Any, path: Path) -> params.Tuple:
        """A tuple or list; `Tuple[X, Y]` and `Tuple[X, ...]` annotate its items."""
        wanted = get_args(annotation) if typing.get_origin(annotation) in (tuple, list) else ()
        if len(wanted) == 2 and wanted[1] is Ellipsis:
            wanted = (wanted[0],) * len(example)
        if wanted == ((),):
            wanted = ()
        if wanted and len(wanted) != len(example):
            self.fail(name, f"it has {len(example)} items", f"{len(wanted)}, as {annotation} says")
        annotations = wanted or (_EMPTY,) * len(example)
        items = tuple(
            self.spec(str(i), item, each, (*path, i))
            for i, (item, each) in enumerate(zip(example, annotations, strict=True))
        )
        return params.Tuple(name, items)

    def scalar(self, name: str, example: Any, annotation: Any) -> params.Scalar:
        """A number: its dtype comes from the annotation, else from the example."""
        try:
            dtype = annotation if isinstance(annotation, DType) else scalar_dtype(example)
            if dtype is None:
                raise TypeError(f"{example!r} ({type(example).__name__})")
            if not isinstance(example, (DType, Sym)):
                dtype(example)
            return params.Scalar(name, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            self.fail(
                name, str(error), "a fake tensor, a tensor, a number, or a dtype such as fe.Float32"
            )

    def check_annotation(
        self, name: str, spec: params.Param, annotation: Any, example: Any
    ) -> None:
        """Raise an error if an annotation names another kind than the spec."""
        kinds: dict[object, type] = {faces.Tensor: params.Tensor, faces.Pointer: params.Pointer}
        wanted: type | None = params.Scalar if isinstance(annotation, DType) else None
        if annotation in _SHAPES:
            wanted = params.Shape if isinstance(spec, params.Shape) else params.Tuple
        elif isinstance(annotation, type):
            wanted = kinds.get(annotation, wanted)
        if wanted is not None and not isinstance(spec, wanted):
            raise CompileError(
                f"{self.function}: the parameter {name!r} is annotated as "
                f"{getattr(annotation, '__name__', annotation)}, but its example is {example!r}"
            )
