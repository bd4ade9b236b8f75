@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i32, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [8 x i64], align 8
  %out.2 = alloca [5 x i64], align 8
  %c.21 = icmp eq i32 %num_args, 2
  br i1 %c.21, label %ok.22, label %slow.17
ok.22:
  %index.23 = load i32, ptr %args
  %at.24 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.25 = load ptr, ptr %at.24
  %at.26 = getelementptr inbounds i8, ptr %payload.25, i64 24
  %c.27 = icmp eq i32 %index.23, 70
  br i1 %c.27, label %tensor.29, label %view.28
view.28:
  %c.30 = icmp eq i32 %index.23, 7
  br i1 %c.30, label %ok.31, label %slow.17
ok.31:
  %c.32 = icmp ne ptr %payload.25, null
  br i1 %c.32, label %tensor.29, label %slow.17
tensor.29:
  %a.33 = phi ptr [ %at.26, %ok.22 ], [ %payload.25, %ok.31 ]
  %at.34 = getelementptr inbounds i8, ptr %a.33, i64 16
  %kind.35 = load i64, ptr %at.34
  %c.36 = icmp eq i64 %kind.35, 316667938734082
  br i1 %c.36, label %ok.37, label %slow.17
ok.37:
  %at.38 = getelementptr inbounds i8, ptr %a.33, i64 8
  %device_type.39 = load i32, ptr %at.38
  %c.40 = icmp eq i32 %device_type.39, 1
  br i1 %c.40, label %ok.41, label %slow.17
ok.41:
  %at.42 = getelementptr inbounds i8, ptr %a.33, i64 24
  %shape.43 = load ptr, ptr %at.42
  %at.44 = getelementptr inbounds i8, ptr %a.33, i64 32
  %strides.45 = load ptr, ptr %at.44
  %v.46 = ptrtoint ptr %shape.43 to i64
  %v.47 = ptrtoint ptr %strides.45 to i64
  %v.48 = and i64 %v.46, %v.47
  %c.49 = icmp ne i64 %v.48, 0
  br i1 %c.49, label %ok.50, label %slow.17
ok.50:
  %a.n0.51 = load i64, ptr %shape.43
  %at.52 = getelementptr inbounds i8, ptr %shape.43, i64 8
  %a.n1.53 = load i64, ptr %at.52
  %v.54 = or i64 %a.n0.51, %a.n1.53
  %c.55 = icmp ule i64 %v.54, 2147483647
  br i1 %c.55, label %ok.56, label %slow.17
ok.56:
  %at.57 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %a.n0.51, ptr %at.57
  %at.58 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %a.n1.53, ptr %at.58
  %c.59 = icmp sgt i64 %a.n0.51, 1
  br i1 %c.59, label %ok.60, label %slow.17
ok.60:
  %c.61 = icmp sgt i64 %a.n1.53, 0
  br i1 %c.61, label %ok.62, label %slow.17
ok.62:
  %a.s0.63 = load i64, ptr %strides.45
  %v.64 = trunc i64 %a.s0.63 to i32
  %v.65 = sext i32 %v.64 to i64
  %c.66 = icmp eq i64 %v.65, %a.s0.63
  br i1 %c.66, label %ok.67, label %slow.17
ok.67:
  %at.68 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %a.s0.63, ptr %at.68
  %at.69 = getelementptr inbounds i8, ptr %strides.45, i64 8
  %a.s1.70 = load i64, ptr %at.69
  %c.71 = icmp eq i64 %a.s1.70, 1
  br i1 %c.71, label %ok.72, label %slow.17
ok.72:
  %data.73 = load i64, ptr %a.33
  %c.74 = icmp ne i64 %data.73, 0
  br i1 %c.74, label %ok.75, label %slow.17
ok.75:
  %at.76 = getelementptr inbounds i8, ptr %a.33, i64 40
  %byte_offset.77 = load i64, ptr %at.76
  %a.data.78 = add i64 %data.73, %byte_offset.77
  %v.79 = and i64 %a.data.78, 3
  %c.80 = icmp eq i64 %v.79, 0
  br i1 %c.80, label %ok.81, label %slow.17
ok.81:
  store i64 %a.data.78, ptr %out.2
  %at.82 = getelementptr inbounds i8, ptr %args, i64 16
  %index.83 = load i32, ptr %at.82
  %at.84 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.85 = load ptr, ptr %at.84
  %at.86 = getelementptr inbounds i8, ptr %payload.85, i64 24
  %c.87 = icmp eq i32 %index.83, 70
  br i1 %c.87, label %tensor.89, label %view.88
view.88:
  %c.90 = icmp eq i32 %index.83, 7
  br i1 %c.90, label %ok.91, label %slow.17
ok.91:
  %c.92 = icmp ne ptr %payload.85, null
  br i1 %c.92, label %tensor.89, label %slow.17
tensor.89:
  %b.93 = phi ptr [ %at.86, %ok.81 ], [ %payload.85, %ok.91 ]
  %at.94 = getelementptr inbounds i8, ptr %b.93, i64 16
  %kind.95 = load i64, ptr %at.94
  %c.96 = icmp eq i64 %kind.95, 316667938734082
  br i1 %c.96, label %ok.97, label %slow.17
ok.97:
  %at.98 = getelementptr inbounds i8, ptr %b.93, i64 8
  %device_type.99 = load i32, ptr %at.98
  %c.100 = icmp eq i32 %device_type.99, 1
  br i1 %c.100, label %ok.101, label %slow.17
ok.101:
  %at.102 = getelementptr inbounds i8, ptr %b.93, i64 24
  %shape.103 = load ptr, ptr %at.102
  %at.104 = getelementptr inbounds i8, ptr %b.93, i64 32
  %strides.105 = load ptr, ptr %at.104
  %v.106 = ptrtoint ptr %shape.103 to i64
  %v.107 = ptrtoint ptr %strides.105 to i64
  %v.108 = and i64 %v.106, %v.107
  %c.109 = icmp ne i64 %v.108, 0
  br i1 %c.109, label %ok.110, label %slow.17
ok.110:
  %b.n0.111 = load i64, ptr %shape.103
  %c.112 = icmp eq i64 %b.n0.111, %a.n0.51
  br i1 %c.112, label %ok.113, label %slow.17
ok.113:
  %at.114 = getelementptr inbounds i8, ptr %shape.103, i64 8
  %b.n1.115 = load i64, ptr %at.114
  %c.116 = icmp eq i64 %b.n1.115, %a.n1.53
  br i1 %c.116, label %ok.117, label %slow.17
ok.117:
  %b.s0.118 = load i64, ptr %strides.105
  %c.119 = icmp eq i64 %b.s0.118, %a.s0.63
  br i1 %c.119, label %ok.120, label %slow.17
ok.120:
  %at.121 = getelementptr inbounds i8, ptr %strides.105, i64 8
  %b.s1.122 = load i64, ptr %at.121
  %c.123 = icmp eq i64 %b.s1.122, 1
  br i1 %c.123, label %ok.124, label %slow.17
ok.124:
  %data.125 = load i64, ptr %b.93
  %c.126 = icmp ne i64 %data.125, 0
  br i1 %c.126, label %ok.127, label %slow.17
ok.127:
  %at.128 = getelementptr inbounds i8, ptr %b.93, i64 40
  %byte_offset.129 = load i64, ptr %at.128
  %b.data.130 = add i64 %data.125, %byte_offset.129
  %v.131 = and i64 %b.data.130, 3
  %c.132 = icmp eq i64 %v.131, 0
  br i1 %c.132, label %ok.133, label %slow.17
ok.133:
  %at.134 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.130, ptr %at.134
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %b.6 = load ptr, ptr %at.5
  %at.7 = getelementptr inbounds i8, ptr %out.2, i64 16
  %n.8 = load i64, ptr %at.7
  %v.9 = trunc i64 %n.8 to i32
  %at.10 = getelementptr inbounds i8, ptr %out.2, i64 24
  %m.11 = load i64, ptr %at.10
  %v.12 = trunc i64 %m.11 to i32
  %at.13 = getelementptr inbounds i8, ptr %out.2, i64 32
  %s.14 = load i64, ptr %at.13
  %v.15 = trunc i64 %s.14 to i32
  %ferrule_body.16 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, ptr %b.6, i32 %v.9, i32 %v.12, i32 %v.15)
  ret i32 0
slow.17:
  %ferrule_check.18 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.20 = icmp eq i32 %ferrule_check.18, 0
  br i1 %c.20, label %accepted.3, label %refused.19
refused.19:
  ret i32 -1
}
