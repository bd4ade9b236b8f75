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
    return *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 232448, device;
}

int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal; }
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
    (void)parameters; /* null for a kernel without any */
    return !config || !kernel || extra;
}

int cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void *stream, void **parameters, void **extra)
{
    int empty = !grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z;
    return !kernel || !parameters || extra || empty || shared || stream;
}

/* Writes the map, as whoever measures it should see the stores. */
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const void *sizes,
                           const void *strides, const void *box, const void *steps, int interleave,
                           int swizzle, int promotion, int fill)
{
    __builtin_memset(map, 0, 128);
    *(void **)map = address;
    return !rank || !sizes || !box || !steps || (rank > 1 && !strides) || type < 0
           || interleave < 0 || swizzle < 0 || promotion < 0 || fill < 0;
}
