; ModuleID = "add_one"
target triple = ""
target datalayout = ""

define internal i32 @"blocks_device_add_one"(ptr %"frame", ptr %"values", i64 %"first", i64 %"last") "prefer-vector-width"="512" noinline nounwind
{
entry:
  %"a" = load ptr, ptr %"frame"
  %".6" = getelementptr inbounds i64, ptr %"frame", i64 1
  %"b" = load ptr, ptr %".6"
  %".7" = getelementptr inbounds i64, ptr %"frame", i64 2
  %"n" = load i64, ptr %".7"
  %".8" = getelementptr inbounds i64, ptr %"frame", i64 3
  %"grid.x" = load i64, ptr %".8"
  %".9" = getelementptr inbounds i64, ptr %"frame", i64 4
  %"grid.y" = load i64, ptr %".9"
  %".10" = getelementptr inbounds i64, ptr %"frame", i64 5
  %"grid.z" = load i64, ptr %".10"
  %".11" = getelementptr inbounds i64, ptr %"frame", i64 6
  %"block.x" = load i64, ptr %".11"
  %".12" = getelementptr inbounds i64, ptr %"frame", i64 7
  %"block.y" = load i64, ptr %".12"
  %".13" = getelementptr inbounds i64, ptr %"frame", i64 8
  %"block.z" = load i64, ptr %".13"
  %".14" = mul nsw i64 %"first", 128
  %".15" = mul nsw i64 %"last", 128
  %"size" = trunc i64 %"n" to i32
  %".16" = call i64 @"llvm.smin.i64"(i64 %"n", i64 %".15")
  %".17" = call i64 @"llvm.smax.i64"(i64 %".16", i64 0)
  br label %"thread.x.head"
thread.x.head:
  %"thread.x" = phi  i64 [%".14", %"entry"], [%".26", %"thread.x.body"]
  %".19" = icmp slt i64 %"thread.x", %".17"
  br i1 %".19", label %"thread.x.body", label %"thread.x.end"
thread.x.body:
  %"add" = trunc i64 %"thread.x" to i32
  %".21" = mul i32 0, 128
  %"size.1" = trunc i64 %"n" to i32
  %".22" = getelementptr float, ptr %"a", i64 %"thread.x"
  %"load" = load float, ptr %".22", align 4, !llvm.access.group !0
  %".23" = fadd float %"load", 0x3ff0000000000000
  %".24" = getelementptr float, ptr %"b", i64 %"thread.x"
  store float %".23", ptr %".24", align 4, !llvm.access.group !0
  %".26" = add nsw i64 %"thread.x", 1
  br label %"thread.x.head", !llvm.loop !3
thread.x.end:
  ret i32 0
}

declare i64 @"llvm.smin.i64"(i64 %".1", i64 %".2")

declare i64 @"llvm.smax.i64"(i64 %".1", i64 %".2")

define i32 @"ferrule_body"(ptr %"values", ptr %"a", ptr %"b", i32 %"n") "prefer-vector-width"="512" nounwind
{
entry:
  %".6" = sext i32 %"n" to i64
  %".7" = add i64 %".6", 127
  %".8" = ashr i64 %".7", 7
  %"frame" = alloca [9 x i64], align 8
  store ptr %"a", ptr %"frame"
  %".10" = getelementptr inbounds i64, ptr %"frame", i64 1
  store ptr %"b", ptr %".10"
  %".12" = getelementptr inbounds i64, ptr %"frame", i64 2
  store i64 %".6", ptr %".12"
  %".14" = getelementptr inbounds i64, ptr %"frame", i64 3
  store i64 %".8", ptr %".14"
  %".16" = getelementptr inbounds i64, ptr %"frame", i64 4
  store i64 1, ptr %".16"
  %".18" = getelementptr inbounds i64, ptr %"frame", i64 5
  store i64 1, ptr %".18"
  %".20" = getelementptr inbounds i64, ptr %"frame", i64 6
  store i64 128, ptr %".20"
  %".22" = getelementptr inbounds i64, ptr %"frame", i64 7
  store i64 1, ptr %".22"
  %".24" = getelementptr inbounds i64, ptr %"frame", i64 8
  store i64 1, ptr %".24"
  %"status" = alloca i32, align 4
  %".26" = icmp sle i64 %".8", 5
  br i1 %".26", label %"entry.if", label %"entry.else"
entry.if:
  %"status.1" = call i32 @"blocks_device_add_one"(ptr %"frame", ptr %"values", i64 0, i64 %".8")
  store i32 %"status.1", ptr %"status"
  br label %"entry.endif"
entry.else:
  %"status.2" = call i32 @"ferrule_run_blocks"(ptr @"ferrule.threads", ptr @"blocks_device_add_one", ptr %"frame", ptr %"values", i64 %".8", i64 6, i64 2)
  %".30" = icmp eq i32 %"status.2", -1
  %".31" = select  i1 %".30", i32 1, i32 %"status.2"
  store i32 %".31", ptr %"status"
  br label %"entry.endif"
entry.endif:
  %".34" = load i32, ptr %"status"
  %".35" = icmp eq i32 %".34", 0
  br i1 %".35", label %"on", label %"failed", !prof !4
on:
  ret i32 0
failed:
  ret i32 %".34"
}

@"ferrule.threads" = internal global [9 x i64] zeroinitializer, align 8
declare i32 @"ferrule_run_blocks"(ptr %".1", ptr %".2", ptr %".3", ptr %".4", i64 %".5", i64 %".6", i64 %".7")

!0 = distinct !{  }
!1 = !{ !"llvm.loop.parallel_accesses", !0 }
!2 = !{ !"llvm.loop.unroll.disable" }
!3 = distinct !{ !3, !1, !2 }
!4 = !{ !"branch_weights", i32 99, i32 1 }
