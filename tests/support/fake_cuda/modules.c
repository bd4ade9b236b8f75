/* The driver's older functions, of modules, which other launchers call. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, void *options, void *values,
                           unsigned num_options, void *library_options, void *library_values,
                           unsigned num_library_options);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);

CUresult cuModuleLoadData(CUlibrary *module, const void *code)
{
    return cuLibraryLoadData(module, code, NULL, NULL, 0, NULL, NULL, 0);
}

CUresult cuModuleUnload(CUlibrary module) { return cuLibraryUnload(module); }

CUresult cuModuleGetFunction(CUkernel *function, CUlibrary module, const char *name)
{
    return cuLibraryGetKernel(function, module, name);
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUkernel function)
{
    CUresult result = begin(__func__, 1, NUMBER(attribute));
    if (!result)
        result = is_kernel(function) ? SUCCESS : INVALID_HANDLE;
    if (!result)
        *value = attribute == 0 ? most_registered : attribute == 1 ? function->fixed : 0;
    return end(result);
}

CUresult cuFuncSetAttribute(CUkernel function, int attribute, int value)
{
    CUresult result = begin(__func__, 2, NUMBER(attribute), NUMBER(value));
    if (!result)
        result = !is_kernel(function) ? INVALID_HANDLE : !current() ? INVALID_CONTEXT : SUCCESS;
    if (!result && attribute == 8)
        function->smem[current()->device] = value;
    return end(attribute == 8 || attribute == 14 || result ? result : INVALID_VALUE);
}

CUresult cuFuncSetCacheConfig(CUkernel function, int config)
{
    CUresult result = begin(__func__, 1, NUMBER(config));
    if (!result)
        result = is_kernel(function) ? SUCCESS : INVALID_HANDLE;
    return end(result);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = begin(__func__, 1, NUMBER(context ? context->device : -1));
    if (!result)
        result = is_context(context) ? SUCCESS : INVALID_CONTEXT;
    if (!result) {
        current();
        stack.depth = stack.depth ? stack.depth : 1;
        stack.contexts[stack.depth - 1] = context;
    }
    return end(result);
}

/* Every address is one of a device. */
CUresult cuPointerGetAttribute(uint64_t *value, int attribute, uint64_t address)
{
    CUresult result = begin(__func__, 1, NUMBER(attribute));
    if (!result)
        *value = address;
    return end(result);
}

CUresult cuCtxGetLimit(unsigned long *value, int limit)
{
    CUresult result = begin(__func__, 1, NUMBER(limit));
    if (!result)
        *value = 0;
    return end(result);
}

CUresult cuCtxSetLimit(int limit, unsigned long value)
{
    return end(begin(__func__, 2, NUMBER(limit), NUMBER(value)));
}
