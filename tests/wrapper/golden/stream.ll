@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, ptr)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [1 x i64], align 8
  %c.10 = icmp eq i32 %num_args, 1
  br i1 %c.10, label %ok.11, label %slow.6
ok.11:
  %index.12 = load i32, ptr %args
  %at.13 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.14 = load i64, ptr %at.13
  %c.15 = icmp eq i32 %index.12, 0
  %c.16 = icmp eq i32 %index.12, 1
  %c.17 = icmp eq i32 %index.12, 4
  %v.18 = or i1 %c.16, %c.17
  %v.19 = or i1 %c.15, %v.18
  br i1 %v.19, label %ok.20, label %slow.6
ok.20:
  %c.21 = icmp sge i64 %payload.14, 0
  br i1 %c.21, label %ok.22, label %slow.6
ok.22:
  %v.23 = select i1 %c.15, i64 0, i64 %payload.14
  store i64 %v.23, ptr %out.2
  br label %accepted.3
accepted.3:
  %s.4 = load ptr, ptr %out.2
  %ferrule_body.5 = call i32 @ferrule_body(ptr %values.1, ptr %s.4)
  ret i32 0
slow.6:
  %ferrule_check.7 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.9 = icmp eq i32 %ferrule_check.7, 0
  br i1 %c.9, label %accepted.3, label %refused.8
refused.8:
  ret i32 -1
}
