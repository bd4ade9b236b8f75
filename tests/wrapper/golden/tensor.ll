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
  %c.31 = icmp eq i64 %kind.30, 316667938734083
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
  %at.49 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %a.n0.46, ptr %at.49
  %bits.50 = or i64 %a.n0.46, %a.n1.48
  %at.51 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %a.n1.48, ptr %at.51
  %at.52 = getelementptr inbounds i8, ptr %shape.38, i64 16
  %a.n2.53 = load i64, ptr %at.52
  %c.54 = icmp eq i64 %a.n2.53, 4
  br i1 %c.54, label %ok.55, label %slow.12
ok.55:
  %v.56 = mul i64 %a.n1.48, 4
  %a.s0.57 = load i64, ptr %strides.40
  %c.58 = icmp eq i64 %a.s0.57, %v.56
  br i1 %c.58, label %ok.59, label %slow.12
ok.59:
  %at.60 = getelementptr inbounds i8, ptr %strides.40, i64 8
  %a.s1.61 = load i64, ptr %at.60
  %c.62 = icmp eq i64 %a.s1.61, 4
  br i1 %c.62, label %ok.63, label %slow.12
ok.63:
  %at.64 = getelementptr inbounds i8, ptr %strides.40, i64 16
  %a.s2.65 = load i64, ptr %at.64
  %c.66 = icmp eq i64 %a.s2.65, 1
  br i1 %c.66, label %ok.67, label %slow.12
ok.67:
  %data.68 = load i64, ptr %a.28
  %c.69 = icmp ne i64 %data.68, 0
  br i1 %c.69, label %ok.70, label %slow.12
ok.70:
  %at.71 = getelementptr inbounds i8, ptr %a.28, i64 40
  %byte_offset.72 = load i64, ptr %at.71
  %a.data.73 = add i64 %data.68, %byte_offset.72
  store i64 %a.data.73, ptr %out.2
  %v.74 = and i64 %bits.50, -2147483648
  %c.75 = icmp eq i64 %v.74, 0
  br i1 %c.75, label %ok.76, label %slow.12
ok.76:
  %v.77 = and i64 %a.data.73, 3
  %c.78 = icmp eq i64 %v.77, 0
  br i1 %c.78, label %ok.79, label %slow.12
ok.79:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %n.6 = load i64, ptr %at.5
  %v.7 = trunc i64 %n.6 to i32
  %at.8 = getelementptr inbounds i8, ptr %out.2, i64 16
  %m.9 = load i64, ptr %at.8
  %v.10 = trunc i64 %m.9 to i32
  %ferrule_body.11 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, i32 %v.7, i32 %v.10)
  ret i32 0
slow.12:
  %ferrule_check.13 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.15 = icmp eq i32 %ferrule_check.13, 0
  br i1 %c.15, label %accepted.3, label %refused.14
refused.14:
  ret i32 -1
}
