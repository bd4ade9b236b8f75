@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [4 x i64], align 8
  %c.18 = icmp eq i32 %num_args, 2
  br i1 %c.18, label %ok.19, label %slow.14
ok.19:
  %index.20 = load i32, ptr %args
  %at.21 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.22 = load ptr, ptr %at.21
  %at.23 = getelementptr inbounds i8, ptr %payload.22, i64 24
  %c.24 = icmp eq i32 %index.20, 70
  br i1 %c.24, label %tensor.26, label %view.25
view.25:
  %c.27 = icmp eq i32 %index.20, 7
  br i1 %c.27, label %ok.28, label %slow.14
ok.28:
  %c.29 = icmp ne ptr %payload.22, null
  br i1 %c.29, label %tensor.26, label %slow.14
tensor.26:
  %a.30 = phi ptr [ %at.23, %ok.19 ], [ %payload.22, %ok.28 ]
  %at.31 = getelementptr inbounds i8, ptr %a.30, i64 16
  %kind.32 = load i64, ptr %at.31
  %c.33 = icmp eq i64 %kind.32, 316667938734081
  br i1 %c.33, label %ok.34, label %slow.14
ok.34:
  %at.35 = getelementptr inbounds i8, ptr %a.30, i64 8
  %device_type.36 = load i32, ptr %at.35
  %c.37 = icmp eq i32 %device_type.36, 1
  br i1 %c.37, label %ok.38, label %slow.14
ok.38:
  %at.39 = getelementptr inbounds i8, ptr %a.30, i64 24
  %shape.40 = load ptr, ptr %at.39
  %at.41 = getelementptr inbounds i8, ptr %a.30, i64 32
  %strides.42 = load ptr, ptr %at.41
  %v.43 = ptrtoint ptr %shape.40 to i64
  %v.44 = ptrtoint ptr %strides.42 to i64
  %v.45 = and i64 %v.43, %v.44
  %c.46 = icmp ne i64 %v.45, 0
  br i1 %c.46, label %ok.47, label %slow.14
ok.47:
  %a.s0.48 = load i64, ptr %strides.42
  %c.49 = icmp eq i64 %a.s0.48, 1
  br i1 %c.49, label %ok.50, label %slow.14
ok.50:
  %data.51 = load i64, ptr %a.30
  %c.52 = icmp ne i64 %data.51, 0
  br i1 %c.52, label %ok.53, label %slow.14
ok.53:
  %at.54 = getelementptr inbounds i8, ptr %a.30, i64 40
  %byte_offset.55 = load i64, ptr %at.54
  %a.data.56 = add i64 %data.51, %byte_offset.55
  store i64 %a.data.56, ptr %out.2
  %at.57 = getelementptr inbounds i8, ptr %args, i64 16
  %index.58 = load i32, ptr %at.57
  %at.59 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.60 = load ptr, ptr %at.59
  %at.61 = getelementptr inbounds i8, ptr %payload.60, i64 24
  %c.62 = icmp eq i32 %index.58, 70
  br i1 %c.62, label %tensor.64, label %view.63
view.63:
  %c.65 = icmp eq i32 %index.58, 7
  br i1 %c.65, label %ok.66, label %slow.14
ok.66:
  %c.67 = icmp ne ptr %payload.60, null
  br i1 %c.67, label %tensor.64, label %slow.14
tensor.64:
  %b.68 = phi ptr [ %at.61, %ok.53 ], [ %payload.60, %ok.66 ]
  %at.69 = getelementptr inbounds i8, ptr %b.68, i64 16
  %kind.70 = load i64, ptr %at.69
  %c.71 = icmp eq i64 %kind.70, 316667938734082
  br i1 %c.71, label %ok.72, label %slow.14
ok.72:
  %at.73 = getelementptr inbounds i8, ptr %b.68, i64 8
  %device_type.74 = load i32, ptr %at.73
  %c.75 = icmp eq i32 %device_type.74, 1
  br i1 %c.75, label %ok.76, label %slow.14
ok.76:
  %at.77 = getelementptr inbounds i8, ptr %b.68, i64 24
  %shape.78 = load ptr, ptr %at.77
  %at.79 = getelementptr inbounds i8, ptr %b.68, i64 32
  %strides.80 = load ptr, ptr %at.79
  %v.81 = ptrtoint ptr %shape.78 to i64
  %v.82 = ptrtoint ptr %strides.80 to i64
  %v.83 = and i64 %v.81, %v.82
  %c.84 = icmp ne i64 %v.83, 0
  br i1 %c.84, label %ok.85, label %slow.14
ok.85:
  %at.86 = getelementptr inbounds i8, ptr %shape.78, i64 8
  %b.n1.87 = load i64, ptr %at.86
  %bits.88 = or i64 %a.data.56, %b.n1.87
  %c.89 = icmp sge i64 %b.n1.87, 0
  br i1 %c.89, label %ok.90, label %slow.14
ok.90:
  %v.91 = mul i64 %b.n1.87, -6148914691236517205
  %c.92 = icmp ule i64 %v.91, 6148914691236517205
  br i1 %c.92, label %ok.93, label %slow.14
ok.93:
  %at.94 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %b.n1.87, ptr %at.94
  %b.s0.95 = load i64, ptr %strides.80
  %c.96 = icmp eq i64 %b.s0.95, %b.n1.87
  br i1 %c.96, label %ok.97, label %slow.14
ok.97:
  %at.98 = getelementptr inbounds i8, ptr %strides.80, i64 8
  %b.s1.99 = load i64, ptr %at.98
  %c.100 = icmp eq i64 %b.s1.99, 1
  br i1 %c.100, label %ok.101, label %slow.14
ok.101:
  %data.102 = load i64, ptr %b.68
  %c.103 = icmp ne i64 %data.102, 0
  br i1 %c.103, label %ok.104, label %slow.14
ok.104:
  %at.105 = getelementptr inbounds i8, ptr %b.68, i64 40
  %byte_offset.106 = load i64, ptr %at.105
  %b.data.107 = add i64 %data.102, %byte_offset.106
  %bits.108 = or i64 %bits.88, %b.data.107
  %at.109 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.107, ptr %at.109
  %a.n0.110 = load i64, ptr %shape.40
  %llvm.sadd.with.overflow.i64.111 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %a.n0.110, i64 -1)
  %v.112 = extractvalue { i64, i1 } %llvm.sadd.with.overflow.i64.111, 0
  %c.113 = extractvalue { i64, i1 } %llvm.sadd.with.overflow.i64.111, 1
  br i1 %c.113, label %slow.14, label %ok.114
ok.114:
  %v.115 = ashr i64 %v.112, 1
  %bits.116 = or i64 %b.n1.87, %v.115
  %at.117 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %v.115, ptr %at.117
  %v.118 = mul i64 %v.115, 2
  %v.119 = add i64 %v.118, 1
  %a.n0.120 = load i64, ptr %shape.40
  %c.121 = icmp eq i64 %a.n0.120, %v.119
  br i1 %c.121, label %ok.122, label %slow.14
ok.122:
  %v.123 = ashr i64 %v.115, 1
  %b.n0.124 = load i64, ptr %shape.78
  %c.125 = icmp eq i64 %b.n0.124, %v.123
  br i1 %c.125, label %ok.126, label %slow.14
ok.126:
  %v.127 = and i64 %bits.108, 3
  %c.128 = icmp eq i64 %v.127, 0
  br i1 %c.128, label %ok.129, label %slow.14
ok.129:
  %v.130 = and i64 %bits.116, -2147483648
  %c.131 = icmp eq i64 %v.130, 0
  br i1 %c.131, label %ok.132, label %slow.14
ok.132:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %b.6 = load ptr, ptr %at.5
  %at.7 = getelementptr inbounds i8, ptr %out.2, i64 16
  %n.8 = load i64, ptr %at.7
  %v.9 = trunc i64 %n.8 to i32
  %at.10 = getelementptr inbounds i8, ptr %out.2, i64 24
  %even.11 = load i64, ptr %at.10
  %v.12 = trunc i64 %even.11 to i32
  %ferrule_body.13 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, ptr %b.6, i32 %v.9, i32 %v.12)
  ret i32 0
slow.14:
  %ferrule_check.15 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.17 = icmp eq i32 %ferrule_check.15, 0
  br i1 %c.17, label %accepted.3, label %refused.16
refused.16:
  ret i32 -1
}
