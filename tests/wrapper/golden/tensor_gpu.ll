@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare ptr @TVMFFIEnvGetStream(i32, i32)
declare i32 @ferrule_body(ptr, ptr, ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [8 x i64], align 8
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
  %c.63 = icmp ule i64 %a.n0.62, 2147483647
  br i1 %c.63, label %ok.64, label %slow.26
ok.64:
  %at.65 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %a.n0.62, ptr %at.65
  %a.s0.66 = load i64, ptr %strides.56
  %c.67 = icmp eq i64 %a.s0.66, 1
  br i1 %c.67, label %ok.68, label %slow.26
ok.68:
  %data.69 = load i64, ptr %a.42
  %c.70 = icmp ne i64 %data.69, 0
  br i1 %c.70, label %ok.71, label %slow.26
ok.71:
  %at.72 = getelementptr inbounds i8, ptr %a.42, i64 40
  %byte_offset.73 = load i64, ptr %at.72
  %a.data.74 = add i64 %data.69, %byte_offset.73
  %v.75 = and i64 %a.data.74, 3
  %c.76 = icmp eq i64 %v.75, 0
  br i1 %c.76, label %ok.77, label %slow.26
ok.77:
  store i64 %a.data.74, ptr %out.2
  %at.78 = getelementptr inbounds i8, ptr %args, i64 16
  %index.79 = load i32, ptr %at.78
  %at.80 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.81 = load ptr, ptr %at.80
  %at.82 = getelementptr inbounds i8, ptr %payload.81, i64 24
  %c.83 = icmp eq i32 %index.79, 70
  br i1 %c.83, label %tensor.85, label %view.84
view.84:
  %c.86 = icmp eq i32 %index.79, 7
  br i1 %c.86, label %ok.87, label %slow.26
ok.87:
  %c.88 = icmp ne ptr %payload.81, null
  br i1 %c.88, label %tensor.85, label %slow.26
tensor.85:
  %b.89 = phi ptr [ %at.82, %ok.77 ], [ %payload.81, %ok.87 ]
  %at.90 = getelementptr inbounds i8, ptr %b.89, i64 16
  %kind.91 = load i64, ptr %at.90
  %c.92 = icmp eq i64 %kind.91, 316667938734081
  br i1 %c.92, label %ok.93, label %slow.26
ok.93:
  %at.94 = getelementptr inbounds i8, ptr %b.89, i64 8
  %device_type.95 = load i32, ptr %at.94
  %c.96 = icmp eq i32 %device_type.95, 2
  br i1 %c.96, label %ok.97, label %slow.26
ok.97:
  %at.98 = getelementptr inbounds i8, ptr %b.89, i64 12
  %device_id.99 = load i32, ptr %at.98
  %c.100 = icmp eq i32 %device_id.99, %device_id.52
  br i1 %c.100, label %ok.101, label %slow.26
ok.101:
  %at.102 = getelementptr inbounds i8, ptr %b.89, i64 24
  %shape.103 = load ptr, ptr %at.102
  %at.104 = getelementptr inbounds i8, ptr %b.89, i64 32
  %strides.105 = load ptr, ptr %at.104
  %v.106 = ptrtoint ptr %shape.103 to i64
  %v.107 = ptrtoint ptr %strides.105 to i64
  %v.108 = and i64 %v.106, %v.107
  %c.109 = icmp ne i64 %v.108, 0
  br i1 %c.109, label %ok.110, label %slow.26
ok.110:
  %b.n0.111 = load i64, ptr %shape.103
  %c.112 = icmp eq i64 %b.n0.111, %a.n0.62
  br i1 %c.112, label %ok.113, label %slow.26
ok.113:
  %b.s0.114 = load i64, ptr %strides.105
  %c.115 = icmp eq i64 %b.s0.114, 1
  br i1 %c.115, label %ok.116, label %slow.26
ok.116:
  %data.117 = load i64, ptr %b.89
  %c.118 = icmp ne i64 %data.117, 0
  br i1 %c.118, label %ok.119, label %slow.26
ok.119:
  %at.120 = getelementptr inbounds i8, ptr %b.89, i64 40
  %byte_offset.121 = load i64, ptr %at.120
  %b.data.122 = add i64 %data.117, %byte_offset.121
  %v.123 = and i64 %b.data.122, 3
  %c.124 = icmp eq i64 %v.123, 0
  br i1 %c.124, label %ok.125, label %slow.26
ok.125:
  %at.126 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.122, ptr %at.126
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
