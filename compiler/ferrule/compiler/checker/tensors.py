"""Handlers of the rows about tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.checker.format import Op
from ferrule.compiler.checker.frame import Frame
from ferrule.compiler.checker.reports import Said
from ferrule.runtime.llvm.layouts import DLTENSOR, I1, I32, I64


def _field(frame: Frame, name: str) -> ir.Value:
    return frame.emitter.load_field(frame.get("context.tensor"), DLTENSOR, name)


def _dltensor(frame: Frame) -> None:
    given = frame.build.not_(frame.emitter.is_null(frame.payload("v_ptr")))
    frame.check(given, Said.NULL_TENSOR)
    frame.go_on()


def _ndim(frame: Frame) -> None:
    build, wanted = frame.build, frame.operand("b")
    ndim = build.sext(_field(frame, "ndim"), I64)
    frame.check(frame.equal(ndim, wanted), Said.NDIM, wanted=wanted, actual=ndim)
    missing = build.and_(
        frame.emitter.is_null(_field(frame, "shape")), build.not_(frame.equal(ndim, 0))
    )
    frame.check(build.not_(missing), Said.NULL_SHAPE)
    frame.go_on()


def _dtype(frame: Frame) -> None:
    build, loose = frame.build, frame.operand32("kind")
    found = build.or_(_field(frame, "dtype"), loose)
    ok = frame.equal(found, build.or_(frame.operand32("b"), loose))
    frame.check(ok, Said.DTYPE)
    frame.go_on()


def _device(frame: Frame) -> None:
    build, wanted = frame.build, frame.operand("b")
    found = build.zext(_field(frame, "device_type"), I64)
    is_known = build.icmp_unsigned("<", found, ir.Constant(I64, 64))
    place = build.and_(found, ir.Constant(I64, 63))
    taken = build.trunc(build.lshr(wanted, place), I1)
    frame.check(build.and_(is_known, taken), Said.DEVICE)
    frame.go_on()


def _device_id(frame: Frame) -> None:
    wanted = frame.operand("b")
    actual = frame.build.sext(_field(frame, "device_id"), I64)
    frame.check(frame.equal(actual, wanted), Said.DEVICE_ID, wanted=wanted, actual=actual)
    frame.go_on()


def _same_device(frame: Frame) -> None:
    build, actual, first = frame.build, _field(frame, "device_id"), frame.get("device_id")
    owner = frame.get("device_owner")
    with frame.emitter.if_then(frame.equal(owner, 0)):
        frame.set("device_id", actual)
        frame.set("device_owner", frame.operand32("a"))
        frame.go_on()
    shown = {"wanted": build.sext(first, I64), "actual": build.sext(actual, I64)}
    frame.check(frame.equal(actual, first), Said.SAME_DEVICE, owner=owner, **shown)
    frame.go_on()


def _hint(frame: Frame) -> None:
    frame.set("context.order", frame.operand32("kind"))
    frame.set("context.hint", frame.operand32("a"))
    frame.go_on()


def _data(frame: Frame) -> None:
    data = frame.build.ptrtoint(_field(frame, "data"), I64)
    frame.number(frame.build.add(data, _field(frame, "byte_offset")))


def _check_multiple(frame: Frame, said: Said) -> None:
    build, step, number = frame.build, frame.operand("b"), frame.get("number")
    rest = build.and_(number, build.sub(step, frame.emitter.const_i64(1)))
    frame.check(frame.equal(rest, 0), said, wanted=step, actual=number)
    frame.go_on()


def _aligned_data(frame: Frame) -> None:
    _check_multiple(frame, Said.ALIGNMENT)


def _aligned(frame: Frame) -> None:
    _check_multiple(frame, Said.POINTER_ALIGNMENT)


def if_empty(frame: Frame, value: ir.Value, otherwise: ir.Value) -> ir.Value:
    """A number, i32, if the tensor has no elements, which is if one of its sizes is 0; else another
    one."""
    emitter = frame.emitter
    shape, found = _field(frame, "shape"), emitter.alloca(I32, name="empty")
    emitter.store(otherwise, found)
    with emitter.loop(_field(frame, "ndim")) as i:
        size = emitter.load(emitter.index(shape, I64, frame.build.sext(i, I64)), I64)
        with emitter.if_then(frame.equal(size, 0)):
            emitter.store(value, found)
    return emitter.load(found, I32)


def _elements(frame: Frame) -> None:
    with frame.emitter.if_then(frame.build.not_(frame.emitter.is_null(_field(frame, "data")))):
        frame.go_on()
    empty = if_empty(frame, frame.emitter.const_i32(1), frame.emitter.const_i32(0))
    frame.check(frame.build.icmp_signed("!=", empty, frame.emitter.const_i32(0)), Said.NULL_DATA)
    frame.go_on()


TENSORS: Final[Mapping[Op, Callable[[Frame], None]]] = MappingProxyType(
    {
        Op.DLTENSOR: _dltensor,
        Op.NDIM: _ndim,
        Op.DTYPE: _dtype,
        Op.DEVICE: _device,
        Op.DEVICE_ID: _device_id,
        Op.SAME_DEVICE: _same_device,
        Op.HINT: _hint,
        Op.DATA: _data,
        Op.ALIGNED_DATA: _aligned_data,
        Op.ALIGNED: _aligned,
        Op.ELEMENTS: _elements,
    }
)
