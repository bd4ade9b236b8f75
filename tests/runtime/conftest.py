"""What the tests of the runtime share: LLVM text made into functions, without any compiler."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from llvmlite import binding

from ferrule import specs
from ferrule.runtime import Function, ObjectCode, Stage, StageError, load_function
from ferrule.runtime.artefacts import ExportForm
from ferrule.runtime.linking.engine import host_triple, initialize_llvm

COUNT = """
define i32 @__tvm_ffi_{name}(ptr %handle, ptr %args, i32 %n, ptr %result) {{
  %count = sext i32 %n to i64
  store i64 1, ptr %result
  %value = getelementptr i8, ptr %result, i64 8
  store i64 %count, ptr %value
  ret i32 0
}}
"""

ADD = """
define i32 @__tvm_ffi_{name}(ptr %handle, ptr %args, i32 %n, ptr %result) {{
  %first = getelementptr i8, ptr %args, i64 8
  %second = getelementptr i8, ptr %args, i64 24
  %a = load i64, ptr %first
  %b = load i64, ptr %second
  %sum = add i64 %a, %b
  store i64 1, ptr %result
  %value = getelementptr i8, ptr %result, i64 8
  store i64 %sum, ptr %value
  ret i32 0
}}
"""

# Returns its last argument as it came, so that a test sees what the callee was given.
ECHO = """
define i32 @__tvm_ffi_{name}(ptr %handle, ptr %args, i32 %n, ptr %result) {{
  %last = sub i32 %n, 1
  %index = sext i32 %last to i64
  %from = getelementptr [16 x i8], ptr %args, i64 %index
  %status = call i32 @TVMFFIAnyViewToOwnedAny(ptr %from, ptr %result)
  ret i32 %status
}}
declare i32 @TVMFFIAnyViewToOwnedAny(ptr, ptr)
"""

# Returns the type index of its last argument.
INDEX = """
define i32 @__tvm_ffi_{name}(ptr %handle, ptr %args, i32 %n, ptr %result) {{
  %last = sub i32 %n, 1
  %index = sext i32 %last to i64
  %from = getelementptr [16 x i8], ptr %args, i64 %index
  %kind = load i32, ptr %from
  %wide = sext i32 %kind to i64
  store i64 1, ptr %result
  %value = getelementptr i8, ptr %result, i64 8
  store i64 %wide, ptr %value
  ret i32 0
}}
"""

# Returns the 8 bytes of its last argument's payload.
PAYLOAD = INDEX.replace(
    "%kind = load i32, ptr %from\n  %wide = sext i32 %kind to i64",
    "%at = getelementptr i8, ptr %from, i64 8\n  %wide = load i64, ptr %at",
)

FAIL = """
@kind = private constant [{size} x i8] c"{kind}\\00"
@first = private constant [6 x i8] c"it is\\00"
@second = private constant [8 x i8] c" broken\\00"
define i32 @__tvm_ffi_{name}(ptr %handle, ptr %args, i32 %n, ptr %result) {{
  %parts = alloca [2 x ptr]
  store ptr @first, ptr %parts
  %next = getelementptr i8, ptr %parts, i64 8
  store ptr @second, ptr %next
  call void @TVMFFIErrorSetRaisedFromCStrParts(ptr @kind, ptr %parts, i32 2)
  ret i32 -1
}}
declare void @TVMFFIErrorSetRaisedFromCStrParts(ptr, ptr, i32)
"""


def compile_text(text: str, name: str, triple: str = "", cpu: str = "") -> ObjectCode:
    """An object from LLVM assembly."""
    initialize_llvm()
    triple = triple or host_triple()
    module = binding.parse_assembly(text)
    module.verify()
    machine = binding.Target.from_triple(triple).create_target_machine(
        cpu=cpu, reloc="pic", codemodel="default"
    )
    return ObjectCode(name, bytes(machine.emit_object(module)), triple, cpu)


@dataclass(frozen=True, slots=True)
class TextOrigin:
    """An origin that has nothing but LLVM text, with `{name}` where the name goes."""

    template: str

    def llvm(self, name: str) -> str:
        return self.template.format(name=name)

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        return compile_text(self.llvm(name), name, triple, cpu)

    def export(self, name: str, form: ExportForm, system_lib: str | None = None) -> bytes:
        if form != ".o":
            raise StageError(form, [".o"], "it was written in LLVM assembly")
        return compile_text(self.llvm(name), name).data

    def text(self, stage: Stage) -> str:
        if stage != "llvm":
            raise StageError(stage, ["llvm"], "it was written in LLVM assembly")
        return self.llvm("text")


class Maker:
    """Makes functions from templates."""

    def __call__(
        self, template: str, *params: specs.Param, name: str = "f", doc: str | None = None
    ) -> Function:
        origin = TextOrigin(template)
        code = compile_text(origin.llvm(name), name)
        return load_function(code, specs.Signature(name, params), origin, doc=doc)

    def count(self, *params: specs.Param, name: str = "count") -> Function:
        return self(COUNT, *params, name=name)

    def echo(self, *params: specs.Param, name: str = "echo") -> Function:
        return self(ECHO, *params, name=name)

    def index(self, *params: specs.Param, name: str = "index") -> Function:
        return self(INDEX, *params, name=name)

    def payload(self, *params: specs.Param, name: str = "payload") -> Function:
        return self(PAYLOAD, *params, name=name)

    def add(self, name: str = "add") -> Function:
        return self(ADD, int32("a"), int32("b"), name=name)

    def fail(self, *params: specs.Param, kind: str = "ValueError", name: str = "fail") -> Function:
        template = FAIL.replace("{size}", str(len(kind) + 1)).replace("{kind}", kind)
        return self(template, *params, name=name)


def int32(name: str, default: int | None = None) -> specs.Scalar:
    if default is None:
        return specs.Scalar(name, specs.Int32)
    return specs.Scalar(name, specs.Int32, default)


@pytest.fixture
def make() -> Maker:
    """Functions from LLVM text."""
    return Maker()


@pytest.fixture
def count_code() -> ObjectCode:
    """An object that defines `__tvm_ffi_count`."""
    return compile_text(COUNT.format(name="count"), "count")
