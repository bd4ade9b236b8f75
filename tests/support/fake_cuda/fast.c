/* A driver whose calls do nothing, to measure what surrounds them.  Device 0 is current. */
static int handle;

#pragma GCC visibility push(default)

int cuInit(unsigned flags) { return flags != 0; }
int cuGetErrorName(int code, const char **out) { return *out = 0, code; }
int cuGetErrorString(int code, const char **out) { return *out = 0, code; }
int cuLibraryUnload(void *library) { return library == 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &handle, device; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxGetDevice(int *device) { return *device = 0; }
int cuCtxPushCurrent_v2(void *context) { return context == 0; }
int cuCtxPopCurrent_v2(void **context) { return *context = &handle, 0; }

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    return *value = 232448, attribute != 97 || device;
}

int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuStreamIsCapturing(void *stream, int *status) { return *status = 0, stream == 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { return *mode = 0; }

int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
    return *value = attribute ? 0 : 1024, !kernel || device;
}

int cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
    return attribute != 8 || value < 0 || !kernel || device;
}

int cuLibraryLoadData(void **library, const void *code, void *options, void *values, unsigned count,
                      void *library_options, void *library_values, unsigned library_count)
{
    *library = &handle;
    return !code || options || values || count || library_options || library_values
           || library_count;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    *kernel = library;
    return name == 0;
}

int cuLaunchKernelEx(const void *config, void *kernel, void **parameters, void **extra)
{
    return !config || !kernel || !parameters || extra;
}
