@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, i32, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [8 x i64], align 8
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
  %c.28 = icmp ule i64 %s.d0.27, 2147483647
  br i1 %c.28, label %ok.29, label %slow.10
ok.29:
  store i64 %s.d0.27, ptr %out.2
  %at.30 = getelementptr inbounds i8, ptr %data.26, i64 8
  %s.d1.31 = load i64, ptr %at.30
  %c.32 = icmp eq i64 %s.d1.31, 4
  br i1 %c.32, label %ok.33, label %slow.10
ok.33:
  %v.34 = mul i64 %s.d0.27, 2
  %at.35 = getelementptr inbounds i8, ptr %data.26, i64 16
  %s.d2.36 = load i64, ptr %at.35
  %c.37 = icmp eq i64 %s.d2.36, %v.34
  br i1 %c.37, label %ok.38, label %slow.10
ok.38:
  %at.39 = getelementptr inbounds i8, ptr %args, i64 16
  %index.40 = load i32, ptr %at.39
  %c.41 = icmp eq i32 %index.40, 69
  br i1 %c.41, label %ok.42, label %slow.10
ok.42:
  %at.43 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.44 = load ptr, ptr %at.43
  %at.45 = getelementptr inbounds i8, ptr %payload.44, i64 24
  %at.46 = getelementptr inbounds i8, ptr %at.45, i64 8
  %size.47 = load i64, ptr %at.46
  %c.48 = icmp eq i64 %size.47, 1
  br i1 %c.48, label %ok.49, label %slow.10
ok.49:
  %data.50 = load ptr, ptr %at.45
  %t.d0.51 = load i64, ptr %data.50
  %v.52 = trunc i64 %t.d0.51 to i32
  %v.53 = sext i32 %v.52 to i64
  %c.54 = icmp eq i64 %v.53, %t.d0.51
  br i1 %c.54, label %ok.55, label %slow.10
ok.55:
  %at.56 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %t.d0.51, ptr %at.56
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
