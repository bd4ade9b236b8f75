@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [3 x i64], align 8
  %c.15 = icmp eq i32 %num_args, 1
  br i1 %c.15, label %ok.16, label %slow.11
ok.16:
  %index.17 = load i32, ptr %args
  %c.18 = icmp eq i32 %index.17, 71
  %c.19 = icmp eq i32 %index.17, 75
  %v.20 = or i1 %c.18, %c.19
  br i1 %v.20, label %ok.21, label %slow.11
ok.21:
  %at.22 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.23 = load ptr, ptr %at.22
  %at.24 = getelementptr inbounds i8, ptr %payload.23, i64 24
  %at.25 = getelementptr inbounds i8, ptr %at.24, i64 8
  %size.26 = load i64, ptr %at.25
  %c.27 = icmp eq i64 %size.26, 2
  br i1 %c.27, label %ok.28, label %slow.11
ok.28:
  %data.29 = load ptr, ptr %at.24
  %index.30 = load i32, ptr %data.29
  %at.31 = getelementptr inbounds i8, ptr %data.29, i64 8
  %payload.32 = load ptr, ptr %at.31
  %at.33 = getelementptr inbounds i8, ptr %payload.32, i64 24
  %c.34 = icmp eq i32 %index.30, 70
  br i1 %c.34, label %tensor.36, label %view.35
view.35:
  %c.37 = icmp eq i32 %index.30, 7
  br i1 %c.37, label %ok.38, label %slow.11
ok.38:
  %c.39 = icmp ne ptr %payload.32, null
  br i1 %c.39, label %tensor.36, label %slow.11
tensor.36:
  %v.40 = phi ptr [ %at.33, %ok.28 ], [ %payload.32, %ok.38 ]
  %at.41 = getelementptr inbounds i8, ptr %v.40, i64 16
  %kind.42 = load i64, ptr %at.41
  %c.43 = icmp eq i64 %kind.42, 316667938734081
  br i1 %c.43, label %ok.44, label %slow.11
ok.44:
  %at.45 = getelementptr inbounds i8, ptr %v.40, i64 8
  %device_type.46 = load i32, ptr %at.45
  %c.47 = icmp eq i32 %device_type.46, 1
  br i1 %c.47, label %ok.48, label %slow.11
ok.48:
  %at.49 = getelementptr inbounds i8, ptr %v.40, i64 24
  %shape.50 = load ptr, ptr %at.49
  %at.51 = getelementptr inbounds i8, ptr %v.40, i64 32
  %strides.52 = load ptr, ptr %at.51
  %v.53 = ptrtoint ptr %shape.50 to i64
  %v.54 = ptrtoint ptr %strides.52 to i64
  %v.55 = and i64 %v.53, %v.54
  %c.56 = icmp ne i64 %v.55, 0
  br i1 %c.56, label %ok.57, label %slow.11
ok.57:
  %v.58 = load i64, ptr %shape.50
  %at.59 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %v.58, ptr %at.59
  %v.60 = load i64, ptr %strides.52
  %c.61 = icmp eq i64 %v.60, 1
  br i1 %c.61, label %ok.62, label %slow.11
ok.62:
  %data.63 = load i64, ptr %v.40
  %c.64 = icmp ne i64 %data.63, 0
  br i1 %c.64, label %ok.65, label %slow.11
ok.65:
  %at.66 = getelementptr inbounds i8, ptr %v.40, i64 40
  %byte_offset.67 = load i64, ptr %at.66
  %v.68 = add i64 %data.63, %byte_offset.67
  store i64 %v.68, ptr %out.2
  %at.69 = getelementptr inbounds i8, ptr %data.29, i64 16
  %index.70 = load i32, ptr %at.69
  %c.71 = icmp eq i32 %index.70, 71
  %c.72 = icmp eq i32 %index.70, 75
  %v.73 = or i1 %c.71, %c.72
  br i1 %v.73, label %ok.74, label %slow.11
ok.74:
  %at.75 = getelementptr inbounds i8, ptr %data.29, i64 24
  %payload.76 = load ptr, ptr %at.75
  %at.77 = getelementptr inbounds i8, ptr %payload.76, i64 24
  %at.78 = getelementptr inbounds i8, ptr %at.77, i64 8
  %size.79 = load i64, ptr %at.78
  %c.80 = icmp eq i64 %size.79, 1
  br i1 %c.80, label %ok.81, label %slow.11
ok.81:
  %data.82 = load ptr, ptr %at.77
  %index.83 = load i32, ptr %data.82
  %v.84 = sub i32 %index.83, 1
  %c.85 = icmp ule i32 %v.84, 1
  br i1 %c.85, label %ok.86, label %slow.11
ok.86:
  %at.87 = getelementptr inbounds i8, ptr %data.82, i64 8
  %payload.88 = load i64, ptr %at.87
  %v.89 = trunc i64 %payload.88 to i32
  %v.90 = sext i32 %v.89 to i64
  %c.91 = icmp eq i64 %v.90, %payload.88
  br i1 %c.91, label %ok.92, label %slow.11
ok.92:
  %at.93 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %payload.88, ptr %at.93
  %v.94 = and i64 %v.58, -2147483648
  %c.95 = icmp eq i64 %v.94, 0
  br i1 %c.95, label %ok.96, label %slow.11
ok.96:
  %v.97 = and i64 %v.68, 3
  %c.98 = icmp eq i64 %v.97, 0
  br i1 %c.98, label %ok.99, label %slow.11
ok.99:
  br label %accepted.3
accepted.3:
  %t.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %t.6 = load i32, ptr %at.5
  %at.7 = getelementptr inbounds i8, ptr %out.2, i64 16
  %n.8 = load i64, ptr %at.7
  %v.9 = trunc i64 %n.8 to i32
  %ferrule_body.10 = call i32 @ferrule_body(ptr %values.1, ptr %t.4, i32 %t.6, i32 %v.9)
  ret i32 0
slow.11:
  %ferrule_check.12 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.14 = icmp eq i32 %ferrule_check.12, 0
  br i1 %c.14, label %accepted.3, label %refused.13
refused.13:
  ret i32 -1
}
