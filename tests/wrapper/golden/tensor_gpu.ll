@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare ptr @TVMFFIEnvGetStream(i32, i32)
declare i32 @ferrule_body(ptr, ptr, ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [4 x i64], align 8
  %device.4 = alloca [1 x i32], align 8
  %device.index.5 = alloca [1 x i32], align 8
  store i32 2, ptr %device.4
  store i32 0, ptr %device.index.5
  %c.30 = icmp eq i32 %num_args, 2
  br i1 %c.30, label %ok.31, label %slow.26
ok.31:
  %index.32 = load i32, ptr %args
  %at.33 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.34 = load ptr, ptr %at.33
  %at.35 = getelementptr inbounds i8, ptr %payload.34, i64 24
  %c.36 = icmp eq i32 %index.32, 70
  br i1 %c.36, label %tensor.38, label %view.37
view.37:
  %c.39 = icmp eq i32 %index.32, 7
  br i1 %c.39, label %ok.40, label %slow.26
ok.40:
  %c.41 = icmp ne ptr %payload.34, null
  br i1 %c.41, label %tensor.38, label %slow.26
tensor.38:
  %a.42 = phi ptr [ %at.35, %ok.31 ], [ %payload.34, %ok.40 ]
  %at.43 = getelementptr inbounds i8, ptr %a.42, i64 16
  %kind.44 = load i64, ptr %at.43
  %c.45 = icmp eq i64 %kind.44, 316667938734081
  br i1 %c.45, label %ok.46, label %slow.26
ok.46:
  %at.47 = getelementptr inbounds i8, ptr %a.42, i64 8
  %device_type.48 = load i32, ptr %at.47
  %c.49 = icmp eq i32 %device_type.48, 2
  br i1 %c.49, label %ok.50, label %slow.26
ok.50:
  %at.51 = getelementptr inbounds i8, ptr %a.42, i64 12
  %device_id.52 = load i32, ptr %at.51
  %at.53 = getelementptr inbounds i8, ptr %a.42, i64 24
  %shape.54 = load ptr, ptr %at.53
  %at.55 = getelementptr inbounds i8, ptr %a.42, i64 32
  %strides.56 = load ptr, ptr %at.55
  %v.57 = ptrtoint ptr %shape.54 to i64
  %v.58 = ptrtoint ptr %strides.56 to i64
  %v.59 = and i64 %v.57, %v.58
  %c.60 = icmp ne i64 %v.59, 0
  br i1 %c.60, label %ok.61, label %slow.26
ok.61:
  %a.n0.62 = load i64, ptr %shape.54
  %at.63 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %a.n0.62, ptr %at.63
  %a.s0.64 = load i64, ptr %strides.56
  %c.65 = icmp eq i64 %a.s0.64, 1
  br i1 %c.65, label %ok.66, label %slow.26
ok.66:
  %data.67 = load i64, ptr %a.42
  %c.68 = icmp ne i64 %data.67, 0
  br i1 %c.68, label %ok.69, label %slow.26
ok.69:
  %at.70 = getelementptr inbounds i8, ptr %a.42, i64 40
  %byte_offset.71 = load i64, ptr %at.70
  %a.data.72 = add i64 %data.67, %byte_offset.71
  store i64 %a.data.72, ptr %out.2
  %at.73 = getelementptr inbounds i8, ptr %args, i64 16
  %index.74 = load i32, ptr %at.73
  %at.75 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.76 = load ptr, ptr %at.75
  %at.77 = getelementptr inbounds i8, ptr %payload.76, i64 24
  %c.78 = icmp eq i32 %index.74, 70
  br i1 %c.78, label %tensor.80, label %view.79
view.79:
  %c.81 = icmp eq i32 %index.74, 7
  br i1 %c.81, label %ok.82, label %slow.26
ok.82:
  %c.83 = icmp ne ptr %payload.76, null
  br i1 %c.83, label %tensor.80, label %slow.26
tensor.80:
  %b.84 = phi ptr [ %at.77, %ok.69 ], [ %payload.76, %ok.82 ]
  %at.85 = getelementptr inbounds i8, ptr %b.84, i64 16
  %kind.86 = load i64, ptr %at.85
  %c.87 = icmp eq i64 %kind.86, %kind.44
  br i1 %c.87, label %ok.88, label %slow.26
ok.88:
  %at.89 = getelementptr inbounds i8, ptr %b.84, i64 8
  %device_type.90 = load i32, ptr %at.89
  %c.91 = icmp eq i32 %device_type.90, 2
  br i1 %c.91, label %ok.92, label %slow.26
ok.92:
  %at.93 = getelementptr inbounds i8, ptr %b.84, i64 12
  %device_id.94 = load i32, ptr %at.93
  %c.95 = icmp eq i32 %device_id.94, %device_id.52
  br i1 %c.95, label %ok.96, label %slow.26
ok.96:
  %at.97 = getelementptr inbounds i8, ptr %b.84, i64 24
  %shape.98 = load ptr, ptr %at.97
  %at.99 = getelementptr inbounds i8, ptr %b.84, i64 32
  %strides.100 = load ptr, ptr %at.99
  %v.101 = ptrtoint ptr %shape.98 to i64
  %v.102 = ptrtoint ptr %strides.100 to i64
  %v.103 = and i64 %v.101, %v.102
  %c.104 = icmp ne i64 %v.103, 0
  br i1 %c.104, label %ok.105, label %slow.26
ok.105:
  %b.n0.106 = load i64, ptr %shape.98
  %c.107 = icmp eq i64 %b.n0.106, %a.n0.62
  br i1 %c.107, label %ok.108, label %slow.26
ok.108:
  %b.s0.109 = load i64, ptr %strides.100
  %c.110 = icmp eq i64 %b.s0.109, 1
  br i1 %c.110, label %ok.111, label %slow.26
ok.111:
  %data.112 = load i64, ptr %b.84
  %c.113 = icmp ne i64 %data.112, 0
  br i1 %c.113, label %ok.114, label %slow.26
ok.114:
  %at.115 = getelementptr inbounds i8, ptr %b.84, i64 40
  %byte_offset.116 = load i64, ptr %at.115
  %b.data.117 = add i64 %data.112, %byte_offset.116
  %bits.118 = or i64 %a.data.72, %b.data.117
  %at.119 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.117, ptr %at.119
  %v.120 = and i64 %a.n0.62, -2147483648
  %c.121 = icmp eq i64 %v.120, 0
  br i1 %c.121, label %ok.122, label %slow.26
ok.122:
  %v.123 = and i64 %bits.118, 3
  %c.124 = icmp eq i64 %v.123, 0
  br i1 %c.124, label %ok.125, label %slow.26
ok.125:
  br label %accepted.3
accepted.3:
  store i32 2, ptr %device.4
  %type_index.7 = load i32, ptr %args
  %c.8 = icmp eq i32 %type_index.7, 70
  %v.9 = select i1 %c.8, i64 24, i64 0
  %at.10 = getelementptr inbounds i8, ptr %args, i64 8
  %v_int64.11 = load i64, ptr %at.10
  %v.12 = add i64 %v_int64.11, %v.9
  %v.13 = inttoptr i64 %v.12 to ptr
  %at.14 = getelementptr inbounds i8, ptr %v.13, i64 12
  %device_id.15 = load i32, ptr %at.14
  store i32 %device_id.15, ptr %device.index.5
  br label %stream.6
stream.6:
  %v.16 = load i32, ptr %device.4
  %v.17 = load i32, ptr %device.index.5
  %TVMFFIEnvGetStream.18 = call ptr @TVMFFIEnvGetStream(i32 %v.16, i32 %v.17)
  %a.19 = load ptr, ptr %out.2
  %at.20 = getelementptr inbounds i8, ptr %out.2, i64 8
  %b.21 = load ptr, ptr %at.20
  %at.22 = getelementptr inbounds i8, ptr %out.2, i64 24
  %n.23 = load i64, ptr %at.22
  %v.24 = trunc i64 %n.23 to i32
  %ferrule_body.25 = call i32 @ferrule_body(ptr %values.1, ptr %a.19, ptr %b.21, ptr %TVMFFIEnvGetStream.18, i32 %v.24)
  ret i32 0
slow.26:
  %ferrule_check.27 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.29 = icmp eq i32 %ferrule_check.27, 0
  br i1 %c.29, label %accepted.3, label %refused.28
refused.28:
  ret i32 -1
}
