; ModuleID = "launches"
target triple = ""
target datalayout = ""

@".bytes.0" = private unnamed_addr constant [13 x i8] c"first\00second\00", align 1
@".bytes.1" = private unnamed_addr constant [228 x i8] c".version 7.8\0a.target sm_80\0a.address_size 64\0a\0a.visible .entry first(\0a    .param .u64 .ptr .global .align 4 first_a,\0a    .param .f32 first_b\0a)\0a{\0a    ret;\0a}\0a.visible .entry second(.param .align 8 .b8 second_both[16])\0a{\0a    ret;\0a}\0a\00", align 16
@"cuda.state" = internal global [1168 x i8] zeroinitializer, align 8
define i32 @"ferrule_body"(ptr %"values", i32 %"device", i32 %"kernel", i64 %"grid_x", i64 %"grid_y", i64 %"grid_z", i64 %"block_x", i64 %"block_y", i64 %"block_z", i32 %"smem", i64 %"stream", i64 %"a", i32 %"b")
{
entry:
  %"current" = alloca i32, align 4
  %"phase" = load atomic i32, ptr @"cuda.state" acquire, align 4
  %".15" = icmp eq i32 %"phase", 2
  %"stream.1" = alloca ptr, align 8
  %"a.1" = alloca i64, align 8
  %"both" = alloca [2 x i64], align 8
  %"b.1" = alloca i32, align 4
  %"status" = alloca i32, align 4
  %"config" = alloca [56 x i8], align 8
  %"parameters" = alloca [2 x ptr], align 8
  %"config.1" = alloca [56 x i8], align 8
  %"parameters.1" = alloca ptr, align 8
  %"unread" = alloca [4 x i64], align 8
  br i1 %".15", label %"cuda.ask", label %"cuda.open", !prof !0
cuda.open:
  %".17" = call i32 @"ferrule_cuda_open"(ptr @"cuda.state", ptr @".bytes.1", ptr @".bytes.0", i64 2, ptr %"values")
  %".18" = icmp eq i32 %".17", 0
  br i1 %".18", label %"cuda.ask", label %"cuda.entered", !prof !0
cuda.ask:
  %"cuCtxGetDevice.at" = getelementptr inbounds i8, ptr @"cuda.state", i64 72
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
  %".81" = trunc i64 %"grid_x" to i32
  store i32 %".81", ptr %"config.1"
  %".83" = trunc i64 %"grid_y" to i32
  %"gridDimY.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 4
  store i32 %".83", ptr %"gridDimY.at.1"
  %".85" = trunc i64 %"grid_z" to i32
  %"gridDimZ.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 8
  store i32 %".85", ptr %"gridDimZ.at.1"
  %".87" = trunc i64 %"block_x" to i32
  %"blockDimX.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 12
  store i32 %".87", ptr %"blockDimX.at.1"
  %".89" = trunc i64 %"block_y" to i32
  %"blockDimY.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 16
  store i32 %".89", ptr %"blockDimY.at.1"
  %".91" = trunc i64 %"block_z" to i32
  %"blockDimZ.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 20
  store i32 %".91", ptr %"blockDimZ.at.1"
  %"sharedMemBytes.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 24
  store i32 %"smem", ptr %"sharedMemBytes.at.1"
  %"hStream.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 32
  store ptr %".40", ptr %"hStream.at.1"
  %"attrs.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 40
  store ptr null, ptr %"attrs.at.1"
  %"numAttrs.at.1" = getelementptr inbounds i8, ptr %"config.1", i64 48
  store i32 0, ptr %"numAttrs.at.1"
  store ptr %"both", ptr %"parameters.1"
  %".98" = icmp eq i64 %"grid_x", 0
  %".99" = icmp eq i64 %"grid_y", 0
  %".100" = icmp eq i64 %"grid_z", 0
  %".101" = or i1 %".98", %".99"
  %".102" = or i1 %".101", %".100"
  br i1 %".102", label %"cuda.launched.1", label %"cuda.launch.1", !prof !1
cuda.entered.endif.endif.endif:
  %".111" = load i32, ptr %"status"
  %".112" = icmp ne i32 %".111", 0
  br i1 %".112", label %"cuda.entered.endif.endif.endif.if", label %"cuda.entered.endif.endif.endif.endif", !prof !1
cuda.launch:
  %".74" = getelementptr inbounds i8, ptr @"cuda.state", i64 1152
  %"first" = load ptr, ptr %".74"
  %"cuLaunchKernelEx.at" = getelementptr inbounds i8, ptr @"cuda.state", i64 96
  %"cuLaunchKernelEx" = load ptr, ptr %"cuLaunchKernelEx.at"
  %"cuLaunchKernelEx.result" = call i32 %"cuLaunchKernelEx"(ptr %"config", ptr %"first", ptr %"parameters", ptr null)
  %".75" = icmp eq i32 %"cuLaunchKernelEx.result", 0
  br i1 %".75", label %"cuda.launched", label %"cuda.failed", !prof !0
cuda.failed:
  %".77" = call i32 @"ferrule_cuda_failed"(ptr @"cuda.state", i32 %"cuLaunchKernelEx.result", ptr @".bytes.2", ptr %"values")
  br label %"cuda.launched"
cuda.launched:
  %"launched" = phi  i32 [0, %"cuda.entered.endif.endif.if"], [0, %"cuda.launch"], [%".77", %"cuda.failed"]
  store i32 %"launched", ptr %"status"
  br label %"cuda.entered.endif.endif.endif"
cuda.launch.1:
  %".104" = getelementptr inbounds i8, ptr @"cuda.state", i64 1160
  %"second" = load ptr, ptr %".104"
  %"cuLaunchKernelEx.at.1" = getelementptr inbounds i8, ptr @"cuda.state", i64 96
  %"cuLaunchKernelEx.1" = load ptr, ptr %"cuLaunchKernelEx.at.1"
  %"cuLaunchKernelEx.result.1" = call i32 %"cuLaunchKernelEx.1"(ptr %"config.1", ptr %"second", ptr %"parameters.1", ptr null)
  %".105" = icmp eq i32 %"cuLaunchKernelEx.result.1", 0
  br i1 %".105", label %"cuda.launched.1", label %"cuda.failed.1", !prof !0
cuda.failed.1:
  %".107" = call i32 @"ferrule_cuda_failed"(ptr @"cuda.state", i32 %"cuLaunchKernelEx.result.1", ptr @".bytes.2", ptr %"values")
  br label %"cuda.launched.1"
cuda.launched.1:
  %"launched.1" = phi  i32 [0, %"cuda.entered.endif.endif.else"], [0, %"cuda.launch.1"], [%".107", %"cuda.failed.1"]
  store i32 %"launched.1", ptr %"status"
  br label %"cuda.entered.endif.endif.endif"
cuda.entered.endif.endif.endif.if:
  br i1 %".29", label %"cuda.pop", label %"cuda.left", !prof !1
cuda.entered.endif.endif.endif.endif:
  br i1 %".29", label %"cuda.pop.1", label %"cuda.left.1", !prof !1
cuda.pop:
  %".115" = call i32 @"ferrule_cuda_pop"(ptr @"cuda.state", ptr %"unread")
  br label %"cuda.left"
cuda.left:
  ret i32 %".111"
cuda.pop.1:
  %".119" = call i32 @"ferrule_cuda_pop"(ptr @"cuda.state", ptr %"values")
  br label %"cuda.left.1"
cuda.left.1:
  %"left" = phi  i32 [0, %"cuda.entered.endif.endif.endif.endif"], [%".119", %"cuda.pop.1"]
  ret i32 %"left"
}

declare i32 @"ferrule_cuda_open"(ptr %".1", ptr %".2", ptr %".3", i64 %".4", ptr %".5") cold nounwind

declare i32 @"ferrule_cuda_push"(ptr %".1", i32 %".2", i32 %".3", ptr %".4") cold nounwind

declare ptr @"TVMFFIEnvGetStream"(i32 %".1", i32 %".2")

@".bytes.2" = private unnamed_addr constant [17 x i8] c"cuLaunchKernelEx\00", align 1
declare i32 @"ferrule_cuda_failed"(ptr %".1", i32 %".2", ptr %".3", ptr %".4") cold nounwind

declare i32 @"ferrule_cuda_pop"(ptr %".1", ptr %".2") cold nounwind

!0 = !{ !"branch_weights", i32 99, i32 1 }
!1 = !{ !"branch_weights", i32 1, i32 99 }
