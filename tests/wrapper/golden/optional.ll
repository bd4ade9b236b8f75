@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, i8, ptr, i8, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [5 x i64], align 8
  %given.55 = alloca [1 x i8], align 8
  %before.56 = alloca [1 x i64], align 8
  store i8 0, ptr %given.55
  %at.135 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 1, ptr %at.135
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
  store i8 1, ptr %given.55
  store i64 %a.n0.54, ptr %before.56
  %at.57 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %a.n0.54, ptr %at.57
  %a.s0.58 = load i64, ptr %strides.48
  %c.59 = icmp eq i64 %a.s0.58, 1
  br i1 %c.59, label %ok.60, label %slow.15
ok.60:
  %data.61 = load i64, ptr %a.36
  %c.62 = icmp ne i64 %data.61, 0
  br i1 %c.62, label %ok.63, label %slow.15
ok.63:
  %at.64 = getelementptr inbounds i8, ptr %a.36, i64 40
  %byte_offset.65 = load i64, ptr %at.64
  %a.data.66 = add i64 %data.61, %byte_offset.65
  %at.67 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %a.data.66, ptr %at.67
  %v.68 = and i64 %a.n0.54, -2147483648
  %c.69 = icmp eq i64 %v.68, 0
  br i1 %c.69, label %ok.70, label %slow.15
ok.70:
  %v.71 = and i64 %a.data.66, 3
  %c.72 = icmp eq i64 %v.71, 0
  br i1 %c.72, label %ok.73, label %slow.15
ok.73:
  br label %behind.25
behind.25:
  %at.74 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 0, ptr %at.74
  %at.75 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 0, ptr %at.75
  %at.76 = getelementptr inbounds i8, ptr %args, i64 16
  %index.77 = load i32, ptr %at.76
  %c.78 = icmp eq i32 %index.77, 0
  br i1 %c.78, label %behind.80, label %present.79
present.79:
  %at.81 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 1, ptr %at.81
  %at.82 = getelementptr inbounds i8, ptr %args, i64 16
  %index.83 = load i32, ptr %at.82
  %at.84 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.85 = load ptr, ptr %at.84
  %at.86 = getelementptr inbounds i8, ptr %payload.85, i64 24
  %c.87 = icmp eq i32 %index.83, 70
  br i1 %c.87, label %tensor.89, label %view.88
view.88:
  %c.90 = icmp eq i32 %index.83, 7
  br i1 %c.90, label %ok.91, label %slow.15
ok.91:
  %c.92 = icmp ne ptr %payload.85, null
  br i1 %c.92, label %tensor.89, label %slow.15
tensor.89:
  %b.93 = phi ptr [ %at.86, %present.79 ], [ %payload.85, %ok.91 ]
  %at.94 = getelementptr inbounds i8, ptr %b.93, i64 16
  %kind.95 = load i64, ptr %at.94
  %c.96 = icmp eq i64 %kind.95, 316667938734081
  br i1 %c.96, label %ok.97, label %slow.15
ok.97:
  %at.98 = getelementptr inbounds i8, ptr %b.93, i64 8
  %device_type.99 = load i32, ptr %at.98
  %c.100 = icmp eq i32 %device_type.99, 1
  br i1 %c.100, label %ok.101, label %slow.15
ok.101:
  %at.102 = getelementptr inbounds i8, ptr %b.93, i64 24
  %shape.103 = load ptr, ptr %at.102
  %at.104 = getelementptr inbounds i8, ptr %b.93, i64 32
  %strides.105 = load ptr, ptr %at.104
  %v.106 = ptrtoint ptr %shape.103 to i64
  %v.107 = ptrtoint ptr %strides.105 to i64
  %v.108 = and i64 %v.106, %v.107
  %c.109 = icmp ne i64 %v.108, 0
  br i1 %c.109, label %ok.110, label %slow.15
ok.110:
  %b.n0.111 = load i64, ptr %shape.103
  %v.112 = load i8, ptr %given.55
  %c.113 = icmp ne i8 %v.112, 0
  %v.114 = load i64, ptr %before.56
  %c.115 = icmp ne i64 %v.114, %b.n0.111
  %v.116 = and i1 %c.113, %c.115
  br i1 %v.116, label %slow.15, label %ok.117
ok.117:
  store i8 1, ptr %given.55
  store i64 %b.n0.111, ptr %before.56
  %at.118 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %b.n0.111, ptr %at.118
  %b.s0.119 = load i64, ptr %strides.105
  %c.120 = icmp eq i64 %b.s0.119, 1
  br i1 %c.120, label %ok.121, label %slow.15
ok.121:
  %data.122 = load i64, ptr %b.93
  %c.123 = icmp ne i64 %data.122, 0
  br i1 %c.123, label %ok.124, label %slow.15
ok.124:
  %at.125 = getelementptr inbounds i8, ptr %b.93, i64 40
  %byte_offset.126 = load i64, ptr %at.125
  %b.data.127 = add i64 %data.122, %byte_offset.126
  %at.128 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %b.data.127, ptr %at.128
  %v.129 = and i64 %b.n0.111, -2147483648
  %c.130 = icmp eq i64 %v.129, 0
  br i1 %c.130, label %ok.131, label %slow.15
ok.131:
  %v.132 = and i64 %b.data.127, 3
  %c.133 = icmp eq i64 %v.132, 0
  br i1 %c.133, label %ok.134, label %slow.15
ok.134:
  br label %behind.80
behind.80:
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
