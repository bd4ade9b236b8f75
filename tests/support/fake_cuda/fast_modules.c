/* The older functions of a driver whose calls do nothing, which other launchers call. */
#include <stdint.h>

static int handle;

#pragma GCC visibility push(default)

int cuCtxGetCurrent(void **context) { return *context = &handle, 0; }
int cuCtxSetCurrent(void *context) { return context == 0; }
int cuCtxGetLimit(unsigned long *value, int limit) { return *value = 0, limit < 0; }
int cuCtxSetLimit(int limit, unsigned long value) { return limit < 0 && value; }
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    return *value = attribute ? 0 : 1024, !function;
}
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    return !function || attribute < 0 || value < 0;
}
int cuFuncSetCacheConfig(void *function, int config) { return !function || config < 0; }
int cuModuleLoadData(void **module, const void *code) { return *module = &handle, !code; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return *function = module, !name;
}
int cuModuleUnload(void *module) { return !module; }
int cuPointerGetAttribute(uint64_t *value, int attribute, uint64_t address)
{
    return *value = address, attribute < 0;
}
