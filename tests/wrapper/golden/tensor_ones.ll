@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [3 x i64], align 8
  %c.15 = icmp eq i32 %num_args, 2
  br i1 %c.15, label %ok.16, label %slow.11
ok.16:
  %index.17 = load i32, ptr %args
  %at.18 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.19 = load ptr, ptr %at.18
  %at.20 = getelementptr inbounds i8, ptr %payload.19, i64 24
  %c.21 = icmp eq i32 %index.17, 70
  br i1 %c.21, label %tensor.23, label %view.22
view.22:
  %c.24 = icmp eq i32 %index.17, 7
  br i1 %c.24, label %ok.25, label %slow.11
ok.25:
  %c.26 = icmp ne ptr %payload.19, null
  br i1 %c.26, label %tensor.23, label %slow.11
tensor.23:
  %a.27 = phi ptr [ %at.20, %ok.16 ], [ %payload.19, %ok.25 ]
  %at.28 = getelementptr inbounds i8, ptr %a.27, i64 16
  %kind.29 = load i64, ptr %at.28
  %c.30 = icmp eq i64 %kind.29, 316667938734082
  br i1 %c.30, label %ok.31, label %slow.11
ok.31:
  %at.32 = getelementptr inbounds i8, ptr %a.27, i64 8
  %device_type.33 = load i32, ptr %at.32
  %c.34 = icmp eq i32 %device_type.33, 1
  br i1 %c.34, label %ok.35, label %slow.11
ok.35:
  %at.36 = getelementptr inbounds i8, ptr %a.27, i64 24
  %shape.37 = load ptr, ptr %at.36
  %at.38 = getelementptr inbounds i8, ptr %a.27, i64 32
  %strides.39 = load ptr, ptr %at.38
  %v.40 = ptrtoint ptr %shape.37 to i64
  %v.41 = ptrtoint ptr %strides.39 to i64
  %v.42 = and i64 %v.40, %v.41
  %c.43 = icmp ne i64 %v.42, 0
  br i1 %c.43, label %ok.44, label %slow.11
ok.44:
  %a.n0.45 = load i64, ptr %shape.37
  %at.46 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %a.n0.45, ptr %at.46
  %at.47 = getelementptr inbounds i8, ptr %shape.37, i64 8
  %a.n1.48 = load i64, ptr %at.47
  %c.49 = icmp eq i64 %a.n1.48, 1
  br i1 %c.49, label %ok.50, label %slow.11
ok.50:
  %a.s0.51 = load i64, ptr %strides.39
  %c.52 = icmp eq i64 %a.s0.51, 1
  br i1 %c.52, label %ok.53, label %slow.11
ok.53:
  %data.54 = load i64, ptr %a.27
  %c.55 = icmp ne i64 %data.54, 0
  br i1 %c.55, label %ok.56, label %slow.11
ok.56:
  %at.57 = getelementptr inbounds i8, ptr %a.27, i64 40
  %byte_offset.58 = load i64, ptr %at.57
  %a.data.59 = add i64 %data.54, %byte_offset.58
  store i64 %a.data.59, ptr %out.2
  %at.60 = getelementptr inbounds i8, ptr %args, i64 16
  %index.61 = load i32, ptr %at.60
  %at.62 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.63 = load ptr, ptr %at.62
  %at.64 = getelementptr inbounds i8, ptr %payload.63, i64 24
  %c.65 = icmp eq i32 %index.61, 70
  br i1 %c.65, label %tensor.67, label %view.66
view.66:
  %c.68 = icmp eq i32 %index.61, 7
  br i1 %c.68, label %ok.69, label %slow.11
ok.69:
  %c.70 = icmp ne ptr %payload.63, null
  br i1 %c.70, label %tensor.67, label %slow.11
tensor.67:
  %b.71 = phi ptr [ %at.64, %ok.56 ], [ %payload.63, %ok.69 ]
  %at.72 = getelementptr inbounds i8, ptr %b.71, i64 16
  %kind.73 = load i64, ptr %at.72
  %c.74 = icmp eq i64 %kind.73, %kind.29
  br i1 %c.74, label %ok.75, label %slow.11
ok.75:
  %at.76 = getelementptr inbounds i8, ptr %b.71, i64 8
  %device_type.77 = load i32, ptr %at.76
  %c.78 = icmp eq i32 %device_type.77, 1
  br i1 %c.78, label %ok.79, label %slow.11
ok.79:
  %at.80 = getelementptr inbounds i8, ptr %b.71, i64 24
  %shape.81 = load ptr, ptr %at.80
  %at.82 = getelementptr inbounds i8, ptr %b.71, i64 32
  %strides.83 = load ptr, ptr %at.82
  %v.84 = ptrtoint ptr %shape.81 to i64
  %v.85 = ptrtoint ptr %strides.83 to i64
  %v.86 = and i64 %v.84, %v.85
  %c.87 = icmp ne i64 %v.86, 0
  br i1 %c.87, label %ok.88, label %slow.11
ok.88:
  %b.n0.89 = load i64, ptr %shape.81
  %c.90 = icmp eq i64 %b.n0.89, %a.n0.45
  br i1 %c.90, label %ok.91, label %slow.11
ok.91:
  %at.92 = getelementptr inbounds i8, ptr %shape.81, i64 8
  %b.n1.93 = load i64, ptr %at.92
  %c.94 = icmp eq i64 %b.n1.93, 1
  br i1 %c.94, label %ok.95, label %slow.11
ok.95:
  %b.s0.96 = load i64, ptr %strides.83
  %c.97 = icmp eq i64 %b.s0.96, 1
  br i1 %c.97, label %ok.98, label %slow.11
ok.98:
  %data.99 = load i64, ptr %b.71
  %c.100 = icmp ne i64 %data.99, 0
  br i1 %c.100, label %ok.101, label %slow.11
ok.101:
  %at.102 = getelementptr inbounds i8, ptr %b.71, i64 40
  %byte_offset.103 = load i64, ptr %at.102
  %b.data.104 = add i64 %data.99, %byte_offset.103
  %bits.105 = or i64 %a.data.59, %b.data.104
  %at.106 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.104, ptr %at.106
  %v.107 = and i64 %a.n0.45, -2147483648
  %c.108 = icmp eq i64 %v.107, 0
  br i1 %c.108, label %ok.109, label %slow.11
ok.109:
  %v.110 = and i64 %bits.105, 3
  %c.111 = icmp eq i64 %v.110, 0
  br i1 %c.111, label %ok.112, label %slow.11
ok.112:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %b.6 = load ptr, ptr %at.5
  %at.7 = getelementptr inbounds i8, ptr %out.2, i64 16
  %n.8 = load i64, ptr %at.7
  %v.9 = trunc i64 %n.8 to i32
  %ferrule_body.10 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, ptr %b.6, i32 %v.9)
  ret i32 0
slow.11:
  %ferrule_check.12 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.14 = icmp eq i32 %ferrule_check.12, 0
  br i1 %c.14, label %accepted.3, label %refused.13
refused.13:
  ret i32 -1
}
