/* A program that an exported object is linked into: it launches, and prints what the stand-in of
 * the driver has seen. */
#include <dlfcn.h>
#include <stdio.h>
#include <tvm/ffi/c_api.h>

#include "fake.h"

int __tvm_ffi_scale(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);

static void print_error(void)
{
    TVMFFIObjectHandle error = NULL;
    TVMFFIErrorMoveFromRaised(&error);
    const TVMFFIErrorCell *cell = (void *)((char *)error + sizeof(TVMFFIObject));
    printf("%.*s: %.*s\n", (int)cell->kind.size, cell->kind.data, (int)cell->message.size,
           cell->message.data);
    TVMFFIObjectDecRef(error);
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return puts(dlerror()), 1;
    void (*reset)(int) = (void (*)(int))dlsym(driver, "fake_reset");
    int (*count)(void) = (int (*)(void))dlsym(driver, "fake_num_calls");
    const struct call *(*seen)(int) = (const struct call *(*)(int))dlsym(driver, "fake_call");
    reset(2);

    int64_t sizes[1] = {1000}, strides[1] = {1};
    DLTensor x = {sizes, {kDLCUDA, 1}, 1, {kDLFloat, 32, 1}, sizes, strides, 0};
    TVMFFIAny args[2] = {{.type_index = kTVMFFIDLTensorPtr, .v_ptr = &x},
                         {.type_index = kTVMFFIFloat, .v_float64 = 2.5}};
    TVMFFIAny result = {.type_index = kTVMFFINone};
    if (__tvm_ffi_scale(NULL, args, 2, &result))
        return print_error(), 1;
    for (int i = 0; i < count(); i++)
        if (seen(i)->num_parameters) {
            const struct call *launch = seen(i);
            float factor;
            __builtin_memcpy(&factor, launch->bytes + 12, sizeof factor);
            printf("%s: grid %lld, device %d, sizes %d %d %d, factor %g\n", launch->kernel,
                   launch->numbers[0], launch->device, launch->sizes[0], launch->sizes[1],
                   launch->sizes[2], factor);
        }
    x.device.device_type = kDLCPU;
    if (!__tvm_ffi_scale(NULL, args, 2, &result))
        return 1;
    print_error();
    return 0;
}
