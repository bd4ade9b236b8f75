@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i8, ptr, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [6 x i64], align 8
  %c.22 = icmp eq i32 %num_args, 3
  br i1 %c.22, label %ok.23, label %slow.18
ok.23:
  %index.24 = load i32, ptr %args
  %at.25 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.26 = load ptr, ptr %at.25
  %at.27 = getelementptr inbounds i8, ptr %payload.26, i64 24
  %c.28 = icmp eq i32 %index.24, 70
  br i1 %c.28, label %tensor.30, label %view.29
view.29:
  %c.31 = icmp eq i32 %index.24, 7
  br i1 %c.31, label %ok.32, label %slow.18
ok.32:
  %c.33 = icmp ne ptr %payload.26, null
  br i1 %c.33, label %tensor.30, label %slow.18
tensor.30:
  %a.34 = phi ptr [ %at.27, %ok.23 ], [ %payload.26, %ok.32 ]
  %at.35 = getelementptr inbounds i8, ptr %a.34, i64 16
  %kind.36 = load i64, ptr %at.35
  %c.37 = icmp eq i64 %kind.36, 316667938734083
  br i1 %c.37, label %ok.38, label %slow.18
ok.38:
  %at.39 = getelementptr inbounds i8, ptr %a.34, i64 8
  %device_type.40 = load i32, ptr %at.39
  %c.41 = icmp eq i32 %device_type.40, 1
  br i1 %c.41, label %ok.42, label %slow.18
ok.42:
  %at.43 = getelementptr inbounds i8, ptr %a.34, i64 24
  %shape.44 = load ptr, ptr %at.43
  %at.45 = getelementptr inbounds i8, ptr %a.34, i64 32
  %strides.46 = load ptr, ptr %at.45
  %v.47 = ptrtoint ptr %shape.44 to i64
  %v.48 = ptrtoint ptr %strides.46 to i64
  %v.49 = and i64 %v.47, %v.48
  %c.50 = icmp ne i64 %v.49, 0
  br i1 %c.50, label %ok.51, label %slow.18
ok.51:
  %a.n0.52 = load i64, ptr %shape.44
  %at.53 = getelementptr inbounds i8, ptr %shape.44, i64 8
  %a.n1.54 = load i64, ptr %at.53
  %at.55 = getelementptr inbounds i8, ptr %out.2, i64 32
  store i64 %a.n0.52, ptr %at.55
  %bits.56 = or i64 %a.n0.52, %a.n1.54
  %at.57 = getelementptr inbounds i8, ptr %out.2, i64 40
  store i64 %a.n1.54, ptr %at.57
  %at.58 = getelementptr inbounds i8, ptr %shape.44, i64 16
  %a.n2.59 = load i64, ptr %at.58
  %c.60 = icmp eq i64 %a.n2.59, 4
  br i1 %c.60, label %ok.61, label %slow.18
ok.61:
  %v.62 = mul i64 %a.n1.54, 4
  %a.s0.63 = load i64, ptr %strides.46
  %c.64 = icmp eq i64 %a.s0.63, %v.62
  br i1 %c.64, label %ok.65, label %slow.18
ok.65:
  %at.66 = getelementptr inbounds i8, ptr %strides.46, i64 8
  %a.s1.67 = load i64, ptr %at.66
  %c.68 = icmp eq i64 %a.s1.67, 4
  br i1 %c.68, label %ok.69, label %slow.18
ok.69:
  %at.70 = getelementptr inbounds i8, ptr %strides.46, i64 16
  %a.s2.71 = load i64, ptr %at.70
  %c.72 = icmp eq i64 %a.s2.71, 1
  br i1 %c.72, label %ok.73, label %slow.18
ok.73:
  %data.74 = load i64, ptr %a.34
  %c.75 = icmp ne i64 %data.74, 0
  br i1 %c.75, label %ok.76, label %slow.18
ok.76:
  %at.77 = getelementptr inbounds i8, ptr %a.34, i64 40
  %byte_offset.78 = load i64, ptr %at.77
  %a.data.79 = add i64 %data.74, %byte_offset.78
  store i64 %a.data.79, ptr %out.2
  %at.80 = getelementptr inbounds i8, ptr %args, i64 16
  %index.81 = load i32, ptr %at.80
  %at.82 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.83 = load ptr, ptr %at.82
  %at.84 = getelementptr inbounds i8, ptr %payload.83, i64 24
  %c.85 = icmp eq i32 %index.81, 70
  br i1 %c.85, label %tensor.87, label %view.86
view.86:
  %c.88 = icmp eq i32 %index.81, 7
  br i1 %c.88, label %ok.89, label %slow.18
ok.89:
  %c.90 = icmp ne ptr %payload.83, null
  br i1 %c.90, label %tensor.87, label %slow.18
tensor.87:
  %b.91 = phi ptr [ %at.84, %ok.76 ], [ %payload.83, %ok.89 ]
  %at.92 = getelementptr inbounds i8, ptr %b.91, i64 16
  %kind.93 = load i64, ptr %at.92
  %c.94 = icmp eq i64 %kind.93, %kind.36
  br i1 %c.94, label %ok.95, label %slow.18
ok.95:
  %at.96 = getelementptr inbounds i8, ptr %b.91, i64 8
  %device_type.97 = load i32, ptr %at.96
  %c.98 = icmp eq i32 %device_type.97, 1
  br i1 %c.98, label %ok.99, label %slow.18
ok.99:
  %at.100 = getelementptr inbounds i8, ptr %b.91, i64 24
  %shape.101 = load ptr, ptr %at.100
  %at.102 = getelementptr inbounds i8, ptr %b.91, i64 32
  %strides.103 = load ptr, ptr %at.102
  %v.104 = ptrtoint ptr %shape.101 to i64
  %v.105 = ptrtoint ptr %strides.103 to i64
  %v.106 = and i64 %v.104, %v.105
  %c.107 = icmp ne i64 %v.106, 0
  br i1 %c.107, label %ok.108, label %slow.18
ok.108:
  %pair.109 = load <4 x i32>, ptr %shape.44, align 8
  %at.110 = getelementptr inbounds i8, ptr %shape.44, i64 8
  %pair.111 = load <4 x i32>, ptr %at.110, align 8
  %pair.112 = load <4 x i32>, ptr %strides.46, align 8
  %at.113 = getelementptr inbounds i8, ptr %strides.46, i64 8
  %pair.114 = load <4 x i32>, ptr %at.113, align 8
  %pair.115 = load <4 x i32>, ptr %shape.101, align 8
  %same.116 = icmp eq <4 x i32> %pair.115, %pair.109
  %at.117 = getelementptr inbounds i8, ptr %shape.101, i64 8
  %pair.118 = load <4 x i32>, ptr %at.117, align 8
  %same.119 = icmp eq <4 x i32> %pair.118, %pair.111
  %same.120 = and <4 x i1> %same.116, %same.119
  %pair.121 = load <4 x i32>, ptr %strides.103, align 8
  %same.122 = icmp eq <4 x i32> %pair.121, %pair.112
  %same.123 = and <4 x i1> %same.120, %same.122
  %at.124 = getelementptr inbounds i8, ptr %strides.103, i64 8
  %pair.125 = load <4 x i32>, ptr %at.124, align 8
  %same.126 = icmp eq <4 x i32> %pair.125, %pair.114
  %same.127 = and <4 x i1> %same.123, %same.126
  %v.128 = bitcast <4 x i1> %same.127 to i4
  %lanes.129 = zext i4 %v.128 to i32
  %c.130 = icmp eq i32 %lanes.129, 15
  br i1 %c.130, label %ok.131, label %slow.18
ok.131:
  %data.132 = load i64, ptr %b.91
  %c.133 = icmp ne i64 %data.132, 0
  br i1 %c.133, label %ok.134, label %slow.18
ok.134:
  %at.135 = getelementptr inbounds i8, ptr %b.91, i64 40
  %byte_offset.136 = load i64, ptr %at.135
  %b.data.137 = add i64 %data.132, %byte_offset.136
  %bits.138 = or i64 %a.data.79, %b.data.137
  %at.139 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.137, ptr %at.139
  %v.140 = and i64 %bits.56, -2147483648
  %c.141 = icmp eq i64 %v.140, 0
  br i1 %c.141, label %ok.142, label %slow.18
ok.142:
  %v.143 = and i64 %bits.138, 3
  %c.144 = icmp eq i64 %v.143, 0
  br i1 %c.144, label %ok.145, label %slow.18
ok.145:
  %at.146 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 0, ptr %at.146
  %at.147 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 0, ptr %at.147
  %at.148 = getelementptr inbounds i8, ptr %args, i64 32
  %index.149 = load i32, ptr %at.148
  %c.150 = icmp eq i32 %index.149, 0
  br i1 %c.150, label %behind.152, label %present.151
present.151:
  %at.153 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 1, ptr %at.153
  %at.154 = getelementptr inbounds i8, ptr %args, i64 32
  %index.155 = load i32, ptr %at.154
  %at.156 = getelementptr inbounds i8, ptr %args, i64 40
  %payload.157 = load ptr, ptr %at.156
  %at.158 = getelementptr inbounds i8, ptr %payload.157, i64 24
  %c.159 = icmp eq i32 %index.155, 70
  br i1 %c.159, label %tensor.161, label %view.160
view.160:
  %c.162 = icmp eq i32 %index.155, 7
  br i1 %c.162, label %ok.163, label %slow.18
ok.163:
  %c.164 = icmp ne ptr %payload.157, null
  br i1 %c.164, label %tensor.161, label %slow.18
tensor.161:
  %c.165 = phi ptr [ %at.158, %present.151 ], [ %payload.157, %ok.163 ]
  %at.166 = getelementptr inbounds i8, ptr %c.165, i64 16
  %kind.167 = load i64, ptr %at.166
  %c.168 = icmp eq i64 %kind.167, %kind.36
  br i1 %c.168, label %ok.169, label %slow.18
ok.169:
  %at.170 = getelementptr inbounds i8, ptr %c.165, i64 8
  %device_type.171 = load i32, ptr %at.170
  %c.172 = icmp eq i32 %device_type.171, 1
  br i1 %c.172, label %ok.173, label %slow.18
ok.173:
  %at.174 = getelementptr inbounds i8, ptr %c.165, i64 24
  %shape.175 = load ptr, ptr %at.174
  %at.176 = getelementptr inbounds i8, ptr %c.165, i64 32
  %strides.177 = load ptr, ptr %at.176
  %v.178 = ptrtoint ptr %shape.175 to i64
  %v.179 = ptrtoint ptr %strides.177 to i64
  %v.180 = and i64 %v.178, %v.179
  %c.181 = icmp ne i64 %v.180, 0
  br i1 %c.181, label %ok.182, label %slow.18
ok.182:
  %pair.183 = load <4 x i32>, ptr %shape.175, align 8
  %same.184 = icmp eq <4 x i32> %pair.183, %pair.109
  %at.185 = getelementptr inbounds i8, ptr %shape.175, i64 8
  %pair.186 = load <4 x i32>, ptr %at.185, align 8
  %same.187 = icmp eq <4 x i32> %pair.186, %pair.111
  %same.188 = and <4 x i1> %same.184, %same.187
  %pair.189 = load <4 x i32>, ptr %strides.177, align 8
  %same.190 = icmp eq <4 x i32> %pair.189, %pair.112
  %same.191 = and <4 x i1> %same.188, %same.190
  %at.192 = getelementptr inbounds i8, ptr %strides.177, i64 8
  %pair.193 = load <4 x i32>, ptr %at.192, align 8
  %same.194 = icmp eq <4 x i32> %pair.193, %pair.114
  %same.195 = and <4 x i1> %same.191, %same.194
  %v.196 = bitcast <4 x i1> %same.195 to i4
  %lanes.197 = zext i4 %v.196 to i32
  %c.198 = icmp eq i32 %lanes.197, 15
  br i1 %c.198, label %ok.199, label %slow.18
ok.199:
  %data.200 = load i64, ptr %c.165
  %c.201 = icmp ne i64 %data.200, 0
  br i1 %c.201, label %ok.202, label %slow.18
ok.202:
  %at.203 = getelementptr inbounds i8, ptr %c.165, i64 40
  %byte_offset.204 = load i64, ptr %at.203
  %c.data.205 = add i64 %data.200, %byte_offset.204
  %at.206 = getelementptr inbounds i8, ptr %out.2, i64 24
  store i64 %c.data.205, ptr %at.206
  %v.207 = and i64 %c.data.205, 3
  %c.208 = icmp eq i64 %v.207, 0
  br i1 %c.208, label %ok.209, label %slow.18
ok.209:
  br label %behind.152
behind.152:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %b.6 = load ptr, ptr %at.5
  %at.7 = getelementptr inbounds i8, ptr %out.2, i64 16
  %c.8 = load i8, ptr %at.7
  %at.9 = getelementptr inbounds i8, ptr %out.2, i64 24
  %c.10 = load ptr, ptr %at.9
  %at.11 = getelementptr inbounds i8, ptr %out.2, i64 32
  %n.12 = load i64, ptr %at.11
  %v.13 = trunc i64 %n.12 to i32
  %at.14 = getelementptr inbounds i8, ptr %out.2, i64 40
  %m.15 = load i64, ptr %at.14
  %v.16 = trunc i64 %m.15 to i32
  %ferrule_body.17 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, ptr %b.6, i8 %c.8, ptr %c.10, i32 %v.13, i32 %v.16)
  ret i32 0
slow.18:
  %ferrule_check.19 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.21 = icmp eq i32 %ferrule_check.19, 0
  br i1 %c.21, label %accepted.3, label %refused.20
refused.20:
  ret i32 -1
}
