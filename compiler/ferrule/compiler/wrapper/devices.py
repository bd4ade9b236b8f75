"""The device of a call, and the caller's current stream on it.

The device is that of the first tensor that is not on the CPU, at any depth, or else the device in
the spec of an env stream; a launch falls back to the first device parameter.  If there is none of
these, the call has no device, and an env stream is null.  This code runs after the tensors were
accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ferrule.compiler.wrapper.items import inside, is_one_of
from ferrule.compiler.wrapper.tensors import dltensor
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR
from ferrule.runtime.llvm.writer import NULL, Block, Value, Writer, i32
from ferrule.specs import (
    DEVICE_CODES,
    HOST_DEVICES,
    STREAM_DEVICES,
    Param,
    Signature,
    Tensor,
)
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import EnvStream, Optional, Tuple, Union, type_indices


@dataclass(frozen=True, slots=True)
class _Site:
    """A tensor on a GPU: the positions that lead to it, and the guards on the way.

    `guards` are the positions, from the outside, that can hold something else: the number of
    positions that lead there, and the type indices of values that lead to the tensor.
    """

    spec: Tensor
    path: tuple[int, ...]
    guards: tuple[tuple[int, frozenset[int]], ...] = ()


def env_streams(writer: Writer, signature: Signature, args: Value) -> dict[str, Value]:
    """The values of the signature's env streams, by name."""
    sites = _all_sites(signature)
    return {
        param.name: _stream(writer, param, sites, args)
        for param in signature.params
        if isinstance(param, EnvStream)
    }


def device_index(writer: Writer, signature: Signature, args: Value) -> Value:
    """The index of the call's device, i32; -1 if it has none."""
    named = [param.device_id for param in signature.params if isinstance(param, EnvStream)]
    usual = next((index for index in named if index is not None), -1)
    device = _Device(writer, DEVICE_CODES["cuda"], usual)
    _find(writer, _all_sites(signature), args, device)
    return writer.load(device.index, "i32")


def index_or_named(writer: Writer, index: Value, bits: Value) -> Value:
    """The index, or, if it is -1 and `bits` is a GPU of a device parameter, that GPU's index."""
    code = writer.cast("trunc", bits, "i32")
    above = writer.binary("lshr", bits, writer.const_i64(32))
    is_gpu = writer.icmp("eq", code, i32(DEVICE_CODES["cuda"]))
    unnamed = writer.icmp("slt", index, i32(0))
    wanted = writer.binary("and", is_gpu, unnamed)
    return writer.select(wanted, writer.cast("trunc", above, "i32"), index)


def _all_sites(signature: Signature) -> list[_Site]:
    return [
        site
        for position, param in enumerate(signature.arguments)
        for site in _sites(param, (position,), ())
    ]


def _sites(
    param: Param, path: tuple[int, ...], guards: tuple[tuple[int, frozenset[int]], ...]
) -> Iterator[_Site]:
    match param:
        case Tensor(device=device) if device not in HOST_DEVICES:
            yield _Site(param, path, guards)
        case Tuple(items=items):
            for position, item in enumerate(items):
                yield from _sites(item, (*path, position), guards)
        case Optional(item=item):
            yield from _sites(item, path, (*guards, (len(path), type_indices(item) - {0})))
        case Union(members=members):
            taken: frozenset[int] = frozenset()
            for member in members:
                own = type_indices(member) - taken
                taken |= own
                yield from _sites(member, path, (*guards, (len(path), own)))
        case _:
            return


def _stream(writer: Writer, param: EnvStream, sites: list[_Site], args: Value) -> Value:
    """Get the stream after the device is known."""
    usual = param.device or (sites[0].spec.device if sites else None)
    usual = STREAM_DEVICES.get(usual or "", usual)
    if usual is None or (usual == "cpu" and not sites):
        return NULL
    device = _Device(writer, DEVICE_CODES[usual], param.device_id or 0)
    _find(writer, sites, args, device)
    code, index = writer.load(device.code, "i32"), writer.load(device.index, "i32")
    return writer.call_c("TVMFFIEnvGetStream", [code, index])


def _find(writer: Writer, sites: list[_Site], args: Value, device: _Device) -> None:
    """Find the first tensor that is present."""
    with writer.apart() as last:
        behind = writer.block("stream")
    for site in sites:
        _visit(writer, site, args, device, behind)
        if not site.guards:
            break
    else:
        writer.branch(behind)
    writer.arrange(last)
    writer.at(behind)


class _Device:
    """Memory for the device that was found, with a default at first."""

    def __init__(self, writer: Writer, code: int, index: int) -> None:
        self.code: Final = writer.alloca("i32", name="device")
        self.index: Final = writer.alloca("i32", name="device.index")
        writer.store_at_entry(i32(code), self.code)
        writer.store_at_entry(i32(index), self.index)


def _visit(writer: Writer, site: _Site, args: Value, device: _Device, behind: Block) -> None:
    """If a tensor is present, store its device and go to `behind`; else go on."""
    other = None
    if site.guards:
        with writer.apart() as last:
            other = writer.block("other")
    at = writer.index(args, ANY, site.path[0])
    for depth, position in enumerate(site.path[1:], 1):
        _require(writer, site, depth, at, other)
        at = inside(writer, at, position)
    _require(writer, site, len(site.path), at, other)
    named = site.spec.device or "cpu"
    writer.store(i32(DEVICE_CODES[STREAM_DEVICES.get(named, named)]), device.code)
    index = writer.load_field(dltensor(writer, at), DLTENSOR, "device_id")
    writer.store(index, device.index)
    writer.branch(behind)
    if other is not None:
        writer.arrange(last)
        writer.at(other)


def _require(writer: Writer, site: _Site, depth: int, at: Value, other: Block | None) -> None:
    """Go on only if the value at this position leads to the tensor."""
    for place, kinds in site.guards:
        if place == depth and other is not None:
            there = writer.block("there")
            index = writer.load_field(at, ANY, "type_index")
            writer.cond_branch(is_one_of(writer, index, kinds), there, other)
            writer.at(there)
