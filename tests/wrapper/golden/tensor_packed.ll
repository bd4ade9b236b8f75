@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [3 x i64], align 8
  %c.16 = icmp eq i32 %num_args, 1
  br i1 %c.16, label %ok.17, label %slow.12
ok.17:
  %index.18 = load i32, ptr %args
  %at.19 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.20 = load ptr, ptr %at.19
  %at.21 = getelementptr inbounds i8, ptr %payload.20, i64 24
  %c.22 = icmp eq i32 %index.18, 70
  br i1 %c.22, label %tensor.24, label %view.23
view.23:
  %c.25 = icmp eq i32 %index.18, 7
  br i1 %c.25, label %ok.26, label %slow.12
ok.26:
  %c.27 = icmp ne ptr %payload.20, null
  br i1 %c.27, label %tensor.24, label %slow.12
tensor.24:
  %a.28 = phi ptr [ %at.21, %ok.17 ], [ %payload.20, %ok.26 ]
  %at.29 = getelementptr inbounds i8, ptr %a.28, i64 16
  %kind.30 = load i64, ptr %at.29
  %c.31 = icmp eq i64 %kind.30, 567421014376450
  br i1 %c.31, label %ok.32, label %slow.12
ok.32:
  %at.33 = getelementptr inbounds i8, ptr %a.28, i64 8
  %device_type.34 = load i32, ptr %at.33
  %c.35 = icmp eq i32 %device_type.34, 1
  br i1 %c.35, label %ok.36, label %slow.12
ok.36:
  %at.37 = getelementptr inbounds i8, ptr %a.28, i64 24
  %shape.38 = load ptr, ptr %at.37
  %at.39 = getelementptr inbounds i8, ptr %a.28, i64 32
  %strides.40 = load ptr, ptr %at.39
  %v.41 = ptrtoint ptr %shape.38 to i64
  %v.42 = ptrtoint ptr %strides.40 to i64
  %v.43 = and i64 %v.41, %v.42
  %c.44 = icmp ne i64 %v.43, 0
  br i1 %c.44, label %ok.45, label %slow.12
ok.45:
  %a.n0.46 = load i64, ptr %shape.38
  %at.47 = getelementptr inbounds i8, ptr %shape.38, i64 8
  %a.n1.48 = load i64, ptr %at.47
  %v.49 = shl i64 %a.n1.48, 1
  %v.50 = ashr i64 %v.49, 1
  %c.51 = icmp eq i64 %v.50, %a.n1.48
  br i1 %c.51, label %ok.52, label %slow.12
ok.52:
  %at.53 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %a.n0.46, ptr %at.53
  %bits.54 = or i64 %a.n0.46, %v.49
  %c.55 = icmp sge i64 %v.49, 0
  br i1 %c.55, label %ok.56, label %slow.12
ok.56:
  %v.57 = mul i64 %v.49, -6148914691236517205
  %c.58 = icmp ule i64 %v.57, 6148914691236517205
  br i1 %c.58, label %ok.59, label %slow.12
ok.59:
  %at.60 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %v.49, ptr %at.60
  %a.s0.61 = load i64, ptr %strides.40
  %v.62 = shl i64 %a.s0.61, 1
  %v.63 = ashr i64 %v.62, 1
  %c.64 = icmp eq i64 %v.63, %a.s0.61
  br i1 %c.64, label %ok.65, label %slow.12
ok.65:
  %c.66 = icmp eq i64 %v.62, %v.49
  br i1 %c.66, label %ok.67, label %slow.12
ok.67:
  %at.68 = getelementptr inbounds i8, ptr %strides.40, i64 8
  %a.s1.69 = load i64, ptr %at.68
  %c.70 = icmp eq i64 %a.s1.69, 1
  br i1 %c.70, label %ok.71, label %slow.12
ok.71:
  %data.72 = load i64, ptr %a.28
  %c.73 = icmp ne i64 %data.72, 0
  br i1 %c.73, label %ok.74, label %slow.12
ok.74:
  %at.75 = getelementptr inbounds i8, ptr %a.28, i64 40
  %byte_offset.76 = load i64, ptr %at.75
  %a.data.77 = add i64 %data.72, %byte_offset.76
  store i64 %a.data.77, ptr %out.2
  %v.78 = and i64 %bits.54, -2147483648
  %c.79 = icmp eq i64 %v.78, 0
  br i1 %c.79, label %ok.80, label %slow.12
ok.80:
  %v.81 = and i64 %v.49, 3
  %c.82 = icmp eq i64 %v.81, 0
  br i1 %c.82, label %ok.83, label %slow.12
ok.83:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %n.6 = load i64, ptr %at.5
  %v.7 = trunc i64 %n.6 to i32
  %at.8 = getelementptr inbounds i8, ptr %out.2, i64 16
  %even.9 = load i64, ptr %at.8
  %v.10 = trunc i64 %even.9 to i32
  %ferrule_body.11 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, i32 %v.7, i32 %v.10)
  ret i32 0
slow.12:
  %ferrule_check.13 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.15 = icmp eq i32 %ferrule_check.13, 0
  br i1 %c.15, label %accepted.3, label %refused.14
refused.14:
  ret i32 -1
}
