"""A recorded host function as one function: its launches in order, its temporaries, its results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, Final

from ferrule import specs
from ferrule.compiler.building import build
from ferrule.compiler.conventions import GIVEN, Require
from ferrule.compiler.conventions import Made as MadeByCall
from ferrule.compiler.conventions import Sequence as Steps
from ferrule.compiler.conventions import View as Part
from ferrule.compiler.conventions.give import Given
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.exactstrides import ExactStrides
from ferrule.frontends.given import requiring
from ferrule.frontends.triton.arguments import (
    Argument,
    Arguments,
    Hint,
    IntegerArgument,
    NumberArgument,
    PointerArgument,
)
from ferrule.frontends.triton.compiling import Compilation, archs_of, prepared
from ferrule.frontends.triton.fills import Fill, filling
from ferrule.frontends.triton.levels import Specialise
from ferrule.frontends.triton.recorded.checks import require_same
from ferrule.frontends.triton.recorded.hosts.host import Filled, Host
from ferrule.frontends.triton.recorded.hosts.parameters import FreeNumber, Parameters, free_numbers
from ferrule.frontends.triton.recorded.hosts.returned import (
    Plain,
    Shown,
    Value,
    giving,
    number_given,
)
from ferrule.frontends.triton.recorded.nodes import FLOAT, Leaf, Tree
from ferrule.frontends.triton.recorded.numbers.deciding import with_line
from ferrule.frontends.triton.recorded.numbers.exact import Axes, exact_axes
from ferrule.frontends.triton.recorded.numbers.fitting import fitting
from ferrule.frontends.triton.recorded.reading import Made
from ferrule.frontends.triton.recorded.sizes import Sizes, Values
from ferrule.frontends.triton.recorded.tensors import Recorded
from ferrule.frontends.triton.recorded.together import Together
from ferrule.frontends.triton.recorded.views import Free, View, example_of, tensor_over
from ferrule.frontends.triton.traced.tensors import SeenView
from ferrule.specs import Dim, NoneValue, Scalar, Signature, Tensor, symbols_of
from ferrule.specs.conditions import FloatExpr, as_float
from ferrule.specs.deferred import dataclass
from ferrule.specs.requirements import Requirement, is_of_sizes, kept

if TYPE_CHECKING:
    from ferrule.compiler.conventions.protocol import CallingConvention
    from ferrule.runtime import Function


_NO_CHOICE: Final = (
    "fe.overload does not choose by a float: decide in a function around it, or give a bool"
)


@dataclass(slots=True)
class Whole:
    """The function of several recordings of one host function."""

    name: str
    hosts: Sequence[Host]
    launches: Sequence[Together]
    fills: Sequence[Filled]
    target: Any
    specialize: Specialise
    prune: bool = True
    fixed: Collection[str] = ()
    tensors: dict[int, Tensor] = field(default_factory=dict)
    given: dict[str, Tensor | Scalar] = field(default_factory=dict)
    temporaries: list[Tensor] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    """What the call gives back beside the tensors that it makes."""
    fitting: list[Require] = field(default_factory=list)
    """What calls are held to for the numbers with which they fill tensors."""
    inputs: dict[str, Sequence[Recorded]] = field(default_factory=dict)
    """The tensors among `given`, as each recording had them."""
    renamed: dict[str, str] = field(default_factory=dict)
    """The names in `given` of the host function's tensors."""
    origins: dict[int, Sequence[Recorded]] = field(default_factory=dict)
    owners: dict[tuple[int, int], str] = field(default_factory=dict)
    """The tensor whose memory a storage of a recording is, by the recording and the storage."""

    @property
    def sizes(self) -> Sizes:
        """The sizes that all launches share."""
        return self.launches[0].sizes

    @property
    def names(self) -> list[str]:
        """The names of sizes and numbers that differ between the recordings."""
        following = self.launches[0].following
        return [*map(str, self.sizes.symbols), *following.integers, *following.floats]

    def covered(self) -> frozenset[Values]:
        """The values of the symbols of which the grids are made."""
        self._read_inputs()
        return frozenset().union(*(each.covered() for each in self.launches))

    def function(self, doc: str | None, options: Any) -> Function:
        """The function.  Raises CompileError for what is no sequence of launches."""
        self._check_computed()
        self._read_inputs()
        results = self._results()
        steps: list[CallingConvention] = []
        for at, launch in enumerate(self.launches):
            steps += [self._fill(each) for each in self.fills if each.before == at]
            steps.append(self._launch(launch))
        late = [each for each in self.fills if each.before >= len(self.launches)]
        steps += [self._fill(each) for each in late]
        signature, checks = self._signature()
        told = ExactStrides(tuple(self._exact().items()))
        steps = [told, *checks, *self.fitting, *steps, *giving(self.values)]
        step = Steps(steps, temporaries=self.temporaries)
        return build(signature, step, results=results, doc=doc, options=options)

    def _exact(self) -> Axes:
        """The strides of callers' tensors that the host function reads as numbers."""
        following = self.launches[0].following
        found = exact_axes(following.strides_read(), following.logs, self.inputs, self.renamed)
        return {self.renamed.get(name, name): axes for name, axes in found.items()}

    def _signature(self) -> tuple[Signature, list[Require]]:
        """The signature, and what calls are held to that it does not say."""
        signature, bounds = self._parameters()
        found = self.launches[0].following.requirements()
        requires = [each for each in found if is_of_sizes(each.condition)]
        floats = [each for each in found if each not in requires]
        others = [Require(each.condition, f"{each.message}; {_NO_CHOICE}") for each in floats]
        return requiring(signature, [*bounds, *requires]), others

    def _parameters(self) -> tuple[Signature, list[Requirement]]:
        """The parameters, and the bounds of numbers among them."""
        if not all(host.is_called for host in self.hosts):
            return Signature(self.name, tuple(self.given.values())), []
        bounds = [kept(symbol, symbol) for symbol in self.sizes.numbers]
        several, following = [host.given for host in self.hosts], self.launches[0].following
        known = Parameters(self.name, several, self.given, self.tensors, following, self.fixed)
        return known.signature(), [*chain(*bounds)]

    # ---- tensors ----

    def _check_computed(self) -> None:
        """Every tensor of a launch, and every result, is an input or is written by launches."""
        for at, host in enumerate(self.hosts):
            used = {v[at].storage: n for one in self.launches for n, v in one.tensors()}
            used |= {
                each.storage: f"result {number}"
                for number, each in enumerate(host.results)
                if isinstance(each, Recorded)
            }
            for storage, operation in host.computed.items():
                if storage not in host.made:
                    names = (n for n, each in host.inputs.items() if each.storage == storage)
                    what = f"{next(names, 'a tensor of the caller')} is changed"
                elif storage in used:
                    what = f"{used[storage]} is computed"
                else:
                    continue
                raise CompileError(
                    Diagnostic(
                        f"{self.name}: {what} by torch's {operation}, which is no launch",
                        hint="do that in a function around this one, or record what is before and "
                        "behind it apart",
                    )
                )

    def _read_inputs(self) -> None:
        """The named inputs, then the other tensors that launches take, by their parameter."""
        numbers = self._free_numbers()
        self.sizes.reserved = frozenset(each.scalar.name for each in numbers)
        named = self.hosts[0].inputs
        for host in self.hosts[1:]:
            self._check_inputs(set(named) ^ set(host.inputs))
        for name in named:
            self._take(name, [host.inputs[name] for host in self.hosts])
        for launch in self.launches:
            for name, each in launch.tensors():
                storage = each[0].storage
                if storage not in self.hosts[0].made and storage not in self.tensors:
                    self._take(name, each)
        self.sizes.closed = True
        self._take_numbers(numbers)
        for launch in self.launches:
            launch.read_tensors({*self.hosts[0].made, *self.tensors})

    def _free_numbers(self) -> list[FreeNumber]:
        """The numbers that callers give: those that differ between the recordings."""
        if not all(host.is_called for host in self.hosts):
            return []
        return free_numbers([host.given for host in self.hosts], self.fixed)

    def _take_numbers(self, numbers: Sequence[FreeNumber]) -> None:
        following = self.launches[0].following
        following.owners = self.owners
        for found in numbers:
            self.given[found.scalar.name] = found.scalar
            if found.scalar.dtype.kind == "float":
                following.floats[found.scalar.name] = found.scalar
            else:
                symbol = self.sizes.number(found.scalar.value, found.values)
                following.integers[found.scalar.name] = symbol

    def _check_inputs(self, apart: Collection[str]) -> None:
        for name in sorted(apart):
            raise CompileError(
                Diagnostic(
                    f"{self.name}: {name} is a tensor in one recording, and none in another",
                    expected="the same tensors in all recordings",
                    hint="compile recordings of each side, and join them with fe.overload",
                )
            )

    def _take(self, name: str, each: Sequence[Recorded]) -> None:
        aligned = self.specialize == "check"
        is_own = name in self.hosts[0].inputs
        named = name if is_own and name not in self.given else self._free_name(name)
        tensor = tensor_over(named, each, self.sizes, aligned=aligned)
        self.given[tensor.name] = tensor
        self.inputs[tensor.name] = each
        if is_own:
            self.launches[0].following.arguments[name] = tensor
            self.renamed[name] = tensor.name
        self._own_memory(tensor, each)

    def _results(self) -> list[Tensor | NoneValue | Given]:
        """The results in order: tensors that are made, which are compact, and places of `values`,
        which the call gives back."""
        self._check_kinds()
        return [self._result(at) for at in range(len(self.hosts[0].results))]

    def _check_kinds(self) -> None:
        """Raises CompileError unless all recordings return the same kinds of results."""
        kinds = [[_kind(each) for each in host.results] for host in self.hosts]
        require_same(
            self.name,
            "returns",
            kinds,
            "compile recordings of each side, and join them with fe.overload",
        )

    def _result(self, at: int) -> Tensor | NoneValue | Given:
        several, what = [host.results[at] for host in self.hosts], f"{self.name}: result {at}"
        first, launch = several[0], self.launches[0]
        if first is None:
            return NoneValue(self._free_name(f"result_{at}"))
        numbers = [one for one in several if isinstance(one, Plain)]
        if numbers:
            self.values.append(number_given(launch, numbers, what, launch.following.logs))
            return GIVEN
        each = [one for one in several if isinstance(one, Recorded)]
        first, shown = each[0], [one for host in self.hosts if (one := host.shown[at]) is not None]
        where = f"{what} is a part of a tensor"
        for compared, one in zip(launch.following.compared, shown, strict=True):
            compared += [replace(decided, where=where) for decided in one.held]
        if first.storage not in self.hosts[0].made:
            self.values.append(self._of_caller(each, shown, what))
            return GIVEN
        if not all(one.is_compact and one.is_whole for one in each):
            raise CompileError(f"{what} is a part of a tensor: return the whole")
        if first.storage in self.tensors:
            raise CompileError(f"{what} is an earlier result again")
        shape = self._dims([one.shape for one in shown], [one.shape for one in each], what)
        name, is_told = self._free_name(f"result_{at}"), self._is_told(shape)
        tensor = Tensor(name, shape, first.dtype, device=None if is_told else "cuda")
        self._own_memory(tensor, each)
        if is_told:
            return tensor
        self.temporaries.append(tensor)
        self.values.append(MadeByCall(tensor))
        return GIVEN

    def _of_caller(
        self, each: Sequence[Recorded], shown: Sequence[Shown], what: str
    ) -> Tensor | Part:
        """A result that is a tensor of the caller, or a view of one."""
        first = each[0]
        tensor = self.tensors.get(first.storage)
        known = None if tensor is None else self.given.get(tensor.name)
        if tensor is None or known is not tensor or first.dtype is not tensor.dtype:
            raise CompileError(
                Diagnostic(
                    f"{what} is a tensor that the caller has, and no argument",
                    expected="tensors that the host function makes or is given",
                    hint="leave it out, by compile(results=…) with the others, or () for none, or "
                    "in a function around the host function that returns the others",
                )
            )
        for at, one in enumerate(each):
            self._check_owner(at, one.storage, tensor, what)
        if all(one.name is not None for one in shown):
            return tensor
        shape = self._dims([one.shape for one in shown], [one.shape for one in each], what)
        steps = [one.strides for one in shown]
        strides = self._dims(steps, [one.strides for one in each], f"{what}, strides,")
        of_caller = self.origins[first.storage]
        begins = [one.offset - of.offset for one, of in zip(each, of_caller, strict=True)]
        offset = self.launches[0].followed(
            [one.offset for one in shown], tuple(begins), f"where {what} begins"
        )
        return Part(tensor, shape, strides, offset)

    def _is_told(self, shape: Sequence[Dim]) -> bool:
        """Whether tensors tell all of these sizes: a result is allocated only of such sizes."""
        return not any(symbol in self.sizes.numbers for dim in shape for symbol in symbols_of(dim))

    def _shape(self, each: Sequence[Recorded], what: str) -> tuple[Dim, ...]:
        """The sizes of memory that the function allocates: as they were made, else by values."""
        none: Made = ((), ())
        made = [
            host.shapes.get(one.storage, none) for host, one in zip(self.hosts, each, strict=True)
        ]
        pairs = zip(made, each, strict=True)
        if all(sizes and prod(sizes) == prod(one.shape) for (sizes, _), one in pairs):
            ranks = {len(sizes) for sizes, _ in made}
            if len(ranks) == 1:
                return self._dims([trees for _, trees in made], [sizes for sizes, _ in made], what)
        unknown = [[None] * len(one.shape) for one in each]
        return self._dims(unknown, [one.shape for one in each], what)

    def _dims(
        self, trees: Sequence[Sequence[Tree | None]], sizes: Sequence[Sequence[int]], what: str
    ) -> tuple[Dim, ...]:
        """Sizes by how they were made in each recording."""
        return tuple(
            self.launches[0].followed(
                [each[axis] for each in trees],
                tuple(each[axis] for each in sizes),
                f"{what}, dim {axis},",
            )
            for axis in range(len(sizes[0]))
        )

    def _tensor(self, name: str, each: Sequence[Recorded]) -> Tensor:
        """The memory of a view: an input, a result, or a temporary that is made now."""
        first = each[0]
        known = self.tensors.get(first.storage)
        if known is None:
            shape, wholes = self._memory(name, each)
            known = Tensor(self._free_name(name), shape, first.dtype, device="cuda")
            self._own_memory(known, wholes)
            self.temporaries.append(known)
        for at, one in enumerate(each):
            self._check_owner(at, one.storage, known, name)
        origins = self.origins[first.storage]
        if any(_end_of(one, of) > of.reach for one, of in zip(each, origins, strict=True)):
            raise CompileError(
                f"{self.name}: {name} reaches beyond {known.name}, of which it is another view"
            )
        return known

    def _memory(
        self, name: str, each: Sequence[Recorded]
    ) -> tuple[tuple[Dim, ...], Sequence[Recorded]]:
        """The sizes of a temporary, and what it was, where a launch takes it or a part of it."""
        what = f"{self.name}: {name}"
        if all(one.is_whole for one in each):
            return self._shape(each, what), each
        none: Made = ((), ())
        pairs = [*zip(self.hosts, each, strict=True)]
        made = [host.shapes.get(one.storage, none) for host, one in pairs]
        wholes = [one.whole(sizes) for one, (sizes, _) in zip(each, made, strict=True)]
        ranks = {len(sizes) for sizes, _ in made}
        if len(ranks) != 1 or not all(one.is_whole for one in wholes):
            raise CompileError(f"{what} is a part of a temporary: use the whole")
        return self._dims([trees for _, trees in made], [sizes for sizes, _ in made], what), wholes

    def _offset(self, launch: Together, name: str, tensor: Tensor) -> Dim:
        """Where a view begins, in elements of its tensor.  CompileError where nobody knows that for
        another call."""
        each = launch.views[name].each
        pairs = [*zip(each, self.origins[each[0].storage], strict=True)]
        values = tuple(one.offset - of.offset for one, of in pairs)
        same = all(one.dtype.bits == of.dtype.bits for one, of in pairs)
        what = f"{self.name}: where {name} of {launch.kernel.name} begins in {tensor.name}"
        is_begun = min(values) >= 0 and (same or not any(values))
        found = launch.offset(name, values, what) if is_begun else None
        if found is None:
            raise CompileError(
                Diagnostic(
                    f"{self.name}: {name} is a part of {tensor.name} that begins at element "
                    f"{each[0].offset}, which follows from no size",
                    expected="a slice, select, narrow, chunk, split or unbind of a tensor",
                    hint="give it to the host function as a tensor of its own",
                )
            )
        return found

    def _own_memory(self, tensor: Tensor, each: Sequence[Recorded]) -> None:
        """A tensor has this memory in the recordings.  CompileError for that of another one."""
        self.tensors[each[0].storage] = tensor
        self.origins[each[0].storage] = each
        for at, one in enumerate(each):
            owner = self.owners.setdefault((at, one.storage), tensor.name)
            if owner != tensor.name:
                raise CompileError(
                    Diagnostic(
                        f"{self.name}: {owner} and {tensor.name} are the same memory, or parts of "
                        "it, in a recording",
                        expected="arguments that are tensors of their own, and other results",
                        hint="record with clones; callers may give the same tensor twice",
                    )
                )

    def _check_owner(self, at: int, storage: int, tensor: Tensor, name: str) -> None:
        """Raises CompileError for memory that is another tensor's in one of the recordings."""
        owner = self.owners.get((at, storage))
        if owner != tensor.name:
            raise CompileError(
                Diagnostic(
                    f"{self.name}: {name} is {tensor.name} in the first recording, and "
                    f"{owner or 'other memory'} in another",
                    expected="the same tensor in all recordings",
                    hint="compile recordings of each side, and join the functions with fe.overload",
                )
            )

    def _free_name(self, name: str) -> str:
        taken = {*self.given, *(each.name for each in self.tensors.values()), *self.hosts[0].names}
        number = 2
        found = name
        while found in taken:
            found, number = f"{name}_{number}", number + 1
        return found

    def _number(self, launch: Together, name: str, scalar: Scalar) -> Scalar | FloatExpr:
        """The parameter for a number of a launch, or what is computed of parameters."""
        number = launch.numbers()[name]
        if isinstance(number, Free) and number.computed is not None:
            return number.computed
        given_as = self._given_as(launch, name)
        known = launch.following.floats.get(given_as)
        if known is not None:
            return as_float(known)
        own = Scalar(self._free_name(given_as), scalar.dtype)
        self.given[own.name] = own
        return own

    def _given_as(self, launch: Together, name: str) -> str:
        """The parameter of the host function that a number of a launch is: it has its values."""
        if not all(host.is_called for host in self.hosts):
            return name
        values = [each.given[name] for each in launch.launches]
        several = [host.floats for host in self.hosts]
        found = [
            name
            for name in several[0]
            if repr([each.get(name) for each in several]) == repr(values)
        ]
        if len(found) == 1:  # nobody knows how: calls have these values
            leaf = Leaf(found[0], FLOAT)
            launch.following.pin([leaf] * len(values), values, f"{name} of {launch.kernel.name}")
            return found[0]
        if found:
            raise CompileError(
                Diagnostic(
                    f"{self.name}: {name} of {launch.kernel.name} was "
                    f"{', '.join(map(repr, values))}, which is {' and also '.join(found)}",
                    hint="record one more call, in which these are different numbers",
                )
            )
        other = next(each for each in values if repr(each) != repr(values[0]))
        error = CompileError(
            Diagnostic(
                f"{self.name}: {name} of {launch.kernel.name} is {values[0]!r} in one recording "
                f"and {other!r} in another, which is no argument of the host function",
                hint="record it with the same number each time, or give the number as an argument; "
                "of arguments + - * / and math.sqrt are followed, and nothing else",
            )
        )
        raise with_line(error, launch.following.logs)

    # ---- steps ----

    def _fill(self, each: Filled) -> CallingConvention:
        tensor = self.tensors.get(each.storage)
        if tensor is None:
            views = (v for launch in self.launches for v in launch.views.items())
            found = next((v for v in views if v[1].each[0].storage == each.storage), None)
            if found is None:
                raise CompileError(
                    f"{self.name}: a tensor of the caller is filled with {each.value}, which is no "
                    "argument of the host function"
                )
            tensor = self._tensor(found[0], found[1].each)
        for at, other in enumerate(each.others, 1):
            self._check_owner(at, other.storage, tensor, f"what is filled with {each.value}")
        value = each.value if each.tree is None else self._filled_with(each, tensor)
        if isinstance(value, float) and tensor.dtype.kind != "float":  # as PyTorch makes one of it
            value = int(bool(value) if tensor.dtype.kind == "bool" else value)
        return filling(self.name, Fill(tensor, value), archs_of(self.target))

    def _filled_with(self, each: Filled, tensor: Tensor) -> int | float | FloatExpr:
        """The number of a fill that was made of floats of the call."""
        several = (each, *each.others)
        trees, values = [one.tree for one in several], [float(one.value) for one in several]
        following = self.launches[0].following
        found = None
        if tensor.dtype in (specs.Float64, specs.Float32, specs.Float16, specs.BFloat16):
            found = following.real(trees, values)
        if found is not None:
            self.fitting += fitting(found, tensor.dtype)
            return found
        what = f"what fills {tensor.name}"
        following.pin(trees, values, what)
        if len({*map(repr, values)}) > 1:
            raise CompileError(
                Diagnostic(
                    f"{self.name}: {what} is {', '.join(map(repr, values))} in the recordings, "
                    "which follows from no float of the call",
                    expected="the same number in all recordings, or one that is made of arguments "
                    "by + - * / and math.sqrt alone",
                )
            )
        return each.value

    def _launch(self, launch: Together) -> CallingConvention:
        """The step of one launch: a kernel's arguments, over the tensors of the whole."""
        numbers = launch.numbers()
        views = {name: _placeholder(view.tensor) for name, view in launch.views.items()}
        examples: dict[str, Any] = {**views, **launch.examples_of_constants()}
        examples |= {name: example_of(each) for name, each in numbers.items()}
        over = {name: each for name, each in numbers.items() if isinstance(each, specs.IntExpr)}
        examples |= dict.fromkeys(over, example_of(0))
        more = dict(launch.options)
        parts = prepared(launch.launches[0].kernel_object, (), examples, None, launch.config, more)
        grid = launch.grid()
        archs = archs_of(self.target)
        compilation = Compilation(*parts, None, self.specialize, archs, grid, prune=self.prune)
        arguments = self._own(launch, compilation.arguments(), over)
        return compilation.step(arguments)

    def _own(self, launch: Together, arguments: Arguments, over: Mapping[str, Dim]) -> Arguments:
        each = tuple(self._own_argument(launch, one, over) for one in arguments.each)
        signature = Signature(self.name, tuple(self.given.values()))
        return replace(arguments, each=each, signature=signature)

    def _seen(self, launch: Together, view: View, made: bool) -> SeenView | None:
        """What functions of the kernel see of a tensor, if it is not the caller's own."""
        name = view.tensor.name
        if launch.is_given(name):
            return None
        whole = made and all(each.is_whole and each.is_compact for each in view.each)
        ask = partial(launch.is_contiguous, name) if whole else lambda: None
        return SeenView(view.tensor, partial(launch.size, name), ask)

    def _own_argument(self, launch: Together, one: Argument, over: Mapping[str, Dim]) -> Argument:
        match one:
            case PointerArgument(name=name):
                view = launch.views[name]
                tensor = self._tensor(name, view.each)
                read_as = view.tensor.dtype if view.tensor.dtype is not tensor.dtype else None
                made = tensor.name not in self.given
                hint: Hint | None = 16 if view.tensor.align >= 16 else None
                part = self._seen(launch, view, made)
                offset = self._offset(launch, name, tensor)
                how: Any = {"made": made, "read_as": read_as, "view": part, "offset": offset}
                return PointerArgument(name, tensor, hint, **how)
            case IntegerArgument(name=name) if name in over:
                return IntegerArgument(name, over[name])
            case NumberArgument(name=name, scalar=Scalar() as scalar):
                return NumberArgument(name, self._number(launch, name, scalar))
        return one


def _end_of(view: Recorded, of: Recorded) -> int:
    """The bytes of memory from the beginning of a tensor up to the end of a view of it."""
    before = view.offset * view.dtype.bits - of.offset * of.dtype.bits
    return before // 8 + view.reach if view.reach else 0


def _kind(result: Recorded | Plain | None) -> str:
    if result is None:
        return "None"
    if isinstance(result, Plain):
        return f"a value of type {result.kind}"
    return f"a tensor of {result.dtype.name} with {len(result.shape)} dims"


def _placeholder(tensor: Tensor) -> Tensor:
    """An example whose sizes are its own: the argument is one over the tensors of the whole."""
    shape = tuple(specs.sym_int() for _ in tensor.shape)
    return Tensor(tensor.name, shape, tensor.dtype)
