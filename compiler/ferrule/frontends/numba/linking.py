"""Takes a function out of a module of Numba's, so that it needs neither Numba nor Python.

What code needs of Numba's runtime to make arrays is here.  A `MemInfo` of Numba 0.68 is
`{i64 references, destructor, its argument, data, i64 size, ...}`; compiled code counts references
and reads `data` itself, and asks for the rest here: memory that `malloc` gives, which goes with the
last reference.

An exception that is made of values of the call has a function that makes objects of Python of them
and lets go of the values: `boxing` leaves the latter.
"""

from __future__ import annotations

from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.numba.boxing import without_boxing

ENTRY: Final = "called"
"""The name of the function that a call goes to."""

FORGET: Final = "forgotten"
"""The name of the function that frees what describes an exception."""

DATA_OFFSET: Final = 24
"""Where the address of the data is."""
HEADER: Final = 64
"""Bytes before the data, more than a `MemInfo` takes."""
VALUES_OFFSET: Final = 32
"""Where the description of an exception has the number of its values."""
ALIGNMENT: Final = 16
"""Of memory that asks for none."""
MOST: Final = 1 << 62
"""Bytes that nobody has."""

MEMORY: Final = f"""
declare ptr @malloc(i64)
declare void @free(ptr)

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {{
  %wide = zext i32 %align to i64
  %more = add i64 %wide, {HEADER}
  %whole = add i64 %size, %more
  %huge = icmp ugt i64 %size, {MOST}
  br i1 %huge, label %failed, label %asked
asked:
  %info = call ptr @malloc(i64 %whole)
  %none = icmp eq ptr %info, null
  br i1 %none, label %failed, label %made
made:
  %first = ptrtoint ptr %info to i64
  %past = add i64 %first, %more
  %rest = urem i64 %past, %wide
  %at = sub i64 %past, %rest
  %data = inttoptr i64 %at to ptr
  store i64 1, ptr %info
  %place = getelementptr i8, ptr %info, i64 {DATA_OFFSET}
  store ptr %data, ptr %place
  %size.place = getelementptr i8, ptr %place, i64 8
  store i64 %size, ptr %size.place
  ret ptr %info
failed:
  ret ptr null
}}

define ptr @NRT_Allocate(i64 %size) {{
  %data = call ptr @malloc(i64 %size)
  ret ptr %data
}}

define void @NRT_Free(ptr %data) {{
  call void @free(ptr %data)
  ret void
}}

define void @{FORGET}(ptr %what) {{
  %count.place = getelementptr i8, ptr %what, i64 {VALUES_OFFSET}
  %count = load i32, ptr %count.place
  %constant = icmp eq i32 %count, 0
  br i1 %constant, label %done, label %made
made:
  %values.place = getelementptr i8, ptr %what, i64 16
  %values = load ptr, ptr %values.place
  %boxing.place = getelementptr i8, ptr %what, i64 24
  %boxing = load ptr, ptr %boxing.place
  %none = call ptr %boxing(ptr %values)
  call void @free(ptr %what)
  ret void
done:
  ret void
}}

define ptr @NRT_MemInfo_alloc(i64 %size) {{
  %info = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 {ALIGNMENT})
  ret ptr %info
}}

define void @NRT_MemInfo_call_dtor(ptr %info) {{
  call void @free(ptr %info)
  ret void
}}
"""

_OF_PYTHON: Final = ("NRT_", "Py", "_Py", "numba_")
_HINT: Final = (
    "use arrays and numbers alone: no lists, dicts, texts, random numbers, print and parallel loops"
)


def alone(text: str, symbol: str, name: str) -> tuple[str, list[str]]:
    """The LLVM text of a function with all that it calls, and the types of its parameters.

    Raises CompileError where it needs more of Numba's runtime, which is a part of Python.
    """
    import llvmlite.binding as llvm

    context = llvm.create_context()
    with llvm.parse_assembly(without_boxing(text), context) as module:
        kinds = [str(argument.type) for argument in module.get_function(symbol).arguments]
        module.link_in(llvm.parse_assembly(MEMORY, context))
        for each in (*module.functions, *module.global_variables):
            if not each.is_declaration and each.name not in (symbol, FORGET):
                each.linkage = llvm.Linkage.internal
        _drop_unused(module)
        needed = [each.name for each in module.functions if each.is_declaration]
        lines = str(module)
    foreign = [each for each in needed if each.startswith(_OF_PYTHON)]
    if foreign:
        raise CompileError(
            Diagnostic(
                f"{name} needs {', '.join(foreign)} of Numba's runtime, which is a part of Python",
                hint=_HINT,
            )
        )
    return lines, kinds


def _drop_unused(module: Any) -> None:
    import llvmlite.binding as llvm

    from ferrule.runtime.llvm.passes import passes

    machine = llvm.Target.from_triple(module.triple).create_target_machine()
    with passes(module, machine) as manager:
        manager.add_global_dead_code_eliminate_pass()
