; ModuleID = "ferrule.wrapper.scale"
target triple = ""
target datalayout = ""

define i32 @"__tvm_ffi_scale"(ptr %"handle", ptr %"args", i32 %"num_args", ptr %"result")
{
entry:
  %"values" = alloca [4 x i64], align 8
  %".6" = icmp eq i32 %"num_args", 2
  %"compact.strides" = alloca i64, align 8
  br i1 %".6", label %"ok", label %"raise"
ok:
  %"type_index" = load i32, ptr %"args"
  %"v_ptr.at" = getelementptr inbounds i8, ptr %"args", i64 8
  %"v_ptr" = load ptr, ptr %"v_ptr.at"
  %"dl.at" = getelementptr inbounds i8, ptr %"v_ptr", i64 24
  %".8" = icmp eq i32 %"type_index", 70
  br i1 %".8", label %"tensor", label %"view"
view:
  %".10" = icmp eq i32 %"type_index", 7
  br i1 %".10", label %"ok.1", label %"raise"
tensor:
  %"a" = phi  ptr [%"dl.at", %"ok"], [%"v_ptr", %"ok.2"]
  %"ndim.at" = getelementptr inbounds i8, ptr %"a", i64 16
  %"kind" = load i64, ptr %"ndim.at"
  %".15" = icmp eq i64 %"kind", 316667938734081
  br i1 %".15", label %"ok.3", label %"doubt"
ok.1:
  %".12" = icmp ne ptr %"v_ptr", null
  br i1 %".12", label %"ok.2", label %"raise"
ok.2:
  br label %"tensor"
ok.3:
  %"device_type.at" = getelementptr inbounds i8, ptr %"a", i64 8
  %"device_type" = load i32, ptr %"device_type.at"
  %".21" = icmp eq i32 %"device_type", 1
  br i1 %".21", label %"ok.4", label %"raise"
ok.4:
  %".23" = getelementptr inbounds [16 x i8], ptr %"args", i64 1
  %"type_index.1" = load i32, ptr %".23"
  %".24" = sub i32 %"type_index.1", 1
  %".25" = icmp ule i32 %".24", 1
  br i1 %".25", label %"ok.5", label %"raise"
ok.5:
  %"shape.at" = getelementptr inbounds i8, ptr %"a", i64 24
  %"shape" = load ptr, ptr %"shape.at"
  %"a.n0" = load i64, ptr %"shape"
  %".27" = icmp ule i64 %"a.n0", 2147483647
  br i1 %".27", label %"ok.6", label %"raise"
ok.6:
  %"strides.at" = getelementptr inbounds i8, ptr %"a", i64 32
  %"strides" = load ptr, ptr %"strides.at"
  %".29" = icmp eq ptr %"strides", null
  br i1 %".29", label %"compact", label %"strides.1"
strides.1:
  %"a.strides" = phi  ptr [%"strides", %"ok.6"], [%"compact.strides", %"compact"]
  %"a.s0" = load i64, ptr %"a.strides"
  %".33" = icmp eq i64 %"a.s0", 1
  br i1 %".33", label %"ok.7", label %"doubt.1"
ok.7:
  %"data" = load ptr, ptr %"a"
  %"byte_offset.at" = getelementptr inbounds i8, ptr %"a", i64 40
  %"byte_offset" = load i64, ptr %"byte_offset.at"
  %"a.data" = getelementptr i8, ptr %"data", i64 %"byte_offset"
  %".37" = ptrtoint ptr %"a.data" to i64
  %".38" = and i64 %".37", 3
  %".39" = icmp eq i64 %".38", 0
  br i1 %".39", label %"ok.8", label %"raise"
ok.8:
  %".41" = icmp ne ptr %"data", null
  br i1 %".41", label %"ok.9", label %"doubt.2"
ok.9:
  %"v_int64.at" = getelementptr inbounds i8, ptr %".23", i64 8
  %"v_int64" = load i64, ptr %"v_int64.at"
  %".45" = add i64 %"v_int64", 2147483648
  %".46" = icmp ult i64 %".45", 4294967296
  br i1 %".46", label %"ok.10", label %"raise"
ok.10:
  %".48" = trunc i64 %"v_int64" to i32
  %".49" = trunc i64 %"a.n0" to i32
  %"status" = call i32 @"ferrule_body"(ptr %"values", ptr %"a.data", i32 %".48", i32 %".49")
  ret i32 0
doubt:
  %".17" = trunc i64 %"kind" to i32
  %".18" = icmp eq i32 %".17", 1
  %".19" = select  i1 %".18", i32 4, i32 3
  br label %"raise"
compact:
  call preserve_mostcc void @"ferrule_compact"(ptr %"shape", i32 1, ptr %"compact.strides")
  br label %"strides.1"
doubt.1:
  %".35" = call preserve_mostcc i1 @"ferrule_moot"(ptr %"shape", i32 1, i32 0)
  br i1 %".35", label %"ok.7", label %"raise"
doubt.2:
  %".43" = call preserve_mostcc i1 @"ferrule_moot"(ptr %"shape", i32 1, i32 -1)
  br i1 %".43", label %"ok.9", label %"raise"
raise:
  %"message" = phi  i32 [0, %"entry"], [1, %"view"], [2, %"ok.1"], [%".19", %"doubt"], [5, %"ok.3"], [6, %"ok.4"], [7, %"ok.5"], [8, %"doubt.1"], [9, %"ok.7"], [10, %"doubt.2"], [11, %"ok.9"]
  call void @"ferrule_raise"(ptr @".bytes.0", i32 %"message", ptr %"args", i32 %"num_args", ptr %"values")
  ret i32 -1
}

declare preserve_mostcc void @"ferrule_compact"(ptr %".1", i32 %".2", ptr %".3") cold

declare preserve_mostcc i1 @"ferrule_moot"(ptr %".1", i32 %".2", i32 %".3") cold

declare i32 @"ferrule_body"(ptr %".1", ptr %".2", i32 %".3", i32 %".4")

@".bytes.0" = private unnamed_addr constant [… x i8] c"…", align 8
declare void @"ferrule_raise"(ptr %".1", i32 %".2", ptr %".3", i32 %".4", ptr %".5") cold
