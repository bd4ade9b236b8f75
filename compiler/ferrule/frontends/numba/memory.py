"""What code of Numba needs of its runtime to make arrays, without that runtime.

A `MemInfo` of Numba 0.68 is `{i64 references, destructor, its argument, data, i64 size, ...}`;
compiled code counts references and reads `data` itself, and asks for the rest here: memory that
`malloc` gives, which goes with the last reference.
"""

from __future__ import annotations

from typing import Final

DATA_OFFSET: Final = 24
"""Where the address of the data is."""
HEADER: Final = 64
"""Bytes before the data, more than a `MemInfo` takes."""
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

define ptr @NRT_MemInfo_alloc(i64 %size) {{
  %info = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 {ALIGNMENT})
  ret ptr %info
}}

define void @NRT_MemInfo_call_dtor(ptr %info) {{
  call void @free(ptr %info)
  ret void
}}
"""
