"""Tensor parameters: decoding a DLTensor and checking it against its spec.

The first of two passes is here (kind, ndim, dtype, device); the second (sizes, strides, alignment,
data) is in `values`, because it needs every symbol's value.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from ferrule.compiler.messages import catalogue
from ferrule.compiler.messages.catalogue import Filling
from ferrule.compiler.messages.parts import DeviceOf, DTypeOf, Message, NdimOf, TypeOf
from ferrule.compiler.messages.support import COMPACT, MOOT, cold_helper
from ferrule.compiler.wrapper.checks import Checks
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I1, I8, I32, I64, PTR, TENSOR_OBJECT
from ferrule.specs import DEVICE_CODES, Int8, Tensor, Uint8

# One load reads both.
assert DLTENSOR.offset("dtype") == DLTENSOR.offset("ndim") + 4


class TensorArgument:
    """Decodes one tensor parameter.  Sizes and strides are loaded when first asked for."""

    def __init__(
        self, signature: str, checks: Checks, position: int, spec: Tensor, at: ir.Value
    ) -> None:
        self.spec = spec
        self.position = position
        self.dl: ir.Value = None
        self._checks = checks
        self._at = at
        self._place: Mapping[str, Filling] = {"argument": position, "signature": signature}
        self._shape: ir.Value = None
        self._strides: ir.Value = None
        self._elements: ir.Value = None
        self._sizes: dict[int, ir.Value] = {}
        self._steps: dict[int, ir.Value] = {}

    @property
    def _emitter(self) -> Emitter:
        return self._checks.emitter

    # ---- first pass ----

    def check_header(self) -> None:
        """Refuse what is no tensor, or one of another ndim, dtype or device."""
        self._decode()
        self._check_ndim_and_dtype()
        self._check_device()

    def _decode(self) -> None:
        """Find the DLTensor: inside a Tensor object, or what a DLTensor pointer points to."""
        emitter, build = self._emitter, self._emitter.builder
        index = emitter.load_field(self._at, ANY, "type_index")
        payload = emitter.load_field(self._at, ANY, "v_ptr")
        inside = emitter.field_ptr(payload, TENSOR_OBJECT, "dl")
        is_object = build.icmp_signed("==", index, emitter.const_i32(int(TypeIndex.TENSOR)))
        start = build.block
        view, behind = emitter.block("view"), emitter.block("tensor")
        emitter.cond_branch(is_object, behind, view)
        emitter.at(view)
        is_view = build.icmp_signed("==", index, emitter.const_i32(int(TypeIndex.DLTENSOR_PTR)))
        self._checks.check(is_view, self._no_tensor(TypeOf(self.position)))
        given = build.icmp_unsigned("!=", payload, emitter.null())
        self._checks.check(given, self._no_tensor("a null DLTensor pointer"))
        end = build.block
        emitter.branch(behind)
        emitter.at(behind)
        self.dl = build.phi(PTR, name=self.spec.name)
        self.dl.add_incoming(inside, start)
        self.dl.add_incoming(payload, end)

    def _no_tensor(self, actual: Filling) -> Message:
        return catalogue.TYPE.fill(self._place, expected="Tensor", actual=actual)

    def _check_ndim_and_dtype(self) -> None:
        emitter, build, spec = self._emitter, self._emitter.builder, self.spec
        both = emitter.load(emitter.field_ptr(self.dl, DLTENSOR, "ndim"), I64, name="kind")
        wanted = len(spec.shape) | spec.dtype.dlpack << 32
        found = both
        if spec.dtype in (Int8, Uint8):  # either is accepted for the other
            found, wanted = build.or_(both, emitter.const_i64(1 << 32)), wanted | 1 << 32
        ndim = catalogue.NDIM.fill(
            self._place, expected=len(spec.shape), actual=NdimOf(self.position)
        )
        dtype = catalogue.DTYPE.fill(
            self._place, expected=spec.dtype.name, actual=DTypeOf(self.position)
        )
        ok = build.icmp_signed("==", found, emitter.const_i64(wanted))
        self._checks.check_both(ok, (lambda: self._has_ndim(both), ndim), dtype)

    def _has_ndim(self, both: ir.Value) -> ir.Value:
        build = self._emitter.builder
        wanted = self._emitter.const_i32(len(self.spec.shape))
        return build.icmp_signed("==", build.trunc(both, I32), wanted)

    def _check_device(self) -> None:
        emitter = self._emitter
        device = self.spec.device
        if device is None:
            raise ValueError(f"the device type of the parameter {self.spec.name} is not decided")
        code = emitter.load_field(self.dl, DLTENSOR, "device_type")
        ok = emitter.builder.icmp_signed("==", code, emitter.const_i32(DEVICE_CODES[device]))
        message = catalogue.DEVICE.fill(
            self._place, expected=device, actual=DeviceOf(self.position)
        )
        self._checks.check(ok, message)

    # ---- sizes and strides as they came ----

    def shape(self) -> ir.Value:
        """The address of the sizes."""
        if self._shape is None:
            self._shape = self._emitter.load_field(self.dl, DLTENSOR, "shape")
        return self._shape

    def size(self, axis: int) -> ir.Value:
        """A size, i64."""
        if axis not in self._sizes:
            at = self._emitter.index(self.shape(), I64, axis)
            self._sizes[axis] = self._emitter.load(at, I64, name=f"{self.spec.name}.n{axis}")
        return self._sizes[axis]

    def stride(self, axis: int) -> ir.Value:
        """A stride in elements, i64; computed where the tensor came without strides."""
        if axis not in self._steps:
            at = self._emitter.index(self.strides(), I64, axis)
            self._steps[axis] = self._emitter.load(at, I64, name=f"{self.spec.name}.s{axis}")
        return self._steps[axis]

    def strides(self) -> ir.Value:
        """The address of the strides; a cold block writes row-major ones where there are none."""
        if self._strides is not None:
            return self._strides
        emitter = self._emitter
        given = emitter.load_field(self.dl, DLTENSOR, "strides")
        shape = self.shape()
        start = emitter.builder.block
        missing = emitter.builder.icmp_unsigned("==", given, emitter.null())
        cold, behind = self._checks.cold_block("compact"), emitter.block("strides")
        emitter.cond_branch(missing, cold, behind)
        with emitter.within(cold):
            room = emitter.alloca(I64, len(self.spec.shape), name="compact.strides")
            ndim = emitter.const_i32(len(self.spec.shape))
            emitter.call(cold_helper(emitter, "ferrule_compact", COMPACT), [shape, ndim, room])
            emitter.branch(behind)
        emitter.at(behind)
        self._strides = emitter.builder.phi(PTR, name=f"{self.spec.name}.strides")
        self._strides.add_incoming(given, start)
        self._strides.add_incoming(room, cold)
        return self._strides

    def has_elements(self) -> ir.Value:
        """Whether no size is 0, i1, for the hot way."""
        if self._elements is None:
            build, zero = self._emitter.builder, self._emitter.const_i64(0)
            self._elements = ir.Constant(I1, 1)
            for axis, dim in enumerate(self.spec.shape):
                if not (isinstance(dim, int) and dim > 0):
                    some = build.icmp_unsigned("!=", self.size(axis), zero)
                    self._elements = build.and_(self._elements, some)
        return self._elements

    def is_moot(self, axis: int) -> ir.Value:
        """Whether this dim's stride means nothing, i1, to be asked for in a cold block.

        Axis -1 asks whether the tensor has no elements.
        """
        emitter = self._emitter
        ndim = emitter.const_i32(len(self.spec.shape))
        moot = cold_helper(emitter, "ferrule_moot", MOOT)
        return emitter.call(moot, [self.shape(), ndim, emitter.const_i32(axis)])

    def base(self) -> ir.Value:
        """The data pointer as it came."""
        return self._emitter.load_field(self.dl, DLTENSOR, "data")

    def address(self, data: ir.Value) -> ir.Value:
        """The address of the first element, from the data pointer."""
        emitter = self._emitter
        offset = emitter.load_field(self.dl, DLTENSOR, "byte_offset")
        return emitter.builder.gep(data, [offset], name=f"{self.spec.name}.data", source_etype=I8)
