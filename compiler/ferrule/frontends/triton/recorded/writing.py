"""A recorded launch as the text of a call of `compile`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.grids import GridOfVersions
from ferrule.frontends.triton.jobs import ByPosition
from ferrule.frontends.triton.recorded.together import Together
from ferrule.frontends.triton.recorded.views import Free
from ferrule.frontends.triton.types import pointer_type
from ferrule.specs import Dim, Sym, Tensor, symbols_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Compound, format_dim

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes one launch."""

    launch: Together

    def text(self) -> str:
        """The call of `compile`, to start from."""
        launch = self.launch
        numbers = launch.numbers()
        examples = [*self._tensors(), *self._numbers(numbers)]
        given = launch.examples_of_constants().items()
        constants = [f'"{name}": {_value(value)}' for name, value in given]
        lines = [f"{launch.kernel.name}", *_mapping("signature", examples)]
        lines += _mapping("constexprs", constants) if constants else []
        lines += [f"grid=lambda meta: ({', '.join(self._grid(numbers))},)"]
        lines += [f"{name}={value!r}" for name, value in launch.options.items()]
        if launch.kernel.configs:
            lines.append(f"config={0 if launch.config is None else repr(launch.config)}")
        body = "".join(f"{_INDENT}{each},\n" for each in lines)
        return f"{''.join(self._conditions())}frontend.compile(\n{body})"

    def _conditions(self) -> Iterator[str]:
        """What the host function decides by sizes, as comments: conditions are no texts."""
        for each in self.launch.following.requirements():
            yield f"# requires {each.text({})}: {each.message}\n"

    def _tensors(self) -> Iterator[str]:
        said: set[Sym] = set()
        for name, view in self.launch.views.items():
            yield f'"{name}": "{_tensor(view.tensor, said)}"'

    def _numbers(self, numbers: Mapping[str, Any]) -> Iterator[str]:
        for name, number in numbers.items():
            match number:
                case Free():
                    yield f'"{name}": "fp32"'
                case Sym():
                    yield f'"{name}": "{number}"'
                case bool() | int() | float():
                    yield f'"{name}": {number!r}'
                case _:
                    yield f'"{name}": lambda sig: {self._over(number, "sig[{}]")}'

    def _grid(self, numbers: Mapping[str, Any]) -> Iterator[str]:
        """The sizes of the grid; a constant that is a block of the kernel has its name."""
        known = [name for name, value in self.launch.constants().items() if type(value) is int]
        blocks = {self.launch.constants()[name]: name for name in known}
        of_numbers = {number: name for name, number in numbers.items() if isinstance(number, Sym)}
        grid = self.launch.grid()
        if isinstance(grid, GridOfVersions):
            raise CompileError(
                f"{self.launch.kernel.name}: the grid is another one for each config of "
                f"{self.launch.config!r}: write the text of one config, by config="
            )
        for dim in grid:
            if isinstance(dim, int):
                yield f"frontend.fixed({int(dim)})"
                continue
            text = self._over(dim, "meta[{}]", of_numbers)
            for value, name in blocks.items():
                text = re.sub(rf"(?<=, ){value}(?=\))", f'meta["{name}"]', text)
            yield text

    def _over(self, dim: Dim, tensor: str, numbers: Mapping[Sym, str] | None = None) -> str:
        """An expression over sizes of tensors, or numbers of the launch."""
        names = {}
        for symbol in symbols_of(dim):
            if numbers and symbol in numbers:
                names[symbol] = f'meta["{numbers[symbol]}"]'
            else:
                name, place = self._place(symbol)
                names[symbol] = tensor.format(f'"{name}"') + place
        text = format_dim(dim, names)
        return text.replace("ceil_div(", "frontend.ceil_div(")

    def _place(self, symbol: Sym) -> tuple[str, str]:
        for name, view in self.launch.views.items():
            for word, dims in (("shape", view.tensor.shape), ("strides", view.tensor.strides)):
                if symbol in dims:
                    return name, f".{word}[{dims.index(symbol)}]"
        return str(symbol), ""


def _tensor(tensor: Tensor, said: set[Sym]) -> str:
    """The text of a tensor; bounds are said where a symbol is first met."""

    def word(dim: Dim) -> str:
        if isinstance(dim, Compound):  # texts have no expressions: a size of its own
            return f"{tensor.name}_{[*tensor.shape, *tensor.strides].index(dim)}"
        if not isinstance(dim, Sym) or dim in said or not dim.bounds:
            return format_dim(dim, {})
        said.add(dim)
        low, high = (each is not None for each in (dim.min, dim.max))
        return f"{f'{dim.min}<=' * low}{dim}{f'<={dim.max}' * high}"

    shape = ", ".join(map(word, tensor.shape))
    compact = tensor.strides == Tensor("t", tensor.shape, tensor.dtype).strides
    strides = "" if compact else ": " + ", ".join(map(word, tensor.strides))
    aligned = ":16" if tensor.align >= 16 else ""
    return f"{pointer_type(tensor.dtype, tensor.name)}[{shape}{strides}]{aligned}"


def _mapping(name: str, entries: list[str]) -> list[str]:
    inner = "".join(f"{_INDENT * 2}{each},\n" for each in entries)
    return [f"{name}={{\n{inner}{_INDENT}}}"]


def _value(value: Any) -> str:
    if isinstance(value, ByPosition):
        return f"frontend.by_position({_value(value.value)})"
    module = type(value).__module__.partition(".")[0]
    if module == "triton":
        return f"tl.{value}" if type(value).__name__ == "dtype" else getattr(value, "__name__", "…")
    return repr(value)
