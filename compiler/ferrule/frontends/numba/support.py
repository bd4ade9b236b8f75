"""The functions of Numba's runtime that its compiled code calls, rewritten without Python.

A `MemInfo` of Numba 0.68 is `{i64 references, destructor, its argument, data, i64 size, ...}`;
compiled code counts references and reads `data` itself, and calls these functions for the rest:
memory comes from `malloc` and is freed with the last reference.
"""

from __future__ import annotations

from typing import Final

FORGET: Final = "forgotten"
"""The name of the function that frees the description of an exception."""

_DATA_OFFSET: Final = 24
"""The offset of the address of the data."""
_HEADER: Final = 64
"""The bytes before the data, more than a `MemInfo` needs."""
_VALUES_OFFSET: Final = 32
"""The offset of the number of values in the description of an exception."""
_ALIGNMENT: Final = 16
"""The alignment of memory for which none is requested."""
_MOST: Final = 1 << 62
"""A number of bytes that cannot be allocated."""

_MEMORY: Final = f"""
declare ptr @malloc(i64)
declare void @free(ptr)

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {{
  %wide = zext i32 %align to i64
  %more = add i64 %wide, {_HEADER}
  %whole = add i64 %size, %more
  %huge = icmp ugt i64 %size, {_MOST}
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
  %place = getelementptr i8, ptr %info, i64 {_DATA_OFFSET}
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
  %count.place = getelementptr i8, ptr %what, i64 {_VALUES_OFFSET}
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
  %info = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 {_ALIGNMENT})
  ret ptr %info
}}

define void @NRT_MemInfo_call_dtor(ptr %info) {{
  call void @free(ptr %info)
  ret void
}}
"""

_RESHAPE: Final = """
define i32 @numba_attempt_nocopy_reshape(
    i64 %rank, ptr %dims, ptr %strides, i64 %new.rank, ptr %new.dims, ptr %new.strides,
    i64 %itemsize, i32 %by.columns) {
  %by.rows = icmp eq i32 %by.columns, 0
  br i1 %by.rows, label %checked, label %refused
checked:
  %axis = phi i64 [ %rank, %0 ], [ %before, %longer.than ]
  %step = phi i64 [ %itemsize, %0 ], [ %longer, %longer.than ]
  %compact = icmp eq i64 %axis, 0
  br i1 %compact, label %filled, label %looked.at
looked.at:
  %before = sub i64 %axis, 1
  %dim.place = getelementptr i64, ptr %dims, i64 %before
  %dim = load i64, ptr %dim.place
  %empty = icmp eq i64 %dim, 0
  br i1 %empty, label %filled, label %longer.than
longer.than:
  %stride.place = getelementptr i64, ptr %strides, i64 %before
  %stride = load i64, ptr %stride.place
  %longer = mul i64 %step, %dim
  %same = icmp eq i64 %stride, %step
  %one = icmp eq i64 %dim, 1
  %fits = or i1 %same, %one
  br i1 %fits, label %checked, label %refused
filled:
  %new.axis = phi i64 [ %new.rank, %checked ], [ %new.rank, %looked.at ], [ %new.before, %written ]
  %new.step = phi i64 [ %itemsize, %checked ], [ %itemsize, %looked.at ], [ %new.longer, %written ]
  %done = icmp eq i64 %new.axis, 0
  br i1 %done, label %made, label %written
written:
  %new.before = sub i64 %new.axis, 1
  %new.place = getelementptr i64, ptr %new.strides, i64 %new.before
  store i64 %new.step, ptr %new.place
  %new.dim.place = getelementptr i64, ptr %new.dims, i64 %new.before
  %new.dim = load i64, ptr %new.dim.place
  %new.longer = mul i64 %new.step, %new.dim
  br label %filled
made:
  ret i32 1
refused:
  ret i32 0
}
"""
"""Strides for new dims of arrays that are compact in row-major order, the only ones for which Numba
requests another shape.  The result is 0 for other arrays."""

SUPPORT: Final = _MEMORY + _RESHAPE
"""All of it, as LLVM IR."""
