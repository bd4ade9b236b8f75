"""The wrapper builder: from a signature to the LLVM text of `__tvm_ffi_<name>`.

The generated function is `i32 (ptr handle, ptr args, i32 num_args, ptr result)`.  It decodes and
checks every argument, makes the call of the convention, leaves `result` alone (None) and returns
0; or it sets an error and returns -1.  The body never runs unless every argument passed.

Errors come in this order: the number of arguments; kind, ndim, dtype and device of each parameter
from left to right; sizes, strides, alignment, data and ranges of each parameter from left to
right; relations between sizes that the body needs; faults of the body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, Relation
from ferrule.compiler.conventions import CallingConvention
from ferrule.compiler.messages import catalogue
from ferrule.compiler.messages.parts import NumArgs, Value
from ferrule.compiler.messages.support import RAISE, cold_function
from ferrule.compiler.messages.table import Table
from ferrule.compiler.wrapper.checks import Checks, Target
from ferrule.compiler.wrapper.decoded import Decoded, DecodedCall
from ferrule.compiler.wrapper.scalars import ScalarArgument
from ferrule.compiler.wrapper.tensors import TensorArgument
from ferrule.compiler.wrapper.values import Values
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, I32, PTR
from ferrule.specs import Param, Scalar, Signature, Tensor

_Argument: TypeAlias = TensorArgument | ScalarArgument


def build_wrapper(
    signature: Signature,
    convention: CallingConvention,
    relations: Sequence[Relation] = (),
    faults: Sequence[Fault] = (),
) -> str:
    """The wrapper as LLVM text.

    `relations` are checked behind the parameters.  `faults` are what a status of the convention
    other than 0 means.  Raises NotImplementedError for a parameter that no wrapper decodes yet.
    """
    return _Wrapper(signature).build(convention, relations, faults)


class _Wrapper:
    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.text = str(signature)
        self.emitter = Emitter(f"ferrule.wrapper.{signature.name}")
        self.messages = Table()

    def build(
        self,
        convention: CallingConvention,
        relations: Sequence[Relation],
        faults: Sequence[Fault],
    ) -> str:
        emitter = self.emitter
        name, names = SYMBOL_PREFIX + self.signature.name, ("handle", "args", "num_args", "result")
        with emitter.define(name, I32, (PTR, PTR, I32, PTR), names=names) as function:
            checks = Checks(emitter, self.messages)
            with self._raising(function, checks):
                call = self._decode(function, checks)
                self._check_relations(checks, call, relations)
                self._finish(checks, convention.emit(emitter, call), faults)
        return emitter.text()

    @contextmanager
    def _raising(self, function: ir.Function, checks: Checks) -> Iterator[None]:
        """Failures inside set the error of their message and return -1."""
        emitter = self.emitter
        block = checks.cold_block("raise")
        with checks.failing_to(block) as target:
            yield
        emitter.at(block)
        number = _joined(emitter, target)
        table = emitter.bytes_constant(self.messages.data(), align=8)
        arguments = [table, number, *function.args[1:3], checks.values]
        emitter.call(cold_function(emitter, "ferrule_raise", RAISE), arguments)
        emitter.ret(emitter.const_i32(-1))
        checks.cold_blocks.append(checks.cold_blocks.pop(0))
        function.blocks[:] = [b for b in function.blocks if b not in checks.cold_blocks]
        function.blocks += checks.cold_blocks

    def _decode(self, function: ir.Function, checks: Checks) -> DecodedCall:
        self._check_count(function, checks)
        arguments = self._check_kinds(function, checks)
        tensors = {a.spec.name: a for a in arguments if isinstance(a, TensorArgument)}
        values = Values(self.signature, checks, tensors)
        values.bind()
        decoded = {argument.spec.name: _check_values(values, argument) for argument in arguments}
        return DecodedCall(decoded, values.symbols, values.sizes, checks.values)

    def _check_count(self, function: ir.Function, checks: Checks) -> None:
        count = len(self.signature.params)
        wanted = self.emitter.const_i32(count)
        ok = self.emitter.builder.icmp_signed("==", function.args[2], wanted)
        noun = "1 parameter" if count == 1 else f"{count} parameters"
        message = catalogue.NUM_ARGS.fill(signature=self.text, count=noun, actual=NumArgs())
        checks.check(ok, message)

    def _check_kinds(self, function: ir.Function, checks: Checks) -> list[_Argument]:
        arguments = []
        for position, param in enumerate(self.signature.params):
            at = self.emitter.index(function.args[1], ANY, position)
            arguments.append(_check_kind(self.text, checks, position, param, at))
        return arguments

    def _check_relations(
        self, checks: Checks, call: DecodedCall, relations: Sequence[Relation]
    ) -> None:
        for relation in relations:
            self._check_relation(checks, call, relation)

    def _check_relation(self, checks: Checks, call: DecodedCall, relation: Relation) -> None:
        build = self.emitter.builder
        left, right = call.sizes.lower(relation.left), call.sizes.lower(relation.right)
        for flag in (left.undefined, right.undefined):
            if flag is not None:
                message = catalogue.RELATION_UNDEFINED.fill(
                    location=relation.location,
                    signature=self.text,
                    what=relation.left_name,
                    left=self.signature.format(relation.left),
                    right=self.signature.format(relation.right),
                )
                checks.check(build.not_(flag), message)
        message = catalogue.RELATION.fill(
            location=relation.location,
            signature=self.text,
            what=relation.left_name,
            owner=relation.right_name,
            expected=Value(0),
            actual=Value(1),
        )
        equal = build.icmp_signed("==", left.value, right.value)
        checks.check(equal, message, shown=[lambda: right.value, lambda: left.value])

    def _finish(self, checks: Checks, status: ir.Value, faults: Sequence[Fault]) -> None:
        emitter = self.emitter
        if faults:
            numbers = [self.messages.add(catalogue.body_fault(fault)) for fault in faults]
            zero = emitter.const_i32(0)
            failed = emitter.builder.icmp_signed("!=", status, zero)
            cold, behind = checks.cold_block("fault"), emitter.block("done")
            emitter.cond_branch(failed, cold, behind)
            emitter.at(cold)
            checks.fail(emitter.builder.add(status, emitter.const_i32(numbers[0] - 1)))
            emitter.at(behind)
        emitter.ret(emitter.const_i32(0))


def _joined(emitter: Emitter, target: Target) -> ir.Value:
    """The number of the message with which a failure target was reached."""
    number = emitter.builder.phi(I32, name="message")
    for value, block in target.reached:
        number.add_incoming(value, block)
    return number


def _check_kind(
    signature: str, checks: Checks, position: int, param: Param, at: ir.Value
) -> _Argument:
    match param:
        case Tensor():
            tensor = TensorArgument(signature, checks, position, param, at)
            tensor.check_header()
            return tensor
        case Scalar():
            scalar = ScalarArgument(signature, checks, position, param, at)
            scalar.check_kind()
            return scalar
        case _:
            raise NotImplementedError(
                f"no wrapper decodes a {type(param).__name__} yet, "
                f"which the parameter {param.name} is"
            )


def _check_values(values: Values, argument: _Argument) -> Decoded:
    match argument:
        case TensorArgument():
            return values.check(argument)
        case ScalarArgument():
            return argument.check_value()
