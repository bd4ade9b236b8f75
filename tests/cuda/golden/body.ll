; ModuleID = "launches"
target triple = ""
target datalayout = ""

@".bytes.0" = private unnamed_addr constant [228 x i8] c".version 7.8\0a.target sm_80\0a.address_size 64\0a\0a.visible .entry first(\0a    .param .u64 .ptr .global .align 4 first_a,\0a    .param .f32 first_b\0a)\0a{\0a    ret;\0a}\0a.visible .entry second(.param .align 8 .b8 second_both[16])\0a{\0a    ret;\0a}\0a\00", align 16
@"cuda.images" = private unnamed_addr constant [1 x {i32, i32, ptr, ptr}] [{i32, i32, ptr, ptr} {i32 0, i32 0, ptr @".bytes.0", ptr null}], align 8
@".bytes.1" = private unnamed_addr constant [30 x i8] c"an unknown architecture (PTX)\00", align 1
@".bytes.2" = private unnamed_addr constant [13 x i8] c"first\00second\00", align 1
@"cuda.program" = private unnamed_addr constant {ptr, i64, ptr, ptr, ptr, i64, ptr, i64} {ptr @"cuda.images", i64 1, ptr @".bytes.1", ptr null, ptr null, i64 0, ptr @".bytes.2", i64 2}, align 8
@"cuda.state" = internal global [1848 x i8] zeroinitializer, align 8
define internal void @"cuda.register"()
{
entry:
  %".2" = call i32 @"ferrule_cuda_register"(ptr @"cuda.state")
  ret void
}

declare i32 @"ferrule_cuda_register"(ptr %".1")

@"llvm.global_ctors" = appending global [1 x {i32, ptr, ptr}] [{i32, ptr, ptr} {i32 65535, ptr @"cuda.register", ptr null}]
define internal void @"cuda.unload"()
{
entry:
  %".2" = call i32 @"ferrule_cuda_unload"(ptr @"cuda.state")
  ret void
}

declare i32 @"ferrule_cuda_unload"(ptr %".1")

@"llvm.global_dtors" = appending global [1 x {i32, ptr, ptr}] [{i32, ptr, ptr} {i32 65535, ptr @"cuda.unload", ptr null}]
define i32 @"ferrule_body"(ptr %"values", i32 %"device", i32 %"kernel", i64 %"grid_x", i64 %"grid_y", i64 %"grid_z", i64 %"block_x", i64 %"block_y", i64 %"block_z", i32 %"smem", i64 %"stream", i64 %"a", i32 %"b")
{
entry:
  %"current" = alloca i32, align 4
  %"phase" = load atomic i32, ptr @"cuda.state" acquire, align 4
  %".15" = icmp eq i32 %"phase", 1
  %"stream.1" = alloca ptr, align 8
  %"a.1" = alloca i64, align 8
  %"both" = alloca [2 x i64], align 8
  %"b.1" = alloca i32, align 4
  %"status" = alloca i32, align 4
  %"config" = alloca [56 x i8], align 8
  %"parameters" = alloca [2 x ptr], align 8
  %"config.1" = alloca [56 x i8], align 8
  %"parameters.1" = alloca ptr, align 8
  %"unread" = alloca [16 x i64], align 8
  br i1 %".15", label %"cuda.ask", label %"cuda.open", !prof !0
cuda.open:
  %".17" = call i32 @"ferrule_cuda_open"(ptr @"cuda.state", ptr @"cuda.program", i32 %"device", ptr %"values")
  %".18" = icmp eq i32 %".17", 0
  br i1 %".18", label %"cuda.ask", label %"cuda.entered", !prof !0
cuda.ask:
  %"cuCtxGetDevice.at" = getelementptr inbounds i8, ptr @"cuda.state", i64 80
  %"cuCtxGetDevice" = load ptr, ptr %"cuCtxGetDevice.at"
  %"cuCtxGetDevice.result" = call i32 %"cuCtxGetDevice"(ptr %"current")
  %".20" = icmp eq i32 %"cuCtxGetDevice.result", 0
  %"found" = load i32, ptr %"current"
  %".21" = icmp eq i32 %"found", %"device"
  %".22" = icmp slt i32 %"device", 0
  %".23" = or i1 %".21", %".22"
  %".24" = and i1 %".20", %".23"
  br i1 %".24", label %"cuda.entered", label %"cuda.change", !prof !0
cuda.change:
  %".26" = call i32 @"ferrule_cuda_push"(ptr @"cuda.state", i32 %"device", i32 %"cuCtxGetDevice.result", ptr %"values")
  %".27" = select  i1 %".22", i32 0, i32 %"device"
  br label %"cuda.entered"
cuda.entered:
  %"entered" = phi  i32 [%".17", %"cuda.open"], [0, %"cuda.ask"], [%".26", %"cuda.change"]
  %"used" = phi  i32 [%"device", %"cuda.open"], [%"found", %"cuda.ask"], [%".27", %"cuda.change"]
  %".29" = icmp eq i32 %"entered", -1
  %".30" = select  i1 %".29", i32 0, i32 %"entered"
  %".31" = icmp ne i32 %".30", 0
  br i1 %".31", label %"cuda.entered.if", label %"cuda.entered.endif", !prof !1
cuda.entered.if:
  ret i32 %".30"
cuda.entered.endif:
  %".34" = inttoptr i64 %"stream" to ptr
  store ptr %".34", ptr %"stream.1"
  %".36" = icmp eq i64 %"stream", -1
  br i1 %".36", label %"cuda.entered.endif.if", label %"cuda.entered.endif.endif"
cuda.entered.endif.if:
  %"stream.2" = call ptr @"TVMFFIEnvGetStream"(i32 2, i32 %"used")
  store ptr %"stream.2", ptr %"stream.1"
  br label %"cuda.entered.endif.endif"
cuda.entered.endif.endif:
  %".40" = load ptr, ptr %"stream.1"
  store i64 %"a", ptr %"a.1"
  store i32 %"b", ptr %"b.1"
  store i64 %"a", ptr %"both"
  %".44" = sext i32 %"b" to i64
  %".45" = getelementptr inbounds i64, ptr %"both", i64 1
  store i64 %".44", ptr %".45"
  %".47" = icmp eq i32 %"kernel", 0
  br i1 %".47", label %"cuda.entered.endif.endif.if", label %"cuda.entered.endif.endif.else"
cuda.entered.endif.endif.if:
  %".49" = trunc i64 %"grid_x" to i32
  store i32 %".49", ptr %"config"
  %".51" = trunc i64 %"grid_y" to i32
  %"gridDimY.at" = getelementptr inbounds i8, ptr %"config", i64 4
  store i32 %".51", ptr %"gridDimY.at"
  %".53" = trunc i64 %"grid_z" to i32
  %"gridDimZ.at" = getelementptr inbounds i8, ptr %"config", i64 8
  store i32 %".53", ptr %"gridDimZ.at"
  %".55" = trunc i64 %"block_x" to i32
  %"blockDimX.at" = getelementptr inbounds i8, ptr %"config", i64 12
  store i32 %".55", ptr %"blockDimX.at"
  %".57" = trunc i64 %"block_y" to i32
  %"blockDimY.at" = getelementptr inbounds i8, ptr %"config", i64 16
  store i32 %".57", ptr %"blockDimY.at"
  %".59" = trunc i64 %"block_z" to i32
  %"blockDimZ.at" = getelementptr inbounds i8, ptr %"config", i64 20
  store i32 %".59", ptr %"blockDimZ.at"
  %"sharedMemBytes.at" = getelementptr inbounds i8, ptr %"config", i64 24
  store i32 %"smem", ptr %"sharedMemBytes.at"
  %"hStream.at" = getelementptr inbounds i8, ptr %"config", i64 32
  store ptr %".40", ptr %"hStream.at"
  %"attrs.at" = getelementptr inbounds i8, ptr %"config", i64 40
  store ptr null, ptr %"attrs.at"
  %"numAttrs.at" = getelementptr inbounds i8, ptr %"config", i64 48
  store i32 0, ptr %"numAttrs.at"
  store ptr %"a.1", ptr %"parameters"
  %".66" = getelementptr inbounds ptr, ptr %"parameters", i64 1
  store ptr %"b.1", ptr %".66"
  %".68" = icmp eq i64 %"grid_x", 0
  %".69" = icmp eq i64 %"grid_y", 0
  %".70" = icmp eq i64 %"grid_z", 0
  %".71" = or i1 %".68", %".69"
  %".72" = or i1 %".71", %".70"
  br i1 %".72", label %"cuda.launched", label %"cuda.launch", !prof !1
cuda.entered.endif.endif.else:
  %".86" = trunc i64 %"grid_x" to i32
  store i32 %".86", ptr %"config.1"
  %".88" = trunc i64 %"grid_y" to i32
  %"gridDimY.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 4
  store i32 %".88", ptr %"gridDimY.at.1"
  %".90" = trunc i64 %"grid_z" to i32
  %"gridDimZ.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 8
  store i32 %".90", ptr %"gridDimZ.at.1"
  %".92" = trunc i64 %"block_x" to i32
  %"blockDimX.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 12
  store i32 %".92", ptr %"blockDimX.at.1"
  %".94" = trunc i64 %"block_y" to i32
  %"blockDimY.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 16
  store i32 %".94", ptr %"blockDimY.at.1"
  %".96" = trunc i64 %"block_z" to i32
  %"blockDimZ.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 20
  store i32 %".96", ptr %"blockDimZ.at.1"
  %"sharedMemBytes.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 24
  store i32 %"smem", ptr %"sharedMemBytes.at.1"
  %"hStream.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 32
  store ptr %".40", ptr %"hStream.at.1"
  %"attrs.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 40
  store ptr null, ptr %"attrs.at.1"
  %"numAttrs.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 48
  store i32 0, ptr %"numAttrs.at.1"
  store ptr %"both", ptr %"parameters.1"
  %".103" = icmp eq i64 %"grid_x", 0
  %".104" = icmp eq i64 %"grid_y", 0
  %".105" = icmp eq i64 %"grid_z", 0
  %".106" = or i1 %".103", %".104"
  %".107" = or i1 %".106", %".105"
  br i1 %".107", label %"cuda.launched.1", label %"cuda.launch.1", !prof !1
cuda.entered.endif.endif.endif:
  %".121" = load i32, ptr %"status"
  %".122" = icmp ne i32 %".121", 0
  br i1 %".122", label %"cuda.entered.endif.endif.endif.if", label %"cuda.entered.endif.endif.endif.endif", !prof !1
cuda.launch:
  %".74" = getelementptr inbounds i8, ptr @"cuda.state", i64 1712
  %".75" = icmp ule i32 %"smem", 49152
  br i1 %".75", label %"cuda.allowed", label %"cuda.allow"
cuda.failed:
  %".82" = call i32 @"ferrule_cuda_refused"(ptr @"cuda.state", ptr @"cuda.program", ptr %".74", ptr %"first", ptr %"config", ptr %"parameters", i32 %"cuLaunchKernelEx.result", ptr %"values")
  br label %"cuda.launched"
cuda.launched:
  %"launched" = phi  i32 [0, %"cuda.entered.endif.endif.if"], [0, %"cuda.allowed"], [%".82", %"cuda.failed"], [%".77", %"cuda.allow"]
  store i32 %"launched", ptr %"status"
  br label %"cuda.entered.endif.endif.endif"
cuda.allow:
  %".77" = call i32 @"ferrule_cuda_allow"(ptr @"cuda.state", ptr %".74", i32 %"used", i32 %"smem", ptr %"values")
  %".78" = icmp eq i32 %".77", 0
  br i1 %".78", label %"cuda.allowed", label %"cuda.launched", !prof !0
cuda.allowed:
  %"first" = load ptr, ptr %".74"
  %"cuLaunchKernelEx.at" = getelementptr inbounds i8, ptr @"cuda.state", i64 104
  %"cuLaunchKernelEx" = load ptr, ptr %"cuLaunchKernelEx.at"
  %"cuLaunchKernelEx.result" = call i32 %"cuLaunchKernelEx"(ptr %"config", ptr %"first", ptr %"parameters", ptr null)
  %".80" = icmp eq i32 %"cuLaunchKernelEx.result", 0
  br i1 %".80", label %"cuda.launched", label %"cuda.failed", !prof !0
cuda.launch.1:
  %".109" = getelementptr inbounds i8, ptr @"cuda.state", i64 1768
  %".110" = icmp ule i32 %"smem", 49152
  br i1 %".110", label %"cuda.allowed.1", label %"cuda.allow.1"
cuda.failed.1:
  %".117" = call i32 @"ferrule_cuda_refused"(ptr @"cuda.state", ptr @"cuda.program", ptr %".109", ptr %"second", ptr %"config.1", ptr %"parameters.1", i32 %"cuLaunchKernelEx.result.1", ptr %"values")
  br label %"cuda.launched.1"
cuda.launched.1:
  %"launched.1" = phi  i32 [0, %"cuda.entered.endif.endif.else"], [0, %"cuda.allowed.1"], [%".117", %"cuda.failed.1"], [%".112", %"cuda.allow.1"]
  store i32 %"launched.1", ptr %"status"
  br label %"cuda.entered.endif.endif.endif"
cuda.allow.1:
  %".112" = call i32 @"ferrule_cuda_allow"(ptr @"cuda.state", ptr %".109", i32 %"used", i32 %"smem", ptr %"values")
  %".113" = icmp eq i32 %".112", 0
  br i1 %".113", label %"cuda.allowed.1", label %"cuda.launched.1", !prof !0
cuda.allowed.1:
  %"second" = load ptr, ptr %".109"
  %"cuLaunchKernelEx.at.1" = getelementptr inbounds i8, ptr @"cuda.state", i64 104
  %"cuLaunchKernelEx.1" = load ptr, ptr %"cuLaunchKernelEx.at.1"
  %"cuLaunchKernelEx.result.1" = call i32 %"cuLaunchKernelEx.1"(ptr %"config.1", ptr %"second", ptr %"parameters.1", ptr null)
  %".115" = icmp eq i32 %"cuLaunchKernelEx.result.1", 0
  br i1 %".115", label %"cuda.launched.1", label %"cuda.failed.1", !prof !0
cuda.entered.endif.endif.endif.if:
  br i1 %".29", label %"cuda.pop", label %"cuda.left", !prof !1
cuda.entered.endif.endif.endif.endif:
  br i1 %".29", label %"cuda.pop.1", label %"cuda.left.1", !prof !1
cuda.pop:
  %".125" = call i32 @"ferrule_cuda_pop"(ptr @"cuda.state", ptr %"unread")
  br label %"cuda.left"
cuda.left:
  ret i32 %".121"
cuda.pop.1:
  %".129" = call i32 @"ferrule_cuda_pop"(ptr @"cuda.state", ptr %"values")
  br label %"cuda.left.1"
cuda.left.1:
  %"left" = phi  i32 [0, %"cuda.entered.endif.endif.endif.endif"], [%".129", %"cuda.pop.1"]
  ret i32 %"left"
}

declare i32 @"ferrule_cuda_open"(ptr %".1", ptr %".2", i32 %".3", ptr %".4") cold nounwind

declare i32 @"ferrule_cuda_push"(ptr %".1", i32 %".2", i32 %".3", ptr %".4") cold nounwind

declare ptr @"TVMFFIEnvGetStream"(i32 %".1", i32 %".2")

declare i32 @"ferrule_cuda_allow"(ptr %".1", ptr %".2", i32 %".3", i32 %".4", ptr %".5") cold nounwind

declare i32 @"ferrule_cuda_refused"(ptr %".1", ptr %".2", ptr %".3", ptr %".4", ptr %".5", ptr %".6", i32 %".7", ptr %".8") cold nounwind

declare i32 @"ferrule_cuda_pop"(ptr %".1", ptr %".2") cold nounwind

!0 = !{ !"branch_weights", i32 99, i32 1 }
!1 = !{ !"branch_weights", i32 1, i32 99 }
