@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, ptr)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [2 x i64], align 8
  %c.12 = icmp eq i32 %num_args, 2
  br i1 %c.12, label %ok.13, label %slow.8
ok.13:
  %index.14 = load i32, ptr %args
  %at.15 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.16 = load i64, ptr %at.15
  %c.17 = icmp eq i32 %index.14, 0
  %c.18 = icmp eq i32 %index.14, 1
  %c.19 = icmp eq i32 %index.14, 4
  %v.20 = or i1 %c.18, %c.19
  %v.21 = or i1 %c.17, %v.20
  br i1 %v.21, label %ok.22, label %slow.8
ok.22:
  %c.23 = icmp sge i64 %payload.16, 0
  br i1 %c.23, label %ok.24, label %slow.8
ok.24:
  %v.25 = select i1 %c.17, i64 0, i64 %payload.16
  store i64 %v.25, ptr %out.2
  %at.26 = getelementptr inbounds i8, ptr %args, i64 16
  %index.27 = load i32, ptr %at.26
  %at.28 = getelementptr inbounds i8, ptr %args, i64 24
  %payload.29 = load i64, ptr %at.28
  %c.30 = icmp eq i32 %index.27, 0
  %c.31 = icmp eq i32 %index.27, 1
  %c.32 = icmp eq i32 %index.27, 4
  %v.33 = or i1 %c.31, %c.32
  %v.34 = or i1 %c.30, %v.33
  br i1 %v.34, label %ok.35, label %slow.8
ok.35:
  %c.36 = icmp sge i64 %payload.29, 0
  br i1 %c.36, label %ok.37, label %slow.8
ok.37:
  %v.38 = select i1 %c.30, i64 0, i64 %payload.29
  %c.39 = icmp ne i64 %v.38, 0
  br i1 %c.39, label %ok.40, label %slow.8
ok.40:
  %at.41 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %v.38, ptr %at.41
  %v.42 = and i64 %v.25, 15
  %c.43 = icmp eq i64 %v.42, 0
  br i1 %c.43, label %ok.44, label %slow.8
ok.44:
  br label %accepted.3
accepted.3:
  %p.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %q.6 = load ptr, ptr %at.5
  %ferrule_body.7 = call i32 @ferrule_body(ptr %values.1, ptr %p.4, ptr %q.6)
  ret i32 0
slow.8:
  %ferrule_check.9 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.11 = icmp eq i32 %ferrule_check.9, 0
  br i1 %c.11, label %accepted.3, label %refused.10
refused.10:
  ret i32 -1
}
