@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [1 x i64], align 8
  %c.9 = icmp eq i32 %num_args, 1
  br i1 %c.9, label %ok.10, label %slow.5
ok.10:
  %index.11 = load i32, ptr %args
  %c.12 = icmp eq i32 %index.11, 0
  br i1 %c.12, label %ok.13, label %slow.5
ok.13:
  br label %accepted.3
accepted.3:
  %ferrule_body.4 = call i32 @ferrule_body(ptr %values.1)
  ret i32 0
slow.5:
  %ferrule_check.6 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.8 = icmp eq i32 %ferrule_check.6, 0
  br i1 %c.8, label %accepted.3, label %refused.7
refused.7:
  ret i32 -1
}
