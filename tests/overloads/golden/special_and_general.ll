@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.2 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.3 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body.0(ptr, ptr)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
declare i32 @ferrule_body.1(ptr, ptr)
declare void @ferrule_refuse(ptr, i64, ptr, ptr, i32, ptr) cold
define i32 @f.candidate0(ptr %args, i32 %num_args, ptr %result, i32 %way) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [2 x i64], align 8
  %c.12 = icmp eq i32 %way, 0
  br i1 %c.12, label %hot.11, label %check.8
hot.11:
  %c.13 = icmp eq i32 %num_args, 1
  br i1 %c.13, label %ok.14, label %refused.6
ok.14:
  %index.15 = load i32, ptr %args
  %at.16 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.17 = load ptr, ptr %at.16
  %at.18 = getelementptr inbounds i8, ptr %payload.17, i64 24
  %c.19 = icmp eq i32 %index.15, 70
  br i1 %c.19, label %tensor.21, label %view.20
view.20:
  %c.22 = icmp eq i32 %index.15, 7
  br i1 %c.22, label %ok.23, label %refused.6
ok.23:
  %c.24 = icmp ne ptr %payload.17, null
  br i1 %c.24, label %tensor.21, label %in_doubt.7
tensor.21:
  %a.25 = phi ptr [ %at.18, %ok.14 ], [ %payload.17, %ok.23 ]
  %at.26 = getelementptr inbounds i8, ptr %a.25, i64 16
  %kind.27 = load i64, ptr %at.26
  %c.28 = icmp eq i64 %kind.27, 299075752689665
  br i1 %c.28, label %ok.29, label %refused.6
ok.29:
  %at.30 = getelementptr inbounds i8, ptr %a.25, i64 8
  %device_type.31 = load i32, ptr %at.30
  %c.32 = icmp eq i32 %device_type.31, 1
  br i1 %c.32, label %ok.33, label %other.34
ok.33:
  %at.38 = getelementptr inbounds i8, ptr %a.25, i64 24
  %shape.39 = load ptr, ptr %at.38
  %at.40 = getelementptr inbounds i8, ptr %a.25, i64 32
  %strides.41 = load ptr, ptr %at.40
  %v.42 = ptrtoint ptr %shape.39 to i64
  %v.43 = ptrtoint ptr %strides.41 to i64
  %v.44 = and i64 %v.42, %v.43
  %c.45 = icmp ne i64 %v.44, 0
  br i1 %c.45, label %ok.46, label %in_doubt.7
other.34:
  %c.35 = icmp eq i32 %device_type.31, 3
  %c.36 = icmp eq i32 %device_type.31, 11
  %v.37 = or i1 %c.35, %c.36
  br i1 %v.37, label %in_doubt.7, label %refused.6
ok.46:
  %a.n0.47 = load i64, ptr %shape.39
  %a.s0.48 = load i64, ptr %strides.41
  %c.49 = icmp eq i64 %a.s0.48, 1
  br i1 %c.49, label %ok.50, label %in_doubt.7
ok.50:
  %data.51 = load i64, ptr %a.25
  %c.52 = icmp ne i64 %data.51, 0
  br i1 %c.52, label %ok.53, label %in_doubt.7
ok.53:
  %at.54 = getelementptr inbounds i8, ptr %a.25, i64 40
  %byte_offset.55 = load i64, ptr %at.54
  %a.data.56 = add i64 %data.51, %byte_offset.55
  store i64 %a.data.56, ptr %out.2
  %v.65 = and i64 %a.n0.47, -2147483648
  %c.66 = icmp eq i64 %v.65, 0
  br i1 %c.66, label %ok.67, label %doubt.57
doubt.57:
  %v.58 = and i64 %a.n0.47, -2147483648
  %v.59 = or i64 0, %v.58
  %v.60 = and i64 %a.n0.47, 3
  %v.61 = or i64 %v.59, %v.60
  %v.62 = and i64 %a.data.56, 1
  %v.63 = or i64 %v.61, %v.62
  %c.64 = icmp ne i64 %v.63, 0
  br i1 %c.64, label %refused.6, label %in_doubt.7
ok.67:
  %v.68 = and i64 %a.n0.47, 3
  %c.69 = icmp eq i64 %v.68, 0
  br i1 %c.69, label %ok.70, label %doubt.57
ok.70:
  %v.71 = and i64 %a.data.56, 1
  %c.72 = icmp eq i64 %v.71, 0
  br i1 %c.72, label %ok.73, label %doubt.57
ok.73:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %ferrule_body.0.5 = call i32 @ferrule_body.0(ptr %values.1, ptr %a.4)
  ret i32 0
refused.6:
  ret i32 1
in_doubt.7:
  ret i32 2
check.8:
  %ferrule_check.9 = call i32 @ferrule_check(ptr null, ptr @.bytes.0, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.10 = icmp eq i32 %ferrule_check.9, 0
  br i1 %c.10, label %accepted.3, label %refused.6
}
define i32 @f.candidate1(ptr %args, i32 %num_args, ptr %result, i32 %way) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [2 x i64], align 8
  %c.12 = icmp eq i32 %way, 0
  br i1 %c.12, label %hot.11, label %check.8
hot.11:
  %c.13 = icmp eq i32 %num_args, 1
  br i1 %c.13, label %ok.14, label %refused.6
ok.14:
  %index.15 = load i32, ptr %args
  %at.16 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.17 = load ptr, ptr %at.16
  %at.18 = getelementptr inbounds i8, ptr %payload.17, i64 24
  %c.19 = icmp eq i32 %index.15, 70
  br i1 %c.19, label %tensor.21, label %view.20
view.20:
  %c.22 = icmp eq i32 %index.15, 7
  br i1 %c.22, label %ok.23, label %refused.6
ok.23:
  %c.24 = icmp ne ptr %payload.17, null
  br i1 %c.24, label %tensor.21, label %in_doubt.7
tensor.21:
  %a.25 = phi ptr [ %at.18, %ok.14 ], [ %payload.17, %ok.23 ]
  %at.26 = getelementptr inbounds i8, ptr %a.25, i64 16
  %kind.27 = load i64, ptr %at.26
  %c.28 = icmp eq i64 %kind.27, 299075752689665
  br i1 %c.28, label %ok.29, label %refused.6
ok.29:
  %at.30 = getelementptr inbounds i8, ptr %a.25, i64 8
  %device_type.31 = load i32, ptr %at.30
  %c.32 = icmp eq i32 %device_type.31, 1
  br i1 %c.32, label %ok.33, label %other.34
ok.33:
  %at.38 = getelementptr inbounds i8, ptr %a.25, i64 24
  %shape.39 = load ptr, ptr %at.38
  %at.40 = getelementptr inbounds i8, ptr %a.25, i64 32
  %strides.41 = load ptr, ptr %at.40
  %v.42 = ptrtoint ptr %shape.39 to i64
  %v.43 = ptrtoint ptr %strides.41 to i64
  %v.44 = and i64 %v.42, %v.43
  %c.45 = icmp ne i64 %v.44, 0
  br i1 %c.45, label %ok.46, label %in_doubt.7
other.34:
  %c.35 = icmp eq i32 %device_type.31, 3
  %c.36 = icmp eq i32 %device_type.31, 11
  %v.37 = or i1 %c.35, %c.36
  br i1 %v.37, label %in_doubt.7, label %refused.6
ok.46:
  %a.n0.47 = load i64, ptr %shape.39
  %a.s0.48 = load i64, ptr %strides.41
  %c.49 = icmp eq i64 %a.s0.48, 1
  br i1 %c.49, label %ok.50, label %in_doubt.7
ok.50:
  %data.51 = load i64, ptr %a.25
  %c.52 = icmp ne i64 %data.51, 0
  br i1 %c.52, label %ok.53, label %in_doubt.7
ok.53:
  %at.54 = getelementptr inbounds i8, ptr %a.25, i64 40
  %byte_offset.55 = load i64, ptr %at.54
  %a.data.56 = add i64 %data.51, %byte_offset.55
  store i64 %a.data.56, ptr %out.2
  %v.63 = and i64 %a.n0.47, -2147483648
  %c.64 = icmp eq i64 %v.63, 0
  br i1 %c.64, label %ok.65, label %doubt.57
doubt.57:
  %v.58 = and i64 %a.n0.47, -2147483648
  %v.59 = or i64 0, %v.58
  %v.60 = and i64 %a.data.56, 1
  %v.61 = or i64 %v.59, %v.60
  %c.62 = icmp ne i64 %v.61, 0
  br i1 %c.62, label %refused.6, label %in_doubt.7
ok.65:
  %v.66 = and i64 %a.data.56, 1
  %c.67 = icmp eq i64 %v.66, 0
  br i1 %c.67, label %ok.68, label %doubt.57
ok.68:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %ferrule_body.1.5 = call i32 @ferrule_body.1(ptr %values.1, ptr %a.4)
  ret i32 0
refused.6:
  ret i32 1
in_doubt.7:
  ret i32 2
check.8:
  %ferrule_check.9 = call i32 @ferrule_check(ptr null, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.10 = icmp eq i32 %ferrule_check.9, 0
  br i1 %c.10, label %accepted.3, label %refused.6
}
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %checks.23 = alloca [4 x i64], align 8
  %out.24 = alloca [2 x i64], align 8
  %f.candidate0.1 = call i32 @f.candidate0(ptr %args, i32 %num_args, ptr %result, i32 0)
  %c.4 = icmp sgt i32 %f.candidate0.1, 0
  br i1 %c.4, label %other.3, label %taken.2
taken.2:
  ret i32 %f.candidate0.1
other.3:
  %c.7 = icmp eq i32 %f.candidate0.1, 2
  br i1 %c.7, label %ask.5, label %behind.6
ask.5:
  %f.candidate0.8 = call i32 @f.candidate0(ptr %args, i32 %num_args, ptr %result, i32 1)
  %c.11 = icmp sgt i32 %f.candidate0.8, 0
  br i1 %c.11, label %other.10, label %taken.9
behind.6:
  %f.candidate1.12 = call i32 @f.candidate1(ptr %args, i32 %num_args, ptr %result, i32 0)
  %c.15 = icmp sgt i32 %f.candidate1.12, 0
  br i1 %c.15, label %other.14, label %taken.13
taken.9:
  ret i32 %f.candidate0.8
other.10:
  br label %behind.6
taken.13:
  ret i32 %f.candidate1.12
other.14:
  %c.18 = icmp eq i32 %f.candidate1.12, 2
  br i1 %c.18, label %ask.16, label %behind.17
ask.16:
  %f.candidate1.19 = call i32 @f.candidate1(ptr %args, i32 %num_args, ptr %result, i32 1)
  %c.22 = icmp sgt i32 %f.candidate1.19, 0
  br i1 %c.22, label %other.21, label %taken.20
behind.17:
  store ptr @.bytes.2, ptr %checks.23
  %at.25 = getelementptr inbounds i8, ptr %checks.23, i64 8
  store ptr @.bytes.0, ptr %at.25
  %at.26 = getelementptr inbounds i8, ptr %checks.23, i64 16
  store ptr @.bytes.2, ptr %at.26
  %at.27 = getelementptr inbounds i8, ptr %at.26, i64 8
  store ptr @.bytes.1, ptr %at.27
  call void @ferrule_refuse(ptr %checks.23, i64 2, ptr @.bytes.3, ptr %args, i32 %num_args, ptr %out.24)
  ret i32 -1
taken.20:
  ret i32 %f.candidate1.19
other.21:
  br label %behind.17
}
