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
  %c.13 = icmp eq i32 %index.12, 68
  br i1 %c.13, label %ok.14, label %slow.6
ok.14:
  %at.15 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.16 = load ptr, ptr %at.15
  store ptr %payload.16, ptr %out.2
  br label %accepted.3
accepted.3:
  %f.4 = load ptr, ptr %out.2
  %ferrule_body.5 = call i32 @ferrule_body(ptr %values.1, ptr %f.4)
  ret i32 0
slow.6:
  %ferrule_check.7 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.9 = icmp eq i32 %ferrule_check.7, 0
  br i1 %c.9, label %accepted.3, label %refused.8
refused.8:
  ret i32 -1
}
