@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [2 x i64], align 8
  %c.14 = icmp eq i32 %num_args, 2
  br i1 %c.14, label %ok.15, label %slow.10
ok.15:
  %index.16 = load i32, ptr %args
  %c.17 = icmp eq i32 %index.16, 69
  br i1 %c.17, label %ok.18, label %slow.10
ok.18:
  %at.19 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.20 = load ptr, ptr %at.19
  %at.21 = getelementptr inbounds i8, ptr %payload.20, i64 24
  %at.22 = getelementptr inbounds i8, ptr %at.21, i64 8
  %size.23 = load i64, ptr %at.22
  %c.24 = icmp eq i64 %size.23, 3
  br i1 %c.24, label %ok.25, label %slow.10
ok.25:
  %data.26 = load ptr, ptr %at.21
  %s.d0.27 = load i64, ptr %data.26
  store i64 %s.d0.27, ptr %out.2
  %at.28 = getelementptr inbounds i8, ptr %data.26, i64 8
  %s.d1.29 = load i64, ptr %at.28
  %c.30 = icmp eq i64 %s.d1.29, 4
  br i1 %c.30, label %ok.31, label %slow.10
ok.31:
  %v.32 = mul i64 %s.d0.27, 2
  %at.33 = getelementptr inbounds i8, ptr %data.26, i64 16
  %s.d2.34 = load i64, ptr %at.33
  %c.35 = icmp eq i64 %s.d2.34, %v.32
  br i1 %c.35, label %ok.36, label %slow.10
ok.36:
  %at.37 = getelementptr inbounds i8, ptr %args, i64 16
  %index.38 = load i32, ptr %at.37
  %c.39 = icmp eq i32 %index.38, 69
  br i1 %c.39, label %ok.40, label %slow.10
ok.40:
  %at.41 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.42 = load ptr, ptr %at.41
  %at.43 = getelementptr inbounds i8, ptr %payload.42, i64 24
  %at.44 = getelementptr inbounds i8, ptr %at.43, i64 8
  %size.45 = load i64, ptr %at.44
  %c.46 = icmp eq i64 %size.45, 1
  br i1 %c.46, label %ok.47, label %slow.10
ok.47:
  %data.48 = load ptr, ptr %at.43
  %t.d0.49 = load i64, ptr %data.48
  %v.50 = trunc i64 %t.d0.49 to i32
  %v.51 = sext i32 %v.50 to i64
  %c.52 = icmp eq i64 %v.51, %t.d0.49
  br i1 %c.52, label %ok.53, label %slow.10
ok.53:
  %at.54 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %t.d0.49, ptr %at.54
  %v.55 = and i64 %s.d0.27, -2147483648
  %c.56 = icmp eq i64 %v.55, 0
  br i1 %c.56, label %ok.57, label %slow.10
ok.57:
  br label %accepted.3
accepted.3:
  %n.4 = load i64, ptr %out.2
  %v.5 = trunc i64 %n.4 to i32
  %at.6 = getelementptr inbounds i8, ptr %out.2, i64 8
  %m.7 = load i64, ptr %at.6
  %v.8 = trunc i64 %m.7 to i32
  %ferrule_body.9 = call i32 @ferrule_body(ptr %values.1, i32 %v.5, i32 %v.8)
  ret i32 0
slow.10:
  %ferrule_check.11 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.13 = icmp eq i32 %ferrule_check.11, 0
  br i1 %c.13, label %accepted.3, label %refused.12
refused.12:
  ret i32 -1
}
