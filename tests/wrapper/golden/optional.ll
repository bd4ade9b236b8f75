@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, i8, ptr, i8, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [8 x i64], align 8
  %out.2 = alloca [5 x i64], align 8
  %given.57 = alloca [1 x i8], align 8
  %before.58 = alloca [1 x i64], align 8
  store i8 0, ptr %given.57
  %at.133 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 1, ptr %at.133
  %c.19 = icmp eq i32 %num_args, 2
  br i1 %c.19, label %ok.20, label %slow.15
ok.20:
  store i64 0, ptr %out.2
  %at.21 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 0, ptr %at.21
  %index.22 = load i32, ptr %args
  %c.23 = icmp eq i32 %index.22, 0
  br i1 %c.23, label %behind.25, label %present.24
present.24:
  store i64 1, ptr %out.2
  %index.26 = load i32, ptr %args
  %at.27 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.28 = load ptr, ptr %at.27
  %at.29 = getelementptr inbounds i8, ptr %payload.28, i64 24
  %c.30 = icmp eq i32 %index.26, 70
  br i1 %c.30, label %tensor.32, label %view.31
view.31:
  %c.33 = icmp eq i32 %index.26, 7
  br i1 %c.33, label %ok.34, label %slow.15
ok.34:
  %c.35 = icmp ne ptr %payload.28, null
  br i1 %c.35, label %tensor.32, label %slow.15
tensor.32:
  %a.36 = phi ptr [ %at.29, %present.24 ], [ %payload.28, %ok.34 ]
  %at.37 = getelementptr inbounds i8, ptr %a.36, i64 16
  %kind.38 = load i64, ptr %at.37
  %c.39 = icmp eq i64 %kind.38, 316667938734081
  br i1 %c.39, label %ok.40, label %slow.15
ok.40:
  %at.41 = getelementptr inbounds i8, ptr %a.36, i64 8
  %device_type.42 = load i32, ptr %at.41
  %c.43 = icmp eq i32 %device_type.42, 1
  br i1 %c.43, label %ok.44, label %slow.15
ok.44:
  %at.45 = getelementptr inbounds i8, ptr %a.36, i64 24
  %shape.46 = load ptr, ptr %at.45
  %at.47 = getelementptr inbounds i8, ptr %a.36, i64 32
  %strides.48 = load ptr, ptr %at.47
  %v.49 = ptrtoint ptr %shape.46 to i64
  %v.50 = ptrtoint ptr %strides.48 to i64
  %v.51 = and i64 %v.49, %v.50
  %c.52 = icmp ne i64 %v.51, 0
  br i1 %c.52, label %ok.53, label %slow.15
ok.53:
  %a.n0.54 = load i64, ptr %shape.46
  %c.55 = icmp ule i64 %a.n0.54, 2147483647
  br i1 %c.55, label %ok.56, label %slow.15
ok.56:
  store i8 1, ptr %given.57
  store i64 %a.n0.54, ptr %before.58
  %at.59 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %a.n0.54, ptr %at.59
  %a.s0.60 = load i64, ptr %strides.48
  %c.61 = icmp eq i64 %a.s0.60, 1
  br i1 %c.61, label %ok.62, label %slow.15
ok.62:
  %data.63 = load i64, ptr %a.36
  %c.64 = icmp ne i64 %data.63, 0
  br i1 %c.64, label %ok.65, label %slow.15
ok.65:
  %at.66 = getelementptr inbounds i8, ptr %a.36, i64 40
  %byte_offset.67 = load i64, ptr %at.66
  %a.data.68 = add i64 %data.63, %byte_offset.67
  %v.69 = and i64 %a.data.68, 3
  %c.70 = icmp eq i64 %v.69, 0
  br i1 %c.70, label %ok.71, label %slow.15
ok.71:
  %at.72 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %a.data.68, ptr %at.72
  br label %behind.25
behind.25:
  %at.73 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 0, ptr %at.73
  %at.74 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 0, ptr %at.74
  %at.75 = getelementptr inbounds i8, ptr %args, i64 16
  %index.76 = load i32, ptr %at.75
  %c.77 = icmp eq i32 %index.76, 0
  br i1 %c.77, label %behind.79, label %present.78
present.78:
  %at.80 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 1, ptr %at.80
  %at.81 = getelementptr inbounds i8, ptr %args, i64 16
  %index.82 = load i32, ptr %at.81
  %at.83 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.84 = load ptr, ptr %at.83
  %at.85 = getelementptr inbounds i8, ptr %payload.84, i64 24
  %c.86 = icmp eq i32 %index.82, 70
  br i1 %c.86, label %tensor.88, label %view.87
view.87:
  %c.89 = icmp eq i32 %index.82, 7
  br i1 %c.89, label %ok.90, label %slow.15
ok.90:
  %c.91 = icmp ne ptr %payload.84, null
  br i1 %c.91, label %tensor.88, label %slow.15
tensor.88:
  %b.92 = phi ptr [ %at.85, %present.78 ], [ %payload.84, %ok.90 ]
  %at.93 = getelementptr inbounds i8, ptr %b.92, i64 16
  %kind.94 = load i64, ptr %at.93
  %c.95 = icmp eq i64 %kind.94, 316667938734081
  br i1 %c.95, label %ok.96, label %slow.15
ok.96:
  %at.97 = getelementptr inbounds i8, ptr %b.92, i64 8
  %device_type.98 = load i32, ptr %at.97
  %c.99 = icmp eq i32 %device_type.98, 1
  br i1 %c.99, label %ok.100, label %slow.15
ok.100:
  %at.101 = getelementptr inbounds i8, ptr %b.92, i64 24
  %shape.102 = load ptr, ptr %at.101
  %at.103 = getelementptr inbounds i8, ptr %b.92, i64 32
  %strides.104 = load ptr, ptr %at.103
  %v.105 = ptrtoint ptr %shape.102 to i64
  %v.106 = ptrtoint ptr %strides.104 to i64
  %v.107 = and i64 %v.105, %v.106
  %c.108 = icmp ne i64 %v.107, 0
  br i1 %c.108, label %ok.109, label %slow.15
ok.109:
  %b.n0.110 = load i64, ptr %shape.102
  %c.111 = icmp ule i64 %b.n0.110, 2147483647
  br i1 %c.111, label %ok.112, label %slow.15
ok.112:
  %v.113 = load i8, ptr %given.57
  %c.114 = icmp ne i8 %v.113, 0
  %v.115 = load i64, ptr %before.58
  %c.116 = icmp ne i64 %v.115, %b.n0.110
  %v.117 = and i1 %c.114, %c.116
  br i1 %v.117, label %slow.15, label %ok.118
ok.118:
  store i8 1, ptr %given.57
  store i64 %b.n0.110, ptr %before.58
  %at.119 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %b.n0.110, ptr %at.119
  %b.s0.120 = load i64, ptr %strides.104
  %c.121 = icmp eq i64 %b.s0.120, 1
  br i1 %c.121, label %ok.122, label %slow.15
ok.122:
  %data.123 = load i64, ptr %b.92
  %c.124 = icmp ne i64 %data.123, 0
  br i1 %c.124, label %ok.125, label %slow.15
ok.125:
  %at.126 = getelementptr inbounds i8, ptr %b.92, i64 40
  %byte_offset.127 = load i64, ptr %at.126
  %b.data.128 = add i64 %data.123, %byte_offset.127
  %v.129 = and i64 %b.data.128, 3
  %c.130 = icmp eq i64 %v.129, 0
  br i1 %c.130, label %ok.131, label %slow.15
ok.131:
  %at.132 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %b.data.128, ptr %at.132
  br label %behind.79
behind.79:
  br label %accepted.3
accepted.3:
  %a.4 = load i8, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %a.6 = load ptr, ptr %at.5
  %at.7 = getelementptr inbounds i8, ptr %out.2, i64 16
  %b.8 = load i8, ptr %at.7
  %at.9 = getelementptr inbounds i8, ptr %out.2, i64 24
  %b.10 = load ptr, ptr %at.9
  %at.11 = getelementptr inbounds i8, ptr %out.2, i64 32
  %n.12 = load i64, ptr %at.11
  %v.13 = trunc i64 %n.12 to i32
  %ferrule_body.14 = call i32 @ferrule_body(ptr %values.1, i8 %a.4, ptr %a.6, i8 %b.8, ptr %b.10, i32 %v.13)
  ret i32 0
slow.15:
  %ferrule_check.16 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.18 = icmp eq i32 %ferrule_check.16, 0
  br i1 %c.18, label %accepted.3, label %refused.17
refused.17:
  ret i32 -1
}
