"""Functions of MLIR's runtime that lowered code calls, as LLVM IR."""

from __future__ import annotations

import re
from typing import Final

_COPY: Final = "declare void @memrefCopy(i64, ptr, ptr)"

_COPY_CODE: Final = """
define internal void @ferrule_mlir_copy(i64 %size, i64 %rank, i64 %all, ptr %from, ptr %to, \
ptr %a, ptr %b) {
  %last = icmp eq i64 %rank, %all
  br i1 %last, label %element, label %dim
element:
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 %size, i1 false)
  ret void
dim:
  %extent.at = getelementptr i64, ptr %from, i64 %rank
  %extent = load i64, ptr %extent.at
  %second = add i64 %rank, %all
  %stride.from.at = getelementptr i64, ptr %from, i64 %second
  %stride.from = load i64, ptr %stride.from.at
  %stride.to.at = getelementptr i64, ptr %to, i64 %second
  %stride.to = load i64, ptr %stride.to.at
  %bytes.from = mul i64 %stride.from, %size
  %bytes.to = mul i64 %stride.to, %size
  %next = add i64 %rank, 1
  br label %head
head:
  %i = phi i64 [ 0, %dim ], [ %j, %loop ]
  %from.i = phi ptr [ %a, %dim ], [ %from.j, %loop ]
  %to.i = phi ptr [ %b, %dim ], [ %to.j, %loop ]
  %more = icmp slt i64 %i, %extent
  br i1 %more, label %loop, label %done
loop:
  call void @ferrule_mlir_copy(i64 %size, i64 %next, i64 %all, ptr %from, ptr %to, \
ptr %from.i, ptr %to.i)
  %j = add i64 %i, 1
  %from.j = getelementptr i8, ptr %from.i, i64 %bytes.from
  %to.j = getelementptr i8, ptr %to.i, i64 %bytes.to
  br label %head
done:
  ret void
}

define internal ptr @ferrule_mlir_first(i64 %size, ptr %descriptor) {
  %aligned.at = getelementptr i64, ptr %descriptor, i64 1
  %aligned = load ptr, ptr %aligned.at
  %offset.at = getelementptr i64, ptr %descriptor, i64 2
  %offset = load i64, ptr %offset.at
  %bytes = mul i64 %offset, %size
  %first = getelementptr i8, ptr %aligned, i64 %bytes
  ret ptr %first
}

define internal void @memrefCopy(i64 %size, ptr %source, ptr %target) {
  %rank = load i64, ptr %source
  %source.at = getelementptr i64, ptr %source, i64 1
  %from = load ptr, ptr %source.at
  %target.at = getelementptr i64, ptr %target, i64 1
  %to = load ptr, ptr %target.at
  %a = call ptr @ferrule_mlir_first(i64 %size, ptr %from)
  %b = call ptr @ferrule_mlir_first(i64 %size, ptr %to)
  %from.sizes = getelementptr i64, ptr %from, i64 3
  %to.sizes = getelementptr i64, ptr %to, i64 3
  call void @ferrule_mlir_copy(i64 %size, i64 0, i64 %rank, ptr %from.sizes, ptr %to.sizes, \
ptr %a, ptr %b)
  ret void
}
"""
"""A copy between memrefs of any layout: the function takes descriptors `{allocated, aligned,
offset, sizes, strides}`, each with its rank before it."""

_MEMCPY: Final = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
_DECLARED: Final = re.compile(r"^declare void @llvm\.memcpy\.p0\.p0\.i64\(", re.M)


def with_support(text: str) -> str:
    """The text of a module with definitions of the runtime functions that it declares."""
    if _COPY not in text:
        return text
    text = text.replace(_COPY, _COPY_CODE)
    return text if _DECLARED.search(text) else text + _MEMCPY
