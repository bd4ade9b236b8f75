; ModuleID = "total"
target triple = ""
target datalayout = ""

define i32 @"ferrule_body"(ptr %"values", ptr %"a", ptr %"out", i32 %"n") "prefer-vector-width"="512" nounwind
{
entry:
  %".6" = sext i32 %"n" to i64
  %"size" = trunc i64 %".6" to i32
  br label %"for.head"
for.head:
  %"i" = phi  i64 [0, %"entry"], [%".12", %"for.body"]
  %"s" = phi  float [             0x0, %"entry"], [%".11", %"for.body"]
  %".8" = icmp slt i64 %"i", %".6"
  br i1 %".8", label %"for.body", label %"for.end"
for.body:
  %"i.1" = trunc i64 %"i" to i32
  %".10" = getelementptr float, ptr %"a", i64 %"i"
  %"load" = load float, ptr %".10", align 4
  %".11" = fadd float %"s", %"load"
  %".12" = add nsw i64 %"i", 1
  br label %"for.head", !llvm.loop !0
for.end:
  %".14" = getelementptr float, ptr %"out", i64 0
  store float %"s", ptr %".14", align 4
  ret i32 0
}

!0 = distinct !{ !0, !1 }
!1 = !{ !"llvm.loop.unroll.count", i32 4 }
