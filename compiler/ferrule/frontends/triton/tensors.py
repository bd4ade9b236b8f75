"""The tensors among a kernel's examples, and the symbols of their sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.arguments import Descriptor, Output
from ferrule.frontends.triton.types import TypeText, read_type
from ferrule.specs import Dim, Param, SupportsSpec, Sym, Tensor
from ferrule.specs.changing import changed
from ferrule.specs.expr import is_dim, sym_int64, symbols_of

REFERENCE: Final = re.compile(r"(\w+)\.(shape|stride|strides)\[(\d+)\]|(\w+)\.(numel)(?:\(\))?")
"""What names a size of a tensor: "x.shape[0]", "x.strides[1]", "x.numel"."""


@dataclass(slots=True)
class Tensors:
    """The tensors of a kernel as its examples say.

    `symbols` are the named symbols of texts; `specs` the specs of tensors by parameter.
    """

    kernel: str
    symbols: dict[str, Sym] = field(default_factory=dict)
    specs: dict[str, Tensor] = field(default_factory=dict)

    def know_symbols(self, given: Mapping[str, Any]) -> None:
        """The named symbols of all examples; one in a text is new unless an example has it."""
        for name, example in given.items():
            inner = example.example if isinstance(example, Descriptor) else example
            if isinstance(inner, SupportsSpec) or isinstance(inner, Tensor):
                for dim in _dims(spec_of(name, inner)):
                    self._know(dim)
            elif is_dim(inner):
                self._know(inner)
        texts = list(self._texts(given))
        for words, make in (("shape", specs.sym_int32), ("strides", specs.sym_int64)):
            for text in texts:
                for word in getattr(text, words) or ():
                    if specs.expr.is_name(word) and word not in self.symbols:
                        self.symbols[word] = make(symbol=word)

    def _know(self, dim: Dim) -> None:
        for symbol in symbols_of(dim):
            if symbol.name is not None:
                self.symbols.setdefault(symbol.name, symbol)

    def _texts(self, given: Mapping[str, Any]) -> Iterator[TypeText]:
        for name, example in given.items():
            inner = example.example if isinstance(example, Descriptor) else example
            if isinstance(inner, str) and "*" in inner:
                yield read_type(inner, self.what(name))

    def _dim(self, word: str) -> Dim:
        if word.isdecimal():
            return int(word)
        return self.symbols[word] if word else specs.sym_int32()

    def read(self, name: str, example: Any) -> None:
        """Take in an example, if it is a tensor."""
        inner = example.example if isinstance(example, Descriptor) else example
        if isinstance(inner, str) and "*" in inner:
            self.specs[name] = self._tensor_of_text(name, read_type(inner, self.what(name)))
        elif isinstance(inner, Tensor) or isinstance(inner, SupportsSpec):
            spec = spec_of(name, inner)
            if isinstance(spec, Tensor):
                self.specs[name] = spec
        elif hasattr(type(inner), "__dlpack__") and not isinstance(inner, Output):
            self.specs[name] = _of_real_tensor(name, inner)
        elif isinstance(example, Descriptor):
            raise CompileError(f"{self.what(name)} is no tensor: {inner!r}")

    def _tensor_of_text(self, name: str, text: TypeText) -> Tensor:
        shape = [self._dim(word) for word in text.shape]
        strides = None if text.strides is None else [self._dim(word) for word in text.strides]
        align = max(16, text.dtype.itemsize) if text.hint == "16" else None
        return Tensor(name, shape, text.dtype, strides=strides, align=align)

    def read_outputs(self, examples: Mapping[str, Any]) -> None:
        """Take in the tensors that the function makes."""
        outputs = [(n, e) for n, e in examples.items() if isinstance(e, Output)]
        for name, example in outputs:
            source = self._source(name, example)
            shape = source.shape if example.shape is None else self._shape(name, example.shape)
            dtype = example.dtype or source.dtype
            aligned = source.align if source.align >= 16 else None
            self.specs[name] = Tensor(name, shape, dtype, align=aligned)

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
            if isinstance(size, str) and size not in self.symbols:
                raise CompileError(
                    Diagnostic(
                        f"{self.what(name)} has the size {size!r}, which no tensor has",
                        expected=", ".join(self.symbols) or "a number",
                    )
                )
            found.append(self.symbols[size] if isinstance(size, str) else size)
        return tuple(found)

    def referred(self, name: str, text: str, found: re.Match[str]) -> Dim:
        """The size that a `REFERENCE` names."""
        tensor = self.specs.get(found[1] or found[4])
        axis = int(found[3] or 0)
        if tensor is None or (found[3] is not None and axis >= len(tensor.shape)):
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
        if found[5]:
            return tensor.numel
        return tensor.shape[axis] if found[2] == "shape" else tensor.strides[axis]

    def is_known(self, dim: Dim) -> bool:
        """Whether the tensors tell the value of a size."""
        known = {
            symbol
            for tensor in self.specs.values()
            for each in _dims(tensor)
            for symbol in symbols_of(each)
        }
        return all(symbol in known for symbol in symbols_of(dim))

    def what(self, name: str) -> str:
        """How an error calls the example of a parameter."""
        return f"{self.kernel}: the example of {name!r}"


def spec_of(name: str, example: Any) -> Param:
    """The spec of an example under the name of a parameter."""
    if isinstance(example, get_args(Param)):
        return _renamed(example, name)
    spec: Param = example.__ferrule_spec__(name)
    return spec


def _renamed(spec: Param, name: str) -> Param:
    """The same spec under another name."""
    return spec if spec.name == name else changed(spec, name=name)


def _dims(spec: Param) -> tuple[Dim, ...]:
    return (*spec.shape, *spec.strides) if isinstance(spec, Tensor) else ()


def _of_real_tensor(name: str, tensor: Any) -> Tensor:
    """The spec of a real tensor: its dtype and rank, any sizes; aligned to 16 bytes if it is."""
    from ferrule.runtime.views import view_of

    try:
        view = view_of(tensor)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise CompileError(
            f"the tensor for the parameter {name!r} cannot be taken through DLPack: {error}"
        ) from None
    shape = [specs.sym_int32() for _ in view.shape]
    order = tuple(reversed(range(len(shape))))
    if view.strides == specs.compact_strides(view.shape, order):
        strides = specs.compact_strides(shape, order)
    else:
        strides = tuple(1 if step == 1 else sym_int64() for step in view.strides)
    align = max(16, view.dtype.itemsize) if view.address % 16 == 0 else None
    return Tensor(name, shape, view.dtype, strides=strides, align=align)
