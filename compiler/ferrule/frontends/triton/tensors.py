"""The tensors among a kernel's examples, and the symbols of their sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import Seen, SeenSizes, is_real, spec_of
from ferrule.frontends.strides import Read, watched
from ferrule.frontends.triton.arguments import Fixed, Output, inner
from ferrule.frontends.triton.types import TypeText, Word, read_type, read_word
from ferrule.specs import Dim, Param, SupportsSpec, Sym, Tensor
from ferrule.specs.copies import with_exact_dims
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, symbols_of

REFERENCE: Final = re.compile(
    r"(?P<of>\w+)\.(?:(?P<numel>numel)(?:\(\))?|"
    r"(?:(?P<shape>shape|size)|stride|strides)(?:\[(?P<axis>-?\d+)\]|\((?P<dim>-?\d+)\)))"
)
"""A size of a tensor by name: "x.shape[0]", "x.strides[-1]", "x.numel", and in PyTorch's
notation."""


@dataclass(slots=True)
class Tensors:
    """The tensors of a kernel, from its examples.

    `symbols` are the named symbols in texts; `specs` the specs of tensors by parameter, `sizes`
    those of real tensors; `made` are the parameters whose tensors the function allocates.
    """

    kernel: str
    symbols: dict[str, Sym] = field(default_factory=dict)
    specs: dict[str, Tensor] = field(default_factory=dict)
    sizes: SeenSizes = field(default_factory=SeenSizes)
    made: set[str] = field(default_factory=set)

    def know_sizes(self, examples: Iterable[Any], constants: Iterable[int]) -> None:
        """Collects the sizes of the real tensors among all examples; `constants` are compiled
        in."""
        given = list(examples)
        told = [each.value for each in given if isinstance(each, Fixed)]
        integers = (each for each in told if isinstance(each, int) and not isinstance(each, bool))
        self.sizes = SeenSizes.of(map(inner, given), integers, constants)

    def know_symbols(self, given: Mapping[str, Any]) -> None:
        """Collects the named symbols of all examples; a name in a text is a new symbol unless an
        example has it."""
        for name, given_one in given.items():
            example = inner(given_one)
            if isinstance(example, SupportsSpec) or isinstance(example, Tensor):
                for dim in _dims(spec_of(name, example, rename=True)):
                    self._know(dim)
            elif is_dim(example):
                self._know(example)
        texts = list(self._texts(given))
        for words, width in (("shape", 32), ("strides", 64)):
            said: dict[str, Word] = {}
            for text in texts:
                for each in map(read_word, getattr(text, words) or ()):
                    if each is not None:
                        said[each.name] = self._agreeing(said.get(each.name), each)
            for word in said.values():
                self._know_word(word, width)

    def _agreeing(self, known: Word | None, word: Word) -> Word:
        """What two texts say of a size; one may leave its bounds to the other."""
        if known is None or known == Word(known.name):
            return word
        if word not in (known, Word(word.name)):
            raise CompileError(
                f"{self.kernel}: the size {word.name!r} has different bounds in two texts"
            )
        return known

    def _know_word(self, word: Word, width: int) -> None:
        known = self.symbols.get(word.name)
        if known is not None:
            if word not in (Word(word.name), Word(word.name, known.min, known.max)):
                raise CompileError(
                    f"{self.kernel}: the size {word.name!r} has other bounds in a text than in "
                    f"another example: say them once"
                )
            return
        try:
            self.symbols[word.name] = specs.sym_int(
                width, min=word.min, max=word.max, symbol=word.name
            )
        except ValueError as error:
            raise CompileError(f"{self.kernel}: the size {word.name!r}: {error}") from None

    def _know(self, dim: Dim) -> None:
        for symbol in symbols_of(dim):
            if symbol.name is not None:
                self.symbols.setdefault(symbol.name, symbol)

    def _texts(self, given: Mapping[str, Any]) -> Iterator[TypeText]:
        for name, example in given.items():
            text = inner(example)
            if isinstance(text, str) and "*" in text:
                yield read_type(text, self.what(name))

    def _dim(self, word: str) -> Dim:
        if word.isdecimal():
            return int(word)
        named = read_word(word)
        return specs.sym_int32() if named is None else self.symbols[named.name]

    def read(self, name: str, example: Any) -> None:
        """Records an example if it is a tensor."""
        tensor = inner(example)
        if isinstance(tensor, str) and "*" in tensor:
            self.specs[name] = self._tensor_of_text(name, read_type(tensor, self.what(name)))
        elif isinstance(tensor, Tensor | SupportsSpec | Seen) or is_real(tensor):
            spec = spec_of(name, tensor, rename=True, sizes=self.sizes)
            if isinstance(spec, Tensor):
                self.specs[name] = spec
        if tensor is not example and name not in self.specs and not isinstance(tensor, Output):
            raise CompileError(f"{self.what(name)} is no tensor: {tensor!r}")

    def _tensor_of_text(self, name: str, text: TypeText) -> Tensor:
        shape = [self._dim(word) for word in text.shape]
        strides = None if text.strides is None else [self._dim(word) for word in text.strides]
        align = max(16, text.dtype.itemsize) if text.hint == "16" else None
        try:
            return Tensor(
                name, shape, text.dtype, strides=strides, align=align, read_only=text.read_only
            )
        except ValueError as error:
            raise CompileError(f"{self.what(name)} is no tensor that can be: {error}") from None

    def read_outputs(self, examples: Mapping[str, Any]) -> None:
        """Records the tensors that the function allocates."""
        found = [(name, inner(example)) for name, example in examples.items()]
        outputs = [(name, example) for name, example in found if isinstance(example, Output)]
        self.made.update(name for name, _ in outputs)
        for name, example in outputs:
            source = self._source(name, example)
            shape = source.shape if example.shape is None else self._shape(name, example.shape)
            dtype = example.dtype or source.dtype
            aligned = source.align if source.align >= 16 else None
            try:
                self.specs[name] = Tensor(name, shape, dtype, align=aligned)
            except (ValueError, TypeError) as error:
                raise CompileError(f"{self.what(name)} is no tensor that can be: {error}") from None

    def _source(self, name: str, example: Output) -> Tensor:
        if example.source is None:
            assert example.shape is not None and example.dtype is not None
            return Tensor(name, (), example.dtype, align=max(16, example.dtype.itemsize))
        if example.source not in self.specs:
            raise CompileError(
                Diagnostic(
                    f"{self.what(name)} is to be like {example.source!r}, which is no tensor",
                    expected=", ".join(self.specs) or "there is no tensor at all",
                )
            )
        return self.specs[example.source]

    def _shape(self, name: str, shape: tuple[Dim | str, ...]) -> tuple[Dim, ...]:
        found = []
        for size in shape:
            dim = self.symbols.get(size) if isinstance(size, str) else size
            if dim is None or not self.is_known(dim):
                raise CompileError(
                    Diagnostic(
                        f"{self.what(name)} has the size {str(size)!r}, which no tensor has",
                        expected=", ".join(self._known_names()) or "a number",
                        hint="a tensor that the function makes has the sizes of others: where a "
                        "number of the call says how long it is, callers give the tensor",
                    )
                )
            found.append(dim)
        return tuple(found)

    def _known_names(self) -> list[str]:
        return [name for name, symbol in self.symbols.items() if self.is_known(symbol)]

    def know_numbers(self, examples: Iterable[Any]) -> None:
        """Records the strides of callers' tensors that examples name: the kernel is given them as
        numbers, also in dims of size 1."""
        texts = (text.replace(" ", "") for text in examples if isinstance(text, str))
        for found in filter(None, map(REFERENCE.fullmatch, texts)):
            tensor = self.specs.get(found["of"])
            if tensor is None or found["numel"] or found["shape"] or found["of"] in self.made:
                continue
            axis, rank = int(found["axis"] or found["dim"]), len(tensor.shape)
            if -rank <= axis < rank:
                self.take_strides([(found["of"], axis % rank)])

    def watched(self, read: set[Read]) -> Iterator[Tensor]:
        """The tensors for a function; the strides that it reads come into `read`."""
        for name, tensor in self.specs.items():
            yield watched(tensor, partial(_note, read, name))

    def take_strides(self, read: Collection[Read]) -> None:
        """Records strides of callers' tensors that are numbers of the call."""
        for name, axis in read:
            if name not in self.made:
                self.specs[name] = with_exact_dims(self.specs[name], [axis])

    def referred(self, name: str, text: str, found: re.Match[str]) -> Dim:
        """The size to which a `REFERENCE` refers."""
        tensor = self.specs.get(found["of"])
        axis = None if found["numel"] else int(found["axis"] or found["dim"])
        rank = 0 if tensor is None else len(tensor.shape)
        if tensor is None or (axis is not None and not -rank <= axis < rank):
            raise CompileError(
                Diagnostic(
                    f"{self.what(name)} is {text!r}, which there is not",
                    expected=", ".join(
                        f"{each.name}.shape[0…{len(each.shape) - 1}]"
                        for each in self.specs.values()
                        if each.shape
                    ),
                )
            )
        if axis is None:
            return tensor.numel
        return tensor.shape[axis] if found["shape"] else tensor.strides[axis]

    def is_known(self, dim: Dim) -> bool:
        """Whether the value of a size follows from the tensors."""
        known = {
            symbol
            for tensor in self.specs.values()
            for each in _dims(tensor)
            for symbol in symbols_of(each)
        }
        return all(symbol in known for symbol in symbols_of(dim))

    def what(self, name: str) -> str:
        """The name of a parameter's example in errors."""
        return f"{self.kernel}: the example of {name!r}"


def _note(read: set[Read], name: str, axis: int) -> None:
    read.add((name, axis))


def _dims(spec: Param) -> tuple[Dim, ...]:
    return (*spec.shape, *spec.strides) if isinstance(spec, Tensor) else ()
