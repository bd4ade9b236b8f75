@.bytes.0 = private unnamed_addr constant [… x i8] c"…", align 8
@.bytes.1 = private unnamed_addr constant [… x i8] c"…", align 8
declare ptr @TVMFFIEnvGetStream(i32, i32)
declare i32 @ferrule_body(ptr, ptr, i32)
declare i32 @ferrule_check(ptr, ptr, ptr, i32, ptr, ptr) cold
define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %num_args, ptr %result) noinline optnone {
entry:
  %values.1 = alloca [16 x i64], align 8
  %out.2 = alloca [2 x i64], align 8
  %device.4 = alloca [1 x i32], align 8
  %device.index.5 = alloca [1 x i32], align 8
  store i32 2, ptr %device.4
  store i32 2, ptr %device.index.5
  %c.17 = icmp eq i32 %num_args, 1
  br i1 %c.17, label %ok.18, label %slow.13
ok.18:
  %index.19 = load i32, ptr %args
  %v.20 = sub i32 %index.19, 1
  %c.21 = icmp ule i32 %v.20, 1
  br i1 %c.21, label %ok.22, label %slow.13
ok.22:
  %at.23 = getelementptr inbounds i8, ptr %args, i64 8
  %payload.24 = load i64, ptr %at.23
  %v.25 = trunc i64 %payload.24 to i32
  %v.26 = sext i32 %v.25 to i64
  %c.27 = icmp eq i64 %v.26, %payload.24
  br i1 %c.27, label %ok.28, label %slow.13
ok.28:
  %at.29 = getelementptr inbounds i8, ptr %out.2, i64 8
  store i64 %payload.24, ptr %at.29
  br label %accepted.3
accepted.3:
  br label %stream.6
stream.6:
  %v.7 = load i32, ptr %device.4
  %v.8 = load i32, ptr %device.index.5
  %TVMFFIEnvGetStream.9 = call ptr @TVMFFIEnvGetStream(i32 %v.7, i32 %v.8)
  %at.10 = getelementptr inbounds i8, ptr %out.2, i64 8
  %k.11 = load i32, ptr %at.10
  %ferrule_body.12 = call i32 @ferrule_body(ptr %values.1, ptr %TVMFFIEnvGetStream.9, i32 %k.11)
  ret i32 0
slow.13:
  %ferrule_check.14 = call i32 @ferrule_check(ptr @.bytes.0, ptr @.bytes.1, ptr %args, i32 %num_args, ptr %values.1, ptr %out.2)
  %c.16 = icmp eq i32 %ferrule_check.14, 0
  br i1 %c.16, label %accepted.3, label %refused.15
refused.15:
  ret i32 -1
}
