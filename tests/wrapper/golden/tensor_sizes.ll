@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [8 x i64], align 8
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
  %v.57 = and i64 %a.data.56, 3
  %c.58 = icmp eq i64 %v.57, 0
  br i1 %c.58, label %ok.59, label %slow.14
ok.59:
  store i64 %a.data.56, ptr %out.2
  %at.60 = getelementptr inbounds i8, ptr %args, i64 16
  %index.61 = load i32, ptr %at.60
  %at.62 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.63 = load ptr, ptr %at.62
  %at.64 = getelementptr inbounds i8, ptr %payload.63, i64 24
  %c.65 = icmp eq i32 %index.61, 70
  br i1 %c.65, label %tensor.67, label %view.66
view.66:
  %c.68 = icmp eq i32 %index.61, 7
  br i1 %c.68, label %ok.69, label %slow.14
ok.69:
  %c.70 = icmp ne ptr %payload.63, null
  br i1 %c.70, label %tensor.67, label %slow.14
tensor.67:
  %b.71 = phi ptr [ %at.64, %ok.59 ], [ %payload.63, %ok.69 ]
  %at.72 = getelementptr inbounds i8, ptr %b.71, i64 16
  %kind.73 = load i64, ptr %at.72
  %c.74 = icmp eq i64 %kind.73, 316667938734082
  br i1 %c.74, label %ok.75, label %slow.14
ok.75:
  %at.76 = getelementptr inbounds i8, ptr %b.71, i64 8
  %device_type.77 = load i32, ptr %at.76
  %c.78 = icmp eq i32 %device_type.77, 1
  br i1 %c.78, label %ok.79, label %slow.14
ok.79:
  %at.80 = getelementptr inbounds i8, ptr %b.71, i64 24
  %shape.81 = load ptr, ptr %at.80
  %at.82 = getelementptr inbounds i8, ptr %b.71, i64 32
  %strides.83 = load ptr, ptr %at.82
  %v.84 = ptrtoint ptr %shape.81 to i64
  %v.85 = ptrtoint ptr %strides.83 to i64
  %v.86 = and i64 %v.84, %v.85
  %c.87 = icmp ne i64 %v.86, 0
  br i1 %c.87, label %ok.88, label %slow.14
ok.88:
  %at.89 = getelementptr inbounds i8, ptr %shape.81, i64 8
  %b.n1.90 = load i64, ptr %at.89
  %c.91 = icmp ule i64 %b.n1.90, 2147483647
  br i1 %c.91, label %ok.92, label %slow.14
ok.92:
  %v.93 = and i64 %b.n1.90, 3
  %c.94 = icmp eq i64 %v.93, 0
  br i1 %c.94, label %ok.95, label %slow.14
ok.95:
  %c.96 = icmp sge i64 %b.n1.90, 0
  br i1 %c.96, label %ok.97, label %slow.14
ok.97:
  %v.98 = mul i64 %b.n1.90, -6148914691236517205
  %c.99 = icmp ule i64 %v.98, 6148914691236517205
  br i1 %c.99, label %ok.100, label %slow.14
ok.100:
  %at.101 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %b.n1.90, ptr %at.101
  %b.s0.102 = load i64, ptr %strides.83
  %c.103 = icmp eq i64 %b.s0.102, %b.n1.90
  br i1 %c.103, label %ok.104, label %slow.14
ok.104:
  %at.105 = getelementptr inbounds i8, ptr %strides.83, i64 8
  %b.s1.106 = load i64, ptr %at.105
  %c.107 = icmp eq i64 %b.s1.106, 1
  br i1 %c.107, label %ok.108, label %slow.14
ok.108:
  %data.109 = load i64, ptr %b.71
  %c.110 = icmp ne i64 %data.109, 0
  br i1 %c.110, label %ok.111, label %slow.14
ok.111:
  %at.112 = getelementptr inbounds i8, ptr %b.71, i64 40
  %byte_offset.113 = load i64, ptr %at.112
  %b.data.114 = add i64 %data.109, %byte_offset.113
  %v.115 = and i64 %b.data.114, 3
  %c.116 = icmp eq i64 %v.115, 0
  br i1 %c.116, label %ok.117, label %slow.14
ok.117:
  %at.118 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.114, ptr %at.118
  %a.n0.119 = load i64, ptr %shape.40
  %llvm.sadd.with.overflow.i64.120 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %a.n0.119, i64 -1)
  %v.121 = extractvalue { i64, i1 } %llvm.sadd.with.overflow.i64.120, 0
  %c.122 = extractvalue { i64, i1 } %llvm.sadd.with.overflow.i64.120, 1
  br i1 %c.122, label %slow.14, label %ok.123
ok.123:
  %v.124 = sdiv i64 %v.121, 2
  %v.125 = srem i64 %v.121, 2
  %c.126 = icmp ne i64 %v.125, 0
  %v.127 = xor i64 %v.121, 2
  %c.128 = icmp slt i64 %v.127, 0
  %v.129 = and i1 %c.126, %c.128
  %v.130 = zext i1 %v.129 to i64
  %v.131 = sub i64 %v.124, %v.130
  %c.132 = icmp ule i64 %v.131, 2147483647
  br i1 %c.132, label %ok.133, label %slow.14
ok.133:
  %at.134 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %v.131, ptr %at.134
  %v.135 = mul i64 %v.131, 2
  %v.136 = add i64 %v.135, 1
  %a.n0.137 = load i64, ptr %shape.40
  %c.138 = icmp eq i64 %a.n0.137, %v.136
  br i1 %c.138, label %ok.139, label %slow.14
ok.139:
  %v.140 = sdiv i64 %v.131, 2
  %v.141 = srem i64 %v.131, 2
  %c.142 = icmp ne i64 %v.141, 0
  %v.143 = xor i64 %v.131, 2
  %c.144 = icmp slt i64 %v.143, 0
  %v.145 = and i1 %c.142, %c.144
  %v.146 = zext i1 %v.145 to i64
  %v.147 = sub i64 %v.140, %v.146
  %b.n0.148 = load i64, ptr %shape.81
  %c.149 = icmp eq i64 %b.n0.148, %v.147
  br i1 %c.149, label %ok.150, label %slow.14
ok.150:
  %c.151 = icmp sge i64 %b.n0.148, 0
  br i1 %c.151, label %ok.152, label %slow.14
ok.152:
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
