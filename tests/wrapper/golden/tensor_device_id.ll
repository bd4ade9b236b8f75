@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [2 x i64], align 8
  %c.13 = icmp eq i32 %num_args, 1
  br i1 %c.13, label %ok.14, label %slow.9
ok.14:
  %index.15 = load i32, ptr %args
  %at.16 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.17 = load ptr, ptr %at.16
  %at.18 = getelementptr inbounds i8, ptr %payload.17, i64 24
  %c.19 = icmp eq i32 %index.15, 70
  br i1 %c.19, label %tensor.21, label %view.20
view.20:
  %c.22 = icmp eq i32 %index.15, 7
  br i1 %c.22, label %ok.23, label %slow.9
ok.23:
  %c.24 = icmp ne ptr %payload.17, null
  br i1 %c.24, label %tensor.21, label %slow.9
tensor.21:
  %a.25 = phi ptr [ %at.18, %ok.14 ], [ %payload.17, %ok.23 ]
  %at.26 = getelementptr inbounds i8, ptr %a.25, i64 16
  %kind.27 = load i64, ptr %at.26
  %c.28 = icmp eq i64 %kind.27, 316667938734081
  br i1 %c.28, label %ok.29, label %slow.9
ok.29:
  %at.30 = getelementptr inbounds i8, ptr %a.25, i64 8
  %device.31 = load i64, ptr %at.30
  %c.32 = icmp eq i64 %device.31, 4294967298
  br i1 %c.32, label %ok.33, label %slow.9
ok.33:
  %at.34 = getelementptr inbounds i8, ptr %a.25, i64 12
  %device_id.35 = load i32, ptr %at.34
  %at.36 = getelementptr inbounds i8, ptr %a.25, i64 24
  %shape.37 = load ptr, ptr %at.36
  %at.38 = getelementptr inbounds i8, ptr %a.25, i64 32
  %strides.39 = load ptr, ptr %at.38
  %v.40 = ptrtoint ptr %shape.37 to i64
  %v.41 = ptrtoint ptr %strides.39 to i64
  %v.42 = and i64 %v.40, %v.41
  %c.43 = icmp ne i64 %v.42, 0
  br i1 %c.43, label %ok.44, label %slow.9
ok.44:
  %a.n0.45 = load i64, ptr %shape.37
  %at.46 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %a.n0.45, ptr %at.46
  %a.s0.47 = load i64, ptr %strides.39
  %c.48 = icmp eq i64 %a.s0.47, 1
  br i1 %c.48, label %ok.49, label %slow.9
ok.49:
  %data.50 = load i64, ptr %a.25
  %c.51 = icmp ne i64 %data.50, 0
  br i1 %c.51, label %ok.52, label %slow.9
ok.52:
  %at.53 = getelementptr inbounds i8, ptr %a.25, i64 40
  %byte_offset.54 = load i64, ptr %at.53
  %a.data.55 = add i64 %data.50, %byte_offset.54
  store i64 %a.data.55, ptr %out.2
  %v.56 = and i64 %a.n0.45, -2147483648
  %c.57 = icmp eq i64 %v.56, 0
  br i1 %c.57, label %ok.58, label %slow.9
ok.58:
  %v.59 = and i64 %a.data.55, 3
  %c.60 = icmp eq i64 %v.59, 0
  br i1 %c.60, label %ok.61, label %slow.9
ok.61:
  br label %accepted.3
accepted.3:
  %a.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %n.6 = load i64, ptr %at.5
  %v.7 = trunc i64 %n.6 to i32
  %ferrule_body.8 = call i32 @ferrule_body(ptr %values.1, ptr %a.4, i32 %v.7)
  ret i32 0
slow.9:
  %ferrule_check.10 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.12 = icmp eq i32 %ferrule_check.10, 0
  br i1 %c.12, label %accepted.3, label %refused.11
refused.11:
  ret i32 -1
}
