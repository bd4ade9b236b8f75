"""The functions of Numba's runtime that its compiled code calls, rewritten without Python.

A `MemInfo` of Numba 0.68 is `{i64 references, destructor, its argument, data, i64 size, ...}`;
compiled code counts references and reads `data` itself, and calls these functions for the rest:
memory comes from `malloc` and is freed with the last reference.  The elements of an array lie
behind its `MemInfo`; those of a list, which grows, lie elsewhere (`varsize`), and their references
are released by the function that Numba hands over when it makes the list.
"""

from __future__ import annotations

from typing import Final

FORGET: Final = "forgotten"
"""The name of the function that frees the description of an exception."""

RELEASE: Final = "released"
"""The name of the function that releases one reference to an array's memory."""

_DTOR_OFFSET: Final = 8
_ARGUMENT_OFFSET: Final = 16
_DATA_OFFSET: Final = 24
_SIZE_OFFSET: Final = 32
"""The offsets of the destructor, of its argument, of the address of the data and of its size."""
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
declare ptr @memcpy(ptr, ptr, i64)

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
  %dtor.place = getelementptr i8, ptr %info, i64 {_DTOR_OFFSET}
  store ptr null, ptr %dtor.place
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
  %dtor.place = getelementptr i8, ptr %info, i64 {_DTOR_OFFSET}
  %dtor = load ptr, ptr %dtor.place
  %none = icmp eq ptr %dtor, null
  br i1 %none, label %freed, label %called
called:
  %data.place = getelementptr i8, ptr %info, i64 {_DATA_OFFSET}
  %data = load ptr, ptr %data.place
  %argument.place = getelementptr i8, ptr %info, i64 {_ARGUMENT_OFFSET}
  %argument = load ptr, ptr %argument.place
  call void %dtor(ptr %data, i64 0, ptr %argument)
  br label %freed
freed:
  call void @free(ptr %info)
  ret void
}}

define void @{RELEASE}(ptr %info) {{
  %none = icmp eq ptr %info, null
  br i1 %none, label %done, label %counted
counted:
  %before = atomicrmw sub ptr %info, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %unused, label %done
unused:
  call void @NRT_MemInfo_call_dtor(ptr %info)
  br label %done
done:
  ret void
}}
"""

_LISTS: Final = f"""
define internal void @varsize_dtor(ptr %data, i64 %size, ptr %items) {{
  %plain = icmp eq ptr %items, null
  br i1 %plain, label %freed, label %released
released:
  call void %items(ptr %data)
  br label %freed
freed:
  call void @free(ptr %data)
  ret void
}}

define ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr %items) {{
  %info = call ptr @malloc(i64 {_HEADER})
  %none = icmp eq ptr %info, null
  br i1 %none, label %failed, label %made
made:
  %data = call ptr @NRT_MemInfo_varsize_alloc(ptr %info, i64 %size)
  %nowhere = icmp eq ptr %data, null
  br i1 %nowhere, label %without, label %filled
filled:
  store i64 1, ptr %info
  %dtor.place = getelementptr i8, ptr %info, i64 {_DTOR_OFFSET}
  store ptr @varsize_dtor, ptr %dtor.place
  %argument.place = getelementptr i8, ptr %info, i64 {_ARGUMENT_OFFSET}
  store ptr %items, ptr %argument.place
  ret ptr %info
without:
  call void @free(ptr %info)
  br label %failed
failed:
  ret ptr null
}}

define ptr @NRT_MemInfo_new_varsize(i64 %size) {{
  %info = call ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr null)
  ret ptr %info
}}

define ptr @NRT_MemInfo_varsize_alloc(ptr %info, i64 %size) {{
  %huge = icmp ugt i64 %size, {_MOST}
  br i1 %huge, label %failed, label %asked
asked:
  %data = call ptr @malloc(i64 %size)
  %none = icmp eq ptr %data, null
  br i1 %none, label %failed, label %made
made:
  %data.place = getelementptr i8, ptr %info, i64 {_DATA_OFFSET}
  store ptr %data, ptr %data.place
  %size.place = getelementptr i8, ptr %info, i64 {_SIZE_OFFSET}
  store i64 %size, ptr %size.place
  ret ptr %data
failed:
  ret ptr null
}}

define ptr @NRT_MemInfo_varsize_realloc(ptr %info, i64 %size) {{
  %data.place = getelementptr i8, ptr %info, i64 {_DATA_OFFSET}
  %before = load ptr, ptr %data.place
  %size.place = getelementptr i8, ptr %info, i64 {_SIZE_OFFSET}
  %had = load i64, ptr %size.place
  %data = call ptr @NRT_MemInfo_varsize_alloc(ptr %info, i64 %size)
  %none = icmp eq ptr %data, null
  br i1 %none, label %failed, label %made
made:
  %shrinks = icmp ult i64 %size, %had
  %kept = select i1 %shrinks, i64 %size, i64 %had
  %copied = call ptr @memcpy(ptr %data, ptr %before, i64 %kept)
  call void @free(ptr %before)
  ret ptr %data
failed:
  ret ptr null
}}

define void @NRT_MemInfo_varsize_free(ptr %info, ptr %data) {{
  call void @free(ptr %data)
  %data.place = getelementptr i8, ptr %info, i64 {_DATA_OFFSET}
  %has = load ptr, ptr %data.place
  %same = icmp eq ptr %has, %data
  br i1 %same, label %forgotten, label %done
forgotten:
  store ptr null, ptr %data.place
  br label %done
done:
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

_GAMMA: Final = """
declare double @tgamma(double)
declare float @tgammaf(float)

define double @numba_gamma(double %x) {
  %y = call double @tgamma(double %x)
  ret double %y
}

define float @numba_gammaf(float %x) {
  %y = call float @tgammaf(float %x)
  ret float %y
}
"""
"""Numba has its own gamma function because some platforms' C libraries had none."""

SUPPORT: Final = _MEMORY + _LISTS + _RESHAPE + _GAMMA
"""All of it, as LLVM IR."""
