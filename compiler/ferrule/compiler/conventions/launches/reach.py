"""Checks whether a GPU can read the memory of a launch's arguments, as far as specs show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ferrule.compiler.conventions.arguments import (
    VALUES,
    CArgument,
    HostArgument,
    PointerCast,
)
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.conventions.launches.tensor_maps import TensorMap
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Data, Tensor
from ferrule.specs import params as kinds

READ_BY_GPUS: Final = (None, "cuda", "cuda_host", "cuda_managed")
"""The devices of tensors that GPUs can read, as in `specs.Tensor`."""


def check_reach(kernel: str, argument: CArgument) -> None:
    """Raise CompileError for an argument with an address of memory that no GPU can read."""
    found = next(_host_arguments(argument), None)
    if found is not None:
        raise CompileError(
            Diagnostic(
                f"kernel {kernel} gets a struct with a {type(found).__name__} in it, which is an "
                f"address in the memory of the host: no kernel of CUDA can read that",
                hint="let the kernel take that struct by value, or the call a tensor on the GPU",
            )
        )
    if _has_text(argument):
        raise CompileError(
            Diagnostic(
                f"kernel {kernel} gets the address of the text {getattr(argument, 'name', '')!r}, "
                f"which is in the memory of the host: no kernel of CUDA can read that",
                hint="let the call take a tensor of its bytes on the GPU",
            )
        )
    for tensor in _tensors(argument):
        if tensor.device not in READ_BY_GPUS:
            raise CompileError(
                Diagnostic(
                    f"kernel {kernel} gets the address of {tensor.name!r}, whose device is "
                    f"{tensor.device!r}: no kernel of CUDA can read that",
                    hint="give it no device, or 'cuda', or 'cuda_host' for pinned memory, or "
                    "'cuda_managed'; where GPUs read all memory of the system, let the call take "
                    "its address, a Pointer",
                )
            )


def _host_arguments(argument: CArgument) -> Iterator[HostArgument]:
    match argument:
        case Struct(fields=fields):
            for each in fields:
                yield from _host_arguments(each)
        case _ if not isinstance(argument, VALUES) and isinstance(argument, HostArgument):
            yield argument


def _has_text(argument: object) -> bool:
    match argument:
        case kinds.WithTraits(traits=traits):
            return traits.payload is kinds.Payload.BYTES
        case kinds.Optional(item=item):
            return _has_text(item)
        case kinds.Tuple(items=inner) | kinds.Union(members=inner) | Struct(fields=inner):
            return any(map(_has_text, inner))
    return False


def _tensors(argument: CArgument) -> Iterator[Tensor]:
    match argument:
        case Data(tensor=tensor) | TensorMap(tensor=tensor):
            yield tensor
        case PointerCast(value=value):
            yield from _tensors(value)
        case Tensor():
            yield argument
        case kinds.Optional(item=item):
            yield from _tensors(item)
        case kinds.Tuple(items=inner) | kinds.Union(members=inner):
            for each in inner:
                yield from _tensors(each)
        case Struct(fields=fields):
            for field in fields:
                yield from _tensors(field)
