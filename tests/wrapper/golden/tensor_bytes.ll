@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [8 x i64], align 8
  %out.2 = alloca [3 x i64], align 8
  %c.15 = icmp eq i32 %num_args, 2
  br i1 %c.15, label %ok.16, label %slow.11
ok.16:
  %index.17 = load i32, ptr %args
  %at.18 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.19 = load ptr, ptr %at.18
  %at.20 = getelementptr inbounds i8, ptr %payload.19, i64 24
  %c.21 = icmp eq i32 %index.17, 70
  br i1 %c.21, label %tensor.23, label %view.22
view.22:
  %c.24 = icmp eq i32 %index.17, 7
  br i1 %c.24, label %ok.25, label %slow.11
ok.25:
  %c.26 = icmp ne ptr %payload.19, null
  br i1 %c.26, label %tensor.23, label %slow.11
tensor.23:
  %a.27 = phi ptr [ %at.20, %ok.16 ], [ %payload.19, %ok.25 ]
  %at.28 = getelementptr inbounds i8, ptr %a.27, i64 16
  %kind.29 = load i64, ptr %at.28
  %v.30 = or i64 %kind.29, 4294967296
  %c.31 = icmp eq i64 %v.30, 290275364700161
  br i1 %c.31, label %ok.32, label %slow.11
ok.32:
  %at.33 = getelementptr inbounds i8, ptr %a.27, i64 8
  %device_type.34 = load i32, ptr %at.33
  %c.35 = icmp eq i32 %device_type.34, 1
  br i1 %c.35, label %ok.36, label %slow.11
ok.36:
  %at.37 = getelementptr inbounds i8, ptr %a.27, i64 24
  %shape.38 = load ptr, ptr %at.37
  %at.39 = getelementptr inbounds i8, ptr %a.27, i64 32
  %strides.40 = load ptr, ptr %at.39
  %v.41 = ptrtoint ptr %shape.38 to i64
  %v.42 = ptrtoint ptr %strides.40 to i64
  %v.43 = and i64 %v.41, %v.42
  %c.44 = icmp ne i64 %v.43, 0
  br i1 %c.44, label %ok.45, label %slow.11
ok.45:
  %a.n0.46 = load i64, ptr %shape.38
  %c.47 = icmp ule i64 %a.n0.46, 2147483647
  br i1 %c.47, label %ok.48, label %slow.11
ok.48:
  %at.49 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %a.n0.46, ptr %at.49
  %a.s0.50 = load i64, ptr %strides.40
  %c.51 = icmp eq i64 %a.s0.50, 1
  br i1 %c.51, label %ok.52, label %slow.11
ok.52:
  %data.53 = load i64, ptr %a.27
  %c.54 = icmp ne i64 %data.53, 0
  br i1 %c.54, label %ok.55, label %slow.11
ok.55:
  %at.56 = getelementptr inbounds i8, ptr %a.27, i64 40
  %byte_offset.57 = load i64, ptr %at.56
  %a.data.58 = add i64 %data.53, %byte_offset.57
  store i64 %a.data.58, ptr %out.2
  %at.59 = getelementptr inbounds i8, ptr %args, i64 16
  %index.60 = load i32, ptr %at.59
  %at.61 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.62 = load ptr, ptr %at.61
  %at.63 = getelementptr inbounds i8, ptr %payload.62, i64 24
  %c.64 = icmp eq i32 %index.60, 70
  br i1 %c.64, label %tensor.66, label %view.65
view.65:
  %c.67 = icmp eq i32 %index.60, 7
  br i1 %c.67, label %ok.68, label %slow.11
ok.68:
  %c.69 = icmp ne ptr %payload.62, null
  br i1 %c.69, label %tensor.66, label %slow.11
tensor.66:
  %b.70 = phi ptr [ %at.63, %ok.55 ], [ %payload.62, %ok.68 ]
  %at.71 = getelementptr inbounds i8, ptr %b.70, i64 16
  %kind.72 = load i64, ptr %at.71
  %v.73 = or i64 %kind.72, 4294967296
  %c.74 = icmp eq i64 %v.73, 290275364700161
  br i1 %c.74, label %ok.75, label %slow.11
ok.75:
  %at.76 = getelementptr inbounds i8, ptr %b.70, i64 8
  %device_type.77 = load i32, ptr %at.76
  %c.78 = icmp eq i32 %device_type.77, 1
  br i1 %c.78, label %ok.79, label %slow.11
ok.79:
  %at.80 = getelementptr inbounds i8, ptr %b.70, i64 24
  %shape.81 = load ptr, ptr %at.80
  %at.82 = getelementptr inbounds i8, ptr %b.70, i64 32
  %strides.83 = load ptr, ptr %at.82
  %v.84 = ptrtoint ptr %shape.81 to i64
  %v.85 = ptrtoint ptr %strides.83 to i64
  %v.86 = and i64 %v.84, %v.85
  %c.87 = icmp ne i64 %v.86, 0
  br i1 %c.87, label %ok.88, label %slow.11
ok.88:
  %b.n0.89 = load i64, ptr %shape.81
  %c.90 = icmp eq i64 %b.n0.89, %a.n0.46
  br i1 %c.90, label %ok.91, label %slow.11
ok.91:
  %b.s0.92 = load i64, ptr %strides.83
  %c.93 = icmp eq i64 %b.s0.92, 1
  br i1 %c.93, label %ok.94, label %slow.11
ok.94:
  %data.95 = load i64, ptr %b.70
  %c.96 = icmp ne i64 %data.95, 0
  br i1 %c.96, label %ok.97, label %slow.11
ok.97:
  %at.98 = getelementptr inbounds i8, ptr %b.70, i64 40
  %byte_offset.99 = load i64, ptr %at.98
  %b.data.100 = add i64 %data.95, %byte_offset.99
  %at.101 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.100, ptr %at.101
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %b.6 = load ptr, ptr %at.5
  %at.7 = getelementptr inbounds i8, ptr %out.2, i64 16
  %n.8 = load i64, ptr %at.7
  %v.9 = trunc i64 %n.8 to i32
  %ferrule_body.10 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, ptr %b.6, i32 %v.9)
  ret i32 0
slow.11:
  %ferrule_check.12 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.14 = icmp eq i32 %ferrule_check.12, 0
  br i1 %c.14, label %accepted.3, label %refused.13
refused.13:
  ret i32 -1
}
