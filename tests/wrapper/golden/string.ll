@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr, i64)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [2 x i64], align 8
  %c.12 = icmp eq i32 %num_args, 1
  br i1 %c.12, label %ok.13, label %slow.8
ok.13:
  %index.14 = load i32, ptr %args
  %c.18 = icmp eq i32 %index.14, 11
  br i1 %c.18, label %small.15, label %large.16
small.15:
  %at.19 = getelementptr inbounds i8, ptr %args, i64 4
  %length.20 = load i32, ptr %at.19
  %c.21 = icmp ule i32 %length.20, 7
  br i1 %c.21, label %ok.22, label %slow.8
large.16:
  %c.26 = icmp eq i32 %index.14, 65
  br i1 %c.26, label %ok.27, label %slow.8
ok.22:
  %at.23 = getelementptr inbounds i8, ptr %args, i64 8
  %v.24 = zext i32 %length.20 to i64
  store ptr %at.23, ptr %out.2
  %at.25 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %v.24, ptr %at.25
  br label %text.17
ok.27:
  %at.28 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.29 = load ptr, ptr %at.28
  %at.30 = getelementptr inbounds i8, ptr %payload.29, i64 24
  %data.31 = load ptr, ptr %at.30
  %at.32 = getelementptr inbounds i8, ptr %at.30, i64 8
  %size.33 = load i64, ptr %at.32
  store ptr %data.31, ptr %out.2
  %at.34 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %size.33, ptr %at.34
  br label %text.17
text.17:
  br label %accepted.3
accepted.3:
  %s.4 = load ptr, ptr %out.2
  %at.5 = getelementptr inbounds i8, ptr %out.2, i64 8
  %s.6 = load i64, ptr %at.5
  %ferrule_body.7 = call i32 @ferrule_body(ptr %values.1, ptr %s.4, i64 %s.6)
  ret i32 0
slow.8:
  %ferrule_check.9 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.11 = icmp eq i32 %ferrule_check.9, 0
  br i1 %c.11, label %accepted.3, label %refused.10
refused.10:
  ret i32 -1
}
