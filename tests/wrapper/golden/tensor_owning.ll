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
  %c.16 = icmp eq i32 %index.15, 70
  br i1 %c.16, label %ok.17, label %slow.9
ok.17:
  %at.18 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.19 = load ptr, ptr %at.18
  %a.20 = getelementptr inbounds i8, ptr %payload.19, i64 24
  %at.21 = getelementptr inbounds i8, ptr %a.20, i64 16
  %kind.22 = load i64, ptr %at.21
  %c.23 = icmp eq i64 %kind.22, 316667938734081
  br i1 %c.23, label %ok.24, label %slow.9
ok.24:
  %at.25 = getelementptr inbounds i8, ptr %a.20, i64 8
  %device_type.26 = load i32, ptr %at.25
  %c.27 = icmp eq i32 %device_type.26, 1
  br i1 %c.27, label %ok.28, label %slow.9
ok.28:
  %at.29 = getelementptr inbounds i8, ptr %a.20, i64 24
  %shape.30 = load ptr, ptr %at.29
  %at.31 = getelementptr inbounds i8, ptr %a.20, i64 32
  %strides.32 = load ptr, ptr %at.31
  %v.33 = ptrtoint ptr %shape.30 to i64
  %v.34 = ptrtoint ptr %strides.32 to i64
  %v.35 = and i64 %v.33, %v.34
  %c.36 = icmp ne i64 %v.35, 0
  br i1 %c.36, label %ok.37, label %slow.9
ok.37:
  %a.n0.38 = load i64, ptr %shape.30
  %at.39 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %a.n0.38, ptr %at.39
  %a.s0.40 = load i64, ptr %strides.32
  %c.41 = icmp eq i64 %a.s0.40, 1
  br i1 %c.41, label %ok.42, label %slow.9
ok.42:
  %data.43 = load i64, ptr %a.20
  %c.44 = icmp ne i64 %data.43, 0
  br i1 %c.44, label %ok.45, label %slow.9
ok.45:
  %at.46 = getelementptr inbounds i8, ptr %a.20, i64 40
  %byte_offset.47 = load i64, ptr %at.46
  %a.data.48 = add i64 %data.43, %byte_offset.47
  store i64 %a.data.48, ptr %out.2
  %v.49 = and i64 %a.n0.38, -2147483648
  %c.50 = icmp eq i64 %v.49, 0
  br i1 %c.50, label %ok.51, label %slow.9
ok.51:
  %v.52 = and i64 %a.data.48, 3
  %c.53 = icmp eq i64 %v.52, 0
  br i1 %c.53, label %ok.54, label %slow.9
ok.54:
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
