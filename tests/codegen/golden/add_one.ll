; ModuleID = "add_one"
target triple = ""
target datalayout = ""

define internal void @"kernel_device_add_one"(ptr %"a", ptr %"b", i64 %"n", i64 %"grid.x", i64 %"grid.y", i64 %"grid.z", i64 %"block.x", i64 %"block.y", i64 %"block.z") "prefer-vector-width"="512" nounwind
{
entry:
  %".11" = mul nsw i64 %"grid.x", 128
  %"size" = trunc i64 %"n" to i32
  %".12" = call i64 @"llvm.smin.i64"(i64 %"n", i64 %".11")
  %".13" = call i64 @"llvm.smax.i64"(i64 %".12", i64 0)
  br label %"thread.x.head"
thread.x.head:
  %"thread.x" = phi  i64 [0, %"entry"], [%".22", %"thread.x.body"]
  %".15" = icmp slt i64 %"thread.x", %".13"
  br i1 %".15", label %"thread.x.body", label %"thread.x.end"
thread.x.body:
  %"add" = trunc i64 %"thread.x" to i32
  %".17" = mul i32 0, 128
  %"size.1" = trunc i64 %"n" to i32
  %".18" = getelementptr float, ptr %"a", i64 %"thread.x"
  %"load" = load float, ptr %".18", align 4, !llvm.access.group !0
  %".19" = fadd float %"load", 0x3ff0000000000000
  %".20" = getelementptr float, ptr %"b", i64 %"thread.x"
  store float %".19", ptr %".20", align 4, !llvm.access.group !0
  %".22" = add nsw i64 %"thread.x", 1
  br label %"thread.x.head", !llvm.loop !3
thread.x.end:
  ret void
}

declare i64 @"llvm.smin.i64"(i64 %".1", i64 %".2")

declare i64 @"llvm.smax.i64"(i64 %".1", i64 %".2")

define i32 @"ferrule_body"(ptr %"values", ptr %"a", ptr %"b", i32 %"n") "prefer-vector-width"="512" nounwind
{
entry:
  %".6" = sext i32 %"n" to i64
  %".7" = add i64 %".6", 127
  %".8" = ashr i64 %".7", 7
  call void @"kernel_device_add_one"(ptr %"a", ptr %"b", i64 %".6", i64 %".8", i64 1, i64 1, i64 128, i64 1, i64 1)
  ret i32 0
}

!0 = distinct !{  }
!1 = !{ !"llvm.loop.parallel_accesses", !0 }
!2 = !{ !"llvm.loop.unroll.disable" }
!3 = distinct !{ !3, !1, !2 }
