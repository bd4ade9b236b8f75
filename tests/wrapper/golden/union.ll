@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare ptr @TVMFFIEnvGetStream(i32, i32)
declare i32 @ferrule_body(ptr, i32, i32, ptr, i64, ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [7 x i64], align 8
  %device.4 = alloca [1 x i32], align 8
  %device.index.5 = alloca [1 x i32], align 8
  store i32 1, ptr %device.4
  store i32 0, ptr %device.index.5
  %given.122 = alloca [1 x i8], align 8
  %before.123 = alloca [1 x i64], align 8
  store i8 0, ptr %given.122
  %given.134 = alloca [1 x i8], align 8
  %before.135 = alloca [1 x i64], align 8
  store i8 0, ptr %given.134
  %at.153 = getelementptr inbounds i8, ptr %out.2, i64 48
  store i64 1, ptr %at.153
  %c.42 = icmp eq i32 %num_args, 1
  br i1 %c.42, label %ok.43, label %slow.38
ok.43:
  store i64 0, ptr %out.2
  %at.44 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 0, ptr %at.44
  %at.45 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 0, ptr %at.45
  %at.46 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 0, ptr %at.46
  %at.47 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 0, ptr %at.47
  %index.48 = load i32, ptr %args
  %c.52 = icmp eq i32 %index.48, 1
  %c.53 = icmp eq i32 %index.48, 2
  %v.54 = or i1 %c.52, %c.53
  br i1 %v.54, label %member.50, label %other.51
member.50:
  store i64 0, ptr %out.2
  %index.55 = load i32, ptr %args
  %v.56 = sub i32 %index.55, 1
  %c.57 = icmp ule i32 %v.56, 1
  br i1 %c.57, label %ok.58, label %slow.38
other.51:
  %c.68 = icmp eq i32 %index.48, 8
  %c.69 = icmp eq i32 %index.48, 11
  %v.70 = or i1 %c.68, %c.69
  %c.71 = icmp eq i32 %index.48, 65
  %v.72 = or i1 %v.70, %c.71
  br i1 %v.72, label %member.66, label %other.67
ok.58:
  %at.59 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.60 = load i64, ptr %at.59
  %v.61 = trunc i64 %payload.60 to i32
  %v.62 = sext i32 %v.61 to i64
  %c.63 = icmp eq i64 %v.62, %payload.60
  br i1 %c.63, label %ok.64, label %slow.38
ok.64:
  %at.65 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %payload.60, ptr %at.65
  br label %behind.49
member.66:
  store i64 1, ptr %out.2
  %index.73 = load i32, ptr %args
  %c.77 = icmp eq i32 %index.73, 11
  br i1 %c.77, label %small.74, label %large.75
other.67:
  %c.98 = icmp eq i32 %index.48, 7
  %c.99 = icmp eq i32 %index.48, 70
  %v.100 = or i1 %c.98, %c.99
  br i1 %v.100, label %member.96, label %other.97
small.74:
  %at.78 = getelementptr inbounds i8, ptr %args, i64 4
  %length.79 = load i32, ptr %at.78
  %c.80 = icmp ule i32 %length.79, 7
  br i1 %c.80, label %ok.81, label %slow.38
large.75:
  %c.86 = icmp eq i32 %index.73, 65
  br i1 %c.86, label %ok.87, label %slow.38
ok.81:
  %at.82 = getelementptr inbounds i8, ptr %args, i64 8
  %v.83 = zext i32 %length.79 to i64
  %at.84 = getelementptr inbounds i8, ptr %out.2, i64 16
  store ptr %at.82, ptr %at.84
  %at.85 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %v.83, ptr %at.85
  br label %text.76
ok.87:
  %at.88 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.89 = load ptr, ptr %at.88
  %at.90 = getelementptr inbounds i8, ptr %payload.89, i64 24
  %data.91 = load ptr, ptr %at.90
  %at.92 = getelementptr inbounds i8, ptr %at.90, i64 8
  %size.93 = load i64, ptr %at.92
  %at.94 = getelementptr inbounds i8, ptr %out.2, i64 16
  store ptr %data.91, ptr %at.94
  %at.95 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %size.93, ptr %at.95
  br label %text.76
text.76:
  br label %behind.49
member.96:
  store i64 2, ptr %out.2
  %index.101 = load i32, ptr %args
  %at.102 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.103 = load ptr, ptr %at.102
  %at.104 = getelementptr inbounds i8, ptr %payload.103, i64 24
  %c.105 = icmp eq i32 %index.101, 70
  br i1 %c.105, label %tensor.107, label %view.106
other.97:
  br label %slow.38
view.106:
  %c.108 = icmp eq i32 %index.101, 7
  br i1 %c.108, label %ok.109, label %slow.38
ok.109:
  %c.110 = icmp ne ptr %payload.103, null
  br i1 %c.110, label %tensor.107, label %slow.38
tensor.107:
  %u.111 = phi ptr [ %at.104, %member.96 ], [ %payload.103, %ok.109 ]
  %at.112 = getelementptr inbounds i8, ptr %u.111, i64 16
  %kind.113 = load i64, ptr %at.112
  %c.114 = icmp eq i64 %kind.113, 316667938734081
  br i1 %c.114, label %ok.115, label %slow.38
ok.115:
  %at.116 = getelementptr inbounds i8, ptr %u.111, i64 8
  %device_type.117 = load i32, ptr %at.116
  %c.118 = icmp eq i32 %device_type.117, 2
  br i1 %c.118, label %ok.119, label %slow.38
ok.119:
  %at.120 = getelementptr inbounds i8, ptr %u.111, i64 12
  %device_id.121 = load i32, ptr %at.120
  store i8 1, ptr %given.122
  store i32 %device_id.121, ptr %before.123
  %at.124 = getelementptr inbounds i8, ptr %u.111, i64 24
  %shape.125 = load ptr, ptr %at.124
  %at.126 = getelementptr inbounds i8, ptr %u.111, i64 32
  %strides.127 = load ptr, ptr %at.126
  %v.128 = ptrtoint ptr %shape.125 to i64
  %v.129 = ptrtoint ptr %strides.127 to i64
  %v.130 = and i64 %v.128, %v.129
  %c.131 = icmp ne i64 %v.130, 0
  br i1 %c.131, label %ok.132, label %slow.38
ok.132:
  %u.n0.133 = load i64, ptr %shape.125
  store i8 1, ptr %given.134
  store i64 %u.n0.133, ptr %before.135
  %at.136 = getelementptr inbounds i8, ptr %out.2, i64 48
  store i64 %u.n0.133, ptr %at.136
  %u.s0.137 = load i64, ptr %strides.127
  %c.138 = icmp eq i64 %u.s0.137, 1
  br i1 %c.138, label %ok.139, label %slow.38
ok.139:
  %data.140 = load i64, ptr %u.111
  %c.141 = icmp ne i64 %data.140, 0
  br i1 %c.141, label %ok.142, label %slow.38
ok.142:
  %at.143 = getelementptr inbounds i8, ptr %u.111, i64 40
  %byte_offset.144 = load i64, ptr %at.143
  %u.data.145 = add i64 %data.140, %byte_offset.144
  %at.146 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %u.data.145, ptr %at.146
  %v.147 = and i64 %u.n0.133, -2147483648
  %c.148 = icmp eq i64 %v.147, 0
  br i1 %c.148, label %ok.149, label %slow.38
ok.149:
  %v.150 = and i64 %u.data.145, 3
  %c.151 = icmp eq i64 %v.150, 0
  br i1 %c.151, label %ok.152, label %slow.38
ok.152:
  br label %behind.49
behind.49:
  br label %accepted.3
accepted.3:
  %type_index.9 = load i32, ptr %args
  %c.10 = icmp eq i32 %type_index.9, 7
  %c.11 = icmp eq i32 %type_index.9, 70
  %v.12 = or i1 %c.10, %c.11
  br i1 %v.12, label %there.8, label %other.7
there.8:
  store i32 2, ptr %device.4
  %type_index.13 = load i32, ptr %args
  %c.14 = icmp eq i32 %type_index.13, 70
  %v.15 = select i1 %c.14, i64 24, i64 0
  %at.16 = getelementptr inbounds i8, ptr %args, i64 8
  %v_int64.17 = load i64, ptr %at.16
  %v.18 = add i64 %v_int64.17, %v.15
  %v.19 = inttoptr i64 %v.18 to ptr
  %at.20 = getelementptr inbounds i8, ptr %v.19, i64 12
  %device_id.21 = load i32, ptr %at.20
  store i32 %device_id.21, ptr %device.index.5
  br label %stream.6
other.7:
  br label %stream.6
stream.6:
  %v.22 = load i32, ptr %device.4
  %v.23 = load i32, ptr %device.index.5
  %TVMFFIEnvGetStream.24 = call ptr @TVMFFIEnvGetStream(i32 %v.22, i32 %v.23)
  %u.25 = load i32, ptr %out.2
  %at.26 = getelementptr inbounds i8, ptr %out.2, i64 8
  %u.27 = load i32, ptr %at.26
  %at.28 = getelementptr inbounds i8, ptr %out.2, i64 16
  %u.29 = load ptr, ptr %at.28
  %at.30 = getelementptr inbounds i8, ptr %out.2, i64 24
  %u.31 = load i64, ptr %at.30
  %at.32 = getelementptr inbounds i8, ptr %out.2, i64 32
  %u.33 = load ptr, ptr %at.32
  %at.34 = getelementptr inbounds i8, ptr %out.2, i64 48
  %n.35 = load i64, ptr %at.34
  %v.36 = trunc i64 %n.35 to i32
  %ferrule_body.37 = call i32 @ferrule_body(ptr %values.1, i32 %u.25, i32 %u.27, ptr %u.29, i64 %u.31, ptr %u.33, ptr %TVMFFIEnvGetStream.24, i32 %v.36)
  ret i32 0
slow.38:
  %ferrule_check.39 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.41 = icmp eq i32 %ferrule_check.39, 0
  br i1 %c.41, label %accepted.3, label %refused.40
refused.40:
  ret i32 -1
}
