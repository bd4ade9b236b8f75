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
  %".9" = mul nsw i64 %"first", 128
  %".10" = mul nsw i64 %"last", 128
  %"size" = trunc i64 %"n" to i32
  %".11" = call i64 @"llvm.smin.i64"(i64 %"n", i64 %".10")
  %".12" = call i64 @"llvm.smax.i64"(i64 %".11", i64 0)
  br label %"thread.x.head"
thread.x.head:
  %"thread.x" = phi  i64 [%".9", %"entry"], [%".21", %"thread.x.body"]
  %".14" = icmp slt i64 %"thread.x", %".12"
  br i1 %".14", label %"thread.x.body", label %"thread.x.end"
thread.x.body:
  %"add" = trunc i64 %"thread.x" to i32
  %".16" = mul i32 0, 128
  %"size.1" = trunc i64 %"n" to i32
  %".17" = getelementptr float, ptr %"a", i64 %"thread.x"
  %"load" = load float, ptr %".17", align 4, !llvm.access.group !0
  %".18" = fadd float %"load", 0x3ff0000000000000
  %".19" = getelementptr float, ptr %"b", i64 %"thread.x"
  store float %".18", ptr %".19", align 4, !llvm.access.group !0
  %".21" = add nsw i64 %"thread.x", 1
  br label %"thread.x.head", !llvm.loop !2
thread.x.end:
  ret i32 0
}

declare i64 @"llvm.smin.i64"(i64 %".1", i64 %".2")

declare i64 @"llvm.smax.i64"(i64 %".1", i64 %".2")

define i32 @"ferrule_body"(ptr %"values", ptr %"a", ptr %"b", i32 %"n") "prefer-vector-width"="512" noinline nounwind optnone
{
entry:
  %".6" = sext i32 %"n" to i64
  %".7" = add i64 %".6", 127
  %".8" = ashr i64 %".7", 7
  %"frame" = alloca [4 x i64], align 8
  store ptr %"a", ptr %"frame"
  %".10" = getelementptr inbounds i64, ptr %"frame", i64 1
  store ptr %"b", ptr %".10"
  %".12" = getelementptr inbounds i64, ptr %"frame", i64 2
  store i64 %".6", ptr %".12"
  %".14" = getelementptr inbounds i64, ptr %"frame", i64 3
  store i64 %".8", ptr %".14"
  %".16" = icmp sle i64 %".8", 5
  br i1 %".16", label %"entry.if", label %"entry.else"
entry.if:
  %"status" = call i32 @"blocks_device_add_one"(ptr %"frame", ptr %"values", i64 0, i64 %".8")
  br label %"entry.endif"
entry.else:
  %"status.1" = call i32 @"ferrule_run_blocks"(ptr @"ferrule.threads", ptr @"blocks_device_add_one", ptr %"frame", ptr %"values", i64 %".8", i64 6, i64 2)
  %".19" = icmp eq i32 %"status.1", -1
  %".20" = select  i1 %".19", i32 1, i32 %"status.1"
  br label %"entry.endif"
entry.endif:
  %"status.2" = phi  i32 [%"status", %"entry.if"], [%".20", %"entry.else"]
  %".22" = icmp eq i32 %"status.2", 0
  br i1 %".22", label %"on", label %"failed", !prof !3
failed:
  ret i32 %"status.2"
on:
  ret i32 0
}

@"ferrule.threads" = private global [83 x i64] zeroinitializer, align 8
declare i32 @"ferrule_run_blocks"(ptr %".1", ptr %".2", ptr %".3", ptr %".4", i64 %".5", i64 %".6", i64 %".7")

!0 = distinct !{  }
!1 = !{ !"llvm.loop.parallel_accesses", !0 }
!2 = distinct !{ !2, !1 }
!3 = !{ !"branch_weights", i32 99, i32 1 }
