; ModuleID = "elementwise"
target triple = ""
target datalayout = ""

define i32 @"ferrule_body"(ptr %"values", ptr %"in0", ptr %"in1", ptr %"out", i32 %"n") "prefer-vector-width"="512" noinline nounwind optnone
{
entry:
  %".7" = sext i32 %"n" to i64
  %"frame" = alloca [5 x i64], align 8
  store i64 %".7", ptr %"frame"
  %".9" = getelementptr inbounds i64, ptr %"frame", i64 1
  store ptr %"in0", ptr %".9"
  %".11" = getelementptr inbounds i64, ptr %"frame", i64 2
  store ptr %"in1", ptr %".11"
  %".13" = getelementptr inbounds i64, ptr %"frame", i64 3
  store ptr %"out", ptr %".13"
  %".15" = getelementptr inbounds i64, ptr %"frame", i64 4
  store i64 %".7", ptr %".15"
  %".17" = icmp sle i64 %".7", 2048
  br i1 %".17", label %"entry.if", label %"entry.else"
entry.if:
  %"status" = call i32 @"parallel"(ptr %"frame", ptr %"values", i64 0, i64 %".7")
  br label %"entry.endif"
entry.else:
  %"status.1" = call i32 @"ferrule_run_blocks"(ptr @"ferrule.threads", ptr @"parallel", ptr %"frame", ptr %"values", i64 %".7", i64 2048, i64 256)
  %".20" = icmp eq i32 %"status.1", -1
  %".21" = select  i1 %".20", i32 1, i32 %"status.1"
  br label %"entry.endif"
entry.endif:
  %"status.2" = phi  i32 [%"status", %"entry.if"], [%".21", %"entry.else"]
  %".23" = icmp eq i32 %"status.2", 0
  br i1 %".23", label %"on", label %"failed", !prof !3
failed:
  ret i32 %"status.2"
on:
  ret i32 0
}

define internal i32 @"parallel"(ptr %"frame", ptr %"values", i64 %"first", i64 %"last") "prefer-vector-width"="512" noinline nounwind
{
entry:
  %"size" = load i64, ptr %"frame"
  %".6" = getelementptr inbounds i64, ptr %"frame", i64 1
  %"in0" = load ptr, ptr %".6"
  %".7" = getelementptr inbounds i64, ptr %"frame", i64 2
  %"in1" = load ptr, ptr %".7"
  %".8" = getelementptr inbounds i64, ptr %"frame", i64 3
  %"out" = load ptr, ptr %".8"
  %".9" = getelementptr inbounds i64, ptr %"frame", i64 4
  %"symbol" = load i64, ptr %".9"
  br label %"i.head"
i.head:
  %"i" = phi  i64 [%"first", %"entry"], [%".21", %"i.body"]
  %".11" = icmp slt i64 %"i", %"last"
  br i1 %".11", label %"i.body", label %"i.end"
i.body:
  %".13" = getelementptr i16, ptr %"in0", i64 %"i"
  %"load" = load i16, ptr %".13", align 2, !llvm.access.group !0
  %".14" = getelementptr i16, ptr %"in1", i64 %"i"
  %"load.1" = load i16, ptr %".14", align 2, !llvm.access.group !0
  %".15" = call float @"float16_to_float32"(i16 %"load")
  %".16" = call float @"float16_to_float32"(i16 %"load.1")
  %".17" = fadd float %".15", %".16"
  %".18" = call i16 @"float32_to_float16"(float %".17")
  %".19" = getelementptr i16, ptr %"out", i64 %"i"
  store i16 %".18", ptr %".19", align 2, !llvm.access.group !0
  %".21" = add nsw i64 %"i", 1
  br label %"i.head", !llvm.loop !2
i.end:
  ret i32 0
}

define internal float @"float16_to_float32"(i16 %"x") alwaysinline nounwind
{
entry:
  %".3" = zext i16 %"x" to i32
  %".4" = and i32 %".3", 32767
  %".5" = and i32 %".3", 32768
  %".6" = shl i32 %".5", 16
  %".7" = shl i32 %".4", 13
  %".8" = add i32 %".7", 939524096
  %".9" = add i32 %".7", 1879048192
  %".10" = sitofp i32 %".4" to float
  %".11" = fmul float %".10", 0x3e70000000000000
  %".12" = icmp ult i32 %".4", 1024
  %".13" = bitcast float %".11" to i32
  %".14" = select  i1 %".12", i32 %".13", i32 %".8"
  %".15" = icmp uge i32 %".4", 31744
  %".16" = select  i1 %".15", i32 %".9", i32 %".14"
  %".17" = or i32 %".16", %".6"
  %".18" = bitcast i32 %".17" to float
  ret float %".18"
}

define internal i16 @"float32_to_float16"(float %"x") alwaysinline nounwind
{
entry:
  %".3" = bitcast float %"x" to i32
  %".4" = lshr i32 %".3", 16
  %".5" = and i32 %".4", 32768
  %".6" = and i32 %".3", 2147483647
  %".7" = lshr i32 %".6", 13
  %".8" = and i32 %".7", 1
  %".9" = add i32 %".6", %".8"
  %".10" = add i32 %".9", -939520001
  %".11" = lshr i32 %".10", 13
  %".12" = icmp ult i32 %".11", 31744
  %".13" = select  i1 %".12", i32 %".11", i32 31744
  %".14" = bitcast i32 %".6" to float
  %".15" = fadd float %".14", 0x3fe0000000000000
  %".16" = bitcast float %".15" to i32
  %".17" = sub i32 %".16", 1056964608
  %".18" = icmp ult i32 %".6", 947912704
  %".19" = select  i1 %".18", i32 %".17", i32 %".13"
  %".20" = lshr i32 %".6", 13
  %".21" = and i32 %".20", 1023
  %".22" = or i32 %".21", 32256
  %".23" = icmp ugt i32 %".6", 2139095040
  %".24" = select  i1 %".23", i32 %".22", i32 %".19"
  %".25" = or i32 %".24", %".5"
  %".26" = trunc i32 %".25" to i16
  ret i16 %".26"
}

@"ferrule.threads" = private global [83 x i64] zeroinitializer, align 8
declare i32 @"ferrule_run_blocks"(ptr %".1", ptr %".2", ptr %".3", ptr %".4", i64 %".5", i64 %".6", i64 %".7")

!0 = distinct !{  }
!1 = !{ !"llvm.loop.parallel_accesses", !0 }
!2 = distinct !{ !2, !1 }
!3 = !{ !"branch_weights", i32 99, i32 1 }
