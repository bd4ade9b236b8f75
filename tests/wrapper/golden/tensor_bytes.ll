@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
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
  %at.47 = getelementptr inbounds i8, ptr %out.2, i64 16
  store i64 %a.n0.46, ptr %at.47
  %a.s0.48 = load i64, ptr %strides.40
  %c.49 = icmp eq i64 %a.s0.48, 1
  br i1 %c.49, label %ok.50, label %slow.11
ok.50:
  %data.51 = load i64, ptr %a.27
  %c.52 = icmp ne i64 %data.51, 0
  br i1 %c.52, label %ok.53, label %slow.11
ok.53:
  %at.54 = getelementptr inbounds i8, ptr %a.27, i64 40
  %byte_offset.55 = load i64, ptr %at.54
  %a.data.56 = add i64 %data.51, %byte_offset.55
  store i64 %a.data.56, ptr %out.2
  %at.57 = getelementptr inbounds i8, ptr %args, i64 16
  %index.58 = load i32, ptr %at.57
  %at.59 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.60 = load ptr, ptr %at.59
  %at.61 = getelementptr inbounds i8, ptr %payload.60, i64 24
  %c.62 = icmp eq i32 %index.58, 70
  br i1 %c.62, label %tensor.64, label %view.63
view.63:
  %c.65 = icmp eq i32 %index.58, 7
  br i1 %c.65, label %ok.66, label %slow.11
ok.66:
  %c.67 = icmp ne ptr %payload.60, null
  br i1 %c.67, label %tensor.64, label %slow.11
tensor.64:
  %b.68 = phi ptr [ %at.61, %ok.53 ], [ %payload.60, %ok.66 ]
  %at.69 = getelementptr inbounds i8, ptr %b.68, i64 16
  %kind.70 = load i64, ptr %at.69
  %v.71 = or i64 %kind.70, 4294967296
  %c.72 = icmp eq i64 %v.71, %v.30
  br i1 %c.72, label %ok.73, label %slow.11
ok.73:
  %at.74 = getelementptr inbounds i8, ptr %b.68, i64 8
  %device_type.75 = load i32, ptr %at.74
  %c.76 = icmp eq i32 %device_type.75, 1
  br i1 %c.76, label %ok.77, label %slow.11
ok.77:
  %at.78 = getelementptr inbounds i8, ptr %b.68, i64 24
  %shape.79 = load ptr, ptr %at.78
  %at.80 = getelementptr inbounds i8, ptr %b.68, i64 32
  %strides.81 = load ptr, ptr %at.80
  %v.82 = ptrtoint ptr %shape.79 to i64
  %v.83 = ptrtoint ptr %strides.81 to i64
  %v.84 = and i64 %v.82, %v.83
  %c.85 = icmp ne i64 %v.84, 0
  br i1 %c.85, label %ok.86, label %slow.11
ok.86:
  %b.n0.87 = load i64, ptr %shape.79
  %c.88 = icmp eq i64 %b.n0.87, %a.n0.46
  br i1 %c.88, label %ok.89, label %slow.11
ok.89:
  %b.s0.90 = load i64, ptr %strides.81
  %c.91 = icmp eq i64 %b.s0.90, 1
  br i1 %c.91, label %ok.92, label %slow.11
ok.92:
  %data.93 = load i64, ptr %b.68
  %c.94 = icmp ne i64 %data.93, 0
  br i1 %c.94, label %ok.95, label %slow.11
ok.95:
  %at.96 = getelementptr inbounds i8, ptr %b.68, i64 40
  %byte_offset.97 = load i64, ptr %at.96
  %b.data.98 = add i64 %data.93, %byte_offset.97
  %at.99 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %b.data.98, ptr %at.99
  %v.100 = and i64 %a.n0.46, -2147483648
  %c.101 = icmp eq i64 %v.100, 0
  br i1 %c.101, label %ok.102, label %slow.11
ok.102:
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
