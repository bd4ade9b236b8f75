@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i32, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
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
  %at.54 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %a.n0.51, ptr %at.54
  %bits.55 = or i64 %a.n0.51, %a.n1.53
  %at.56 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %a.n1.53, ptr %at.56
  %c.57 = icmp sgt i64 %a.n0.51, 1
  br i1 %c.57, label %ok.58, label %slow.17
ok.58:
  %c.59 = icmp sgt i64 %a.n1.53, 0
  br i1 %c.59, label %ok.60, label %slow.17
ok.60:
  %a.s0.61 = load i64, ptr %strides.45
  %v.62 = trunc i64 %a.s0.61 to i32
  %v.63 = sext i32 %v.62 to i64
  %c.64 = icmp eq i64 %v.63, %a.s0.61
  br i1 %c.64, label %ok.65, label %slow.17
ok.65:
  %at.66 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %a.s0.61, ptr %at.66
  %at.67 = getelementptr inbounds i8, ptr %strides.45, i64 8
  %a.s1.68 = load i64, ptr %at.67
  %c.69 = icmp eq i64 %a.s1.68, 1
  br i1 %c.69, label %ok.70, label %slow.17
ok.70:
  %data.71 = load i64, ptr %a.33
  %c.72 = icmp ne i64 %data.71, 0
  br i1 %c.72, label %ok.73, label %slow.17
ok.73:
  %at.74 = getelementptr inbounds i8, ptr %a.33, i64 40
  %byte_offset.75 = load i64, ptr %at.74
  %a.data.76 = add i64 %data.71, %byte_offset.75
  store i64 %a.data.76, ptr %out.2
  %at.77 = getelementptr inbounds i8, ptr %args, i64 16
  %index.78 = load i32, ptr %at.77
  %at.79 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.80 = load ptr, ptr %at.79
  %at.81 = getelementptr inbounds i8, ptr %payload.80, i64 24
  %c.82 = icmp eq i32 %index.78, 70
  br i1 %c.82, label %tensor.84, label %view.83
view.83:
  %c.85 = icmp eq i32 %index.78, 7
  br i1 %c.85, label %ok.86, label %slow.17
ok.86:
  %c.87 = icmp ne ptr %payload.80, null
  br i1 %c.87, label %tensor.84, label %slow.17
tensor.84:
  %b.88 = phi ptr [ %at.81, %ok.73 ], [ %payload.80, %ok.86 ]
  %at.89 = getelementptr inbounds i8, ptr %b.88, i64 16
  %kind.90 = load i64, ptr %at.89
  %c.91 = icmp eq i64 %kind.90, %kind.35
  br i1 %c.91, label %ok.92, label %slow.17
ok.92:
  %at.93 = getelementptr inbounds i8, ptr %b.88, i64 8
  %device_type.94 = load i32, ptr %at.93
  %c.95 = icmp eq i32 %device_type.94, 1
  br i1 %c.95, label %ok.96, label %slow.17
ok.96:
  %at.97 = getelementptr inbounds i8, ptr %b.88, i64 24
  %shape.98 = load ptr, ptr %at.97
  %at.99 = getelementptr inbounds i8, ptr %b.88, i64 32
  %strides.100 = load ptr, ptr %at.99
  %v.101 = ptrtoint ptr %shape.98 to i64
  %v.102 = ptrtoint ptr %strides.100 to i64
  %v.103 = and i64 %v.101, %v.102
  %c.104 = icmp ne i64 %v.103, 0
  br i1 %c.104, label %ok.105, label %slow.17
ok.105:
  %pair.106 = load <4 x i32>, ptr %shape.43, align 8
  %pair.107 = load <4 x i32>, ptr %strides.45, align 8
  %pair.108 = load <4 x i32>, ptr %shape.98, align 8
  %same.109 = icmp eq <4 x i32> %pair.108, %pair.106
  %pair.110 = load <4 x i32>, ptr %strides.100, align 8
  %same.111 = icmp eq <4 x i32> %pair.110, %pair.107
  %same.112 = and <4 x i1> %same.109, %same.111
  %v.113 = bitcast <4 x i1> %same.112 to i4
  %lanes.114 = zext i4 %v.113 to i32
  %c.115 = icmp eq i32 %lanes.114, 15
  br i1 %c.115, label %ok.116, label %slow.17
ok.116:
  %data.117 = load i64, ptr %b.88
  %c.118 = icmp ne i64 %data.117, 0
  br i1 %c.118, label %ok.119, label %slow.17
ok.119:
  %at.120 = getelementptr inbounds i8, ptr %b.88, i64 40
  %byte_offset.121 = load i64, ptr %at.120
  %b.data.122 = add i64 %data.117, %byte_offset.121
  %bits.123 = or i64 %a.data.76, %b.data.122
  %at.124 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.122, ptr %at.124
  %v.125 = and i64 %bits.55, -2147483648
  %c.126 = icmp eq i64 %v.125, 0
  br i1 %c.126, label %ok.127, label %slow.17
ok.127:
  %v.128 = and i64 %bits.123, 3
  %c.129 = icmp eq i64 %v.128, 0
  br i1 %c.129, label %ok.130, label %slow.17
ok.130:
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
