@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare i32 @ferrule_body(ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [1 x i64], align 8
  %c.10 = icmp eq i32 %num_args, 1
  br i1 %c.10, label %ok.11, label %slow.6
ok.11:
  %index.12 = load i32, ptr %args
  %v.13 = sub i32 %index.12, 1
  %c.14 = icmp ule i32 %v.13, 1
  br i1 %c.14, label %ok.15, label %slow.6
ok.15:
  %at.16 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.17 = load i64, ptr %at.16
  %v.18 = trunc i64 %payload.17 to i32
  %v.19 = sext i32 %v.18 to i64
  %c.20 = icmp eq i64 %v.19, %payload.17
  br i1 %c.20, label %ok.21, label %slow.6
ok.21:
  store i64 %payload.17, ptr %out.2
  br label %accepted.3
accepted.3:
  %k.4 = load i32, ptr %out.2
  %ferrule_body.5 = call i32 @ferrule_body(ptr %values.1, i32 %k.4)
  ret i32 0
slow.6:
  %ferrule_check.7 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.9 = icmp eq i32 %ferrule_check.7, 0
  br i1 %c.9, label %accepted.3, label %refused.8
refused.8:
  ret i32 -1
}
