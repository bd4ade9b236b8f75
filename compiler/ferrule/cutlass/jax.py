"""`cutlass.jax` of CuTe DSL's programs: `jit` functions as operations of JAX (`fe.jax_call`)."""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.operators.jax import load_jax
from ferrule.cutlass import names
from ferrule.language import layouts
from ferrule.language.compilation import compile as compile_function
from ferrule.language.decorators import jit
from ferrule.language.faces.tensors import make_tensor
from ferrule.language.sourcetexts import from_source
from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import BY_NAME

_targets: Final[dict[str, None]] = {}
"""The names of the operations in XLA; they stay until the process ends."""


@dataclass(frozen=True)
class TensorSpec:
    """How a function sees an array.

    `mode`: the dims of the array in the order of the tensor's modes.  `static`: its sizes are known
    while compiling.  `divisibility`: a number for each dim that divides its size, or None.
    `ptr_assumed_align`: the alignment of its first element in bytes.
    """

    mode: Sequence[int] | None = None
    static: bool | None = None
    divisibility: Sequence[int | None] | None = None
    ptr_assumed_align: int | None = None


_PLAIN: Final = TensorSpec()


def is_available() -> bool:
    """Whether JAX can be imported."""
    try:
        load_jax("cutlass.jax")
    except ImportError:
        return False
    return True


def jax_to_cutlass_dtype(dtype: Any) -> specs.DType:
    """The dtype of elements of JAX.  Raises TypeError for one that ferrule has not."""
    import numpy as np

    found = BY_NAME.get(np.dtype(dtype).name)
    if found is None:
        raise TypeError(f"ferrule has no dtype for {dtype!r}")
    return found


def cutlass_to_jax_dtype(dtype: specs.DType) -> Any:
    """JAX's dtype of these elements.  Raises TypeError where it has none."""
    found = getattr(
        load_jax("cutlass.jax").numpy, "bool_" if dtype.kind == "bool" else dtype.name, None
    )
    if found is None:
        raise TypeError(f"JAX has no dtype for {dtype.__name__}")
    return found


class _Checks(Sequence[Any]):
    """The safety checks that `jax.export` leaves out for the operations made until it asks."""

    def _now(self) -> list[Any]:
        check = load_jax("cutlass.jax").export.DisabledSafetyCheck
        return [check.custom_call(each) for each in _targets]

    def __getitem__(self, index: Any) -> Any:
        return self._now()[index]

    def __len__(self) -> int:
        return len(_targets)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._now())


def get_export_disabled_safety_checks() -> Sequence[Any]:
    """`disabled_checks` of `jax.export.export` for programs with a `cutlass_call`."""
    importlib.import_module("jax.export")  # JAX does not import it by itself

    return _Checks()


def cutlass_call(
    fn: Callable[..., Any],
    *,
    output_shape_dtype: Any,
    input_spec: Any = None,
    output_spec: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    use_static_tensors: bool = False,
    compile_options: str | None = None,
    **static: Any,
) -> Callable[..., Any]:
    """A function of arrays that calls `fn(stream, *inputs, *outputs, **static)` in a JAX program.

    `output_shape_dtype` is a `jax.ShapeDtypeStruct`, or a tuple, list or dict of them, as the
    result then is.  `input_spec` and `output_spec` have a `TensorSpec` or None for each input and
    output.  `input_output_aliases` gives, for an input that `fn` writes, the output that it is;
    `fn` does not get that output.  Sizes are known at run time, unless `use_static_tensors` or a
    spec says otherwise.  On a GPU the function runs there, else on the CPU.
    """
    load_jax("cutlass.jax.cutlass_call")
    for name in static:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise TypeError(f"cutlass_call: {name!r} is no name of a parameter")
    call = _Call(
        fn,
        output_shape_dtype,
        input_spec,
        output_spec,
        dict(input_output_aliases or {}),
        use_static_tensors,
        compile_options or "",
        static,
    )
    return call


@dataclass(frozen=True, eq=False)
class _Call:
    """What `cutlass_call` was given."""

    function: Any
    outputs: Any
    input_spec: Any
    output_spec: Any
    aliases: dict[int, int]
    static: bool
    options: str
    values: dict[str, Any]

    def __call__(self, *inputs: Any) -> Any:
        import jax

        from ferrule.compiler.operators.jax.calls import JaxCall

        arrays, _ = jax.tree.flatten(inputs)
        made, tree = jax.tree.flatten(self.outputs, is_leaf=_is_struct)
        self._check(len(arrays), len(made))
        given = [f"input{i}" for i in range(len(arrays))]
        taken = {output: given[i] for i, output in self.aliases.items()}
        results = [taken.get(i, f"output{i}") for i in range(len(made))]
        fresh = [i for i in range(len(made)) if i not in taken]
        entry = self._entry(inputs, given, results, fresh)
        seen = [*zip(arrays, _each(self.input_spec, len(arrays)), strict=True)]
        kinds = [*zip(made, _each(self.output_spec, len(made)), strict=True)]
        symbols: dict[tuple[Any, int], Any] = {}
        examples = [self._example(*each, symbols) for each in (*seen, *(kinds[i] for i in fresh))]
        target = "cuda" if jax.default_backend() == "gpu" else "cpu"
        compiled = compile_function(
            entry,
            specs.make_fake_stream(),
            *examples,
            options=f"--target {target} {self.options}".strip(),
        )
        sizes = {results[i]: jax.ShapeDtypeStruct(made[i].shape, made[i].dtype) for i in fresh}
        call = JaxCall.of(
            compiled, sizes, None, "sequential", has_side_effect=False, written=results
        )
        _targets[call.target] = None
        found = call(*arrays)
        # In the order of the parameters: of inputs first.
        order = sorted(results, key=[*given, *results].index)
        by_name = dict(zip(order, [found] if len(order) == 1 else found, strict=True))
        return jax.tree.unflatten(tree, [by_name[name] for name in results])

    def _check(self, inputs: int, outputs: int) -> None:
        for source, output in self.aliases.items():
            if not 0 <= source < inputs or not 0 <= output < outputs:
                raise ValueError(
                    f"cutlass_call: input_output_aliases has {source}: {output}, but there are "
                    f"{inputs} inputs and {outputs} outputs"
                )

    def _entry(
        self, inputs: tuple[Any, ...], given: list[str], results: list[str], fresh: list[int]
    ) -> Any:
        """The function that JAX calls: one parameter for each array."""
        namespace: dict[str, Any] = {
            "function": self.function,
            "make_tensor": make_tensor,
            "select": layouts.select,
        }
        modes = [*_each(self.input_spec, len(given)), *_each(self.output_spec, len(results))]
        names_ = [*given, *(f"output{i}" for i in range(len(results)))]
        said = dict(zip(names_, modes, strict=True))
        leaves = iter(given)
        arguments = [_rendered(each, leaves, said) for each in inputs]
        structure = self.outputs
        tree = structure if type(structure) in (tuple, list) else (structure,)
        numbers = iter(range(len(results)))
        for each in tree:
            text = _rendered(each, (f"output{i}" for i in numbers), said, fresh)
            arguments += [text] if text else []
        for name, value in self.values.items():
            namespace[f"static_{name}"] = value
            arguments.append(f"{name}=static_{name}")
        parameters = ", ".join(["stream", *given, *(f"output{i}" for i in fresh)])
        text = f"def entry({parameters}):\n    function(stream, {', '.join(arguments)})\n"
        return jit(from_source(text, namespace)["entry"])

    def _example(self, array: Any, spec: TensorSpec, symbols: dict[tuple[Any, int], Any]) -> Any:
        """The parameter for an array, whose rows are contiguous.

        Equal sizes are one symbol: JAX calls this function with the sizes of this trace alone.
        """
        static = self.static if spec.static is None else spec.static
        divisors = spec.divisibility or (None,) * array.ndim
        if len(divisors) != array.ndim:
            raise ValueError(
                f"cutlass_call: divisibility has {len(divisors)} numbers for an array of "
                f"{array.ndim} dims"
            )
        shape = []
        for size, divisor in zip(array.shape, divisors, strict=True):
            key = (size, divisor or 1)
            if not static and key not in symbols:
                symbols[key] = specs.sym_int(divisibility=key[1])
            shape.append(size if static else symbols[key])
        order = tuple(reversed(range(array.ndim)))
        return specs.make_fake_compact_tensor(
            jax_to_cutlass_dtype(array.dtype),
            tuple(shape),
            stride_order=order,
            assumed_align=spec.ptr_assumed_align,
        )


def _is_struct(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _each(given: Any, count: int) -> list[TensorSpec]:
    """A spec for each of so many arrays."""
    if given is None:
        return [_PLAIN] * count
    listed = [given] if isinstance(given, TensorSpec) else list(given)
    if len(listed) != count or not all(
        each is None or isinstance(each, TensorSpec) for each in listed
    ):
        raise ValueError(
            f"cutlass_call: expected a TensorSpec or None for each of {count} arrays, but got "
            f"{given!r}"
        )
    return [_PLAIN if each is None else each for each in listed]


def _rendered(
    tree: Any,
    leaves: Iterator[str],
    said: Mapping[str, TensorSpec],
    fresh: Sequence[int] | None = None,
) -> str:
    """The text of an argument: containers with the names of arrays in them."""
    if type(tree) in (list, tuple):
        items = "".join(f"{_rendered(each, leaves, said, fresh)}, " for each in tree)
        return f"[{items}]" if type(tree) is list else f"({items})"
    if isinstance(tree, dict):
        items = "".join(
            f"{key!r}: {_rendered(tree[key], leaves, said, fresh)}, " for key in sorted(tree)
        )
        return f"{{{items}}}"
    if tree is None:
        return "None"
    name = next(leaves)
    if fresh is not None and int(name.removeprefix("output")) not in fresh:
        return ""
    mode = said[name].mode
    if mode is None:
        return name
    return f"make_tensor({name}.iterator, select({name}.layout, mode={tuple(mode)}))"


__getattr__ = names.resolver("cutlass.jax")
