/* A stand-in for the CUDA driver, libcuda.so.1, on a machine that has none.
 *
 * It has fake devices of compute capability 9.0 with contexts, streams and libraries, checks the
 * arguments of each call as the driver does, and writes every call down.  Nothing runs: a launch
 * copies the bytes of its parameters, whose sizes it reads in the PTX that was loaded.
 *
 * -DOLD builds one without cuLaunchKernelEx, as before CUDA 12.0.
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct { CUresult code; const char *name, *text; } errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested"},
    {CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {COOPERATIVE_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported PTX version"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted in a capture"},
    {INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
};

#pragma GCC visibility push(default)

CUresult cuInit(unsigned flags)
{
    CUresult result = begin(__func__, 1, NUMBER(flags));
    if (!result)
        result = flags ? INVALID_VALUE : num_devices ? SUCCESS : NO_DEVICE;
    if (!result && !initialised) {
        initialised = getpid();
        register_exit();
    }
    return end(result);
}

/* NVRTC asks for the tables of NVIDIA's own tools: there are none. */
CUresult cuGetExportTable(const void **table, __attribute__((unused)) const void *id)
{
    *table = NULL;
    return NOT_FOUND;
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult result = begin(__func__, 0);
#ifdef OLD
    const int known = 11080;
#else
    const int known = 12040;
#endif
    if (!result)
        *version = known;
    return end(result);
}

static CUresult error_text(const char *call, CUresult code, bool name, const char **out)
{
    CUresult result = begin(call, 1, NUMBER(code));
    *out = NULL;
    for (int i = 0; !result && i < COUNT(errors); i++)
        if (errors[i].code == code)
            *out = name ? errors[i].name : errors[i].text;
    return end(result ? result : *out ? SUCCESS : INVALID_VALUE);
}

CUresult cuGetErrorName(CUresult code, const char **out)
{
    return error_text(__func__, code, true, out);
}

CUresult cuGetErrorString(CUresult code, const char **out)
{
    return error_text(__func__, code, false, out);
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        *count = num_devices;
    return end(result);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = begin(__func__, 1, NUMBER(ordinal));
    if (!result)
        result = is_device(ordinal) ? SUCCESS : INVALID_DEVICE;
    if (!result)
        *device = ordinal;
    return end(result);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    const struct { int attribute, value; } known[] = {
        {1, 1024}, {8, 49152}, {10, 32}, {12, 65536}, {13, 1980000}, {16, 132}, {36, 2619000},
        {37, 5120}, {81, most_shared + 1024}, {97, most_shared},
        {75, is_device(device) ? capabilities[device] / 10 : 0},
        {76, is_device(device) ? capabilities[device] % 10 : 0},
    };
    CUresult result = begin(__func__, 2, NUMBER(attribute), NUMBER(device));
    if (result || !is_device(device))
        return end(result ? result : INVALID_DEVICE);
    for (int i = 0; i < COUNT(known); i++)
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            return end(SUCCESS);
        }
    return end(INVALID_VALUE);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = begin(__func__, 1, NUMBER(device));
    if (!result)
        result = is_device(device) ? SUCCESS : INVALID_DEVICE;
    if (!result) {
        *context = &primaries[device];
        primaries[device].dead = primaries[device].dead && primaries[device].retained;
        primaries[device].retained++;
    }
    return end(result);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = begin(__func__, 1, NUMBER(device));
    if (!result)
        result = is_device(device) ? SUCCESS : INVALID_DEVICE;
    if (!result)
        result = primaries[device].retained > 0 ? SUCCESS : INVALID_CONTEXT;
    if (!result)
        primaries[device].retained--;
    return end(result);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        *context = current();
    return end(result);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        result = current() ? SUCCESS : INVALID_CONTEXT;
    if (!result && current()->dead)
        result = CONTEXT_IS_DESTROYED;
    if (!result)
        *device = current()->device;
    return end(result);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = begin(__func__, 1, NUMBER(context ? context->device : -1));
    if (!result)
        result = is_context(context) && stack.depth < MAX_DEPTH ? SUCCESS : INVALID_CONTEXT;
    if (!result && context->dead)
        result = CONTEXT_IS_DESTROYED;
    if (!result)
        stack.contexts[stack.depth++] = context;
    return end(result);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        result = current() ? SUCCESS : INVALID_CONTEXT;
    if (!result)
        *context = stack.contexts[--stack.depth];
    return end(result);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, void *options, void *values,
                           unsigned num_options, void *library_options, void *library_values,
                           unsigned num_library_options)
{
    usleep(load_delay);
    CUresult result = begin(__func__, 2, NUMBER(num_options), NUMBER(num_library_options));
    for (unsigned i = 0; options && values && i < num_options && i < 3; i++) {
        begun->numbers[begun->num_numbers++] = ((int *)options)[i];
        begun->numbers[begun->num_numbers++] = NUMBER(((void **)values)[i]);
    }
    int number = 0;
    while (number < MAX_LIBRARIES - 1 && libraries[number] && libraries[number]->live)
        number++;
    bool odd = (num_options && !(options && values))
               || (num_library_options && !(library_options && library_values));
    if (!result && disturbs_a_capture())
        result = CAPTURE_UNSUPPORTED;
    if (!result)
        result = !library || !code || odd ? INVALID_VALUE : SUCCESS;
    if (!result) {
        /* Never freed, so that no handle is ever that of another library. */
        struct library *place = libraries[number] = calloc(1, sizeof *place);
        place->code = code;
        place->live = read_cubin(place, code) || read_ptx(place, code);
        result = place->live ? SUCCESS : INVALID_PTX;
        for (int i = 0; eager && i < num_devices; i++)
            if (primaries[i].retained + others[i].retained && !runs(i, place)) {
                place->live = false;
                result = NO_BINARY_FOR_GPU;
            }
        *library = place;
    }
    return end(result);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        result = is_library(library) ? SUCCESS : INVALID_HANDLE;
    if (!result && disturbs_a_capture())
        result = CAPTURE_UNSUPPORTED;
    if (!result)
        library->live = false;
    return end(result);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        result = !kernel || !name ? INVALID_VALUE : is_library(library) ? SUCCESS : INVALID_HANDLE;
    if (result)
        return end(result);
    strncpy(begun->kernel, name, MAX_NAME - 1);
    for (int i = 0; i < library->num_kernels; i++)
        if (strcmp(library->kernels[i].name, name) == 0) {
            *kernel = &library->kernels[i];
            return end(SUCCESS);
        }
    return end(NOT_FOUND);
}

CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device)
{
    CUresult result = begin(__func__, 3, NUMBER(attribute), NUMBER(value), NUMBER(device));
    if (!result)
        result = !is_kernel(kernel) ? INVALID_HANDLE : !is_device(device) ? INVALID_DEVICE : SUCCESS;
    if (!result && attribute == 8)
        result = value < 0 || value > most_shared ? INVALID_VALUE : SUCCESS;
    else if (!result)
        result = attribute == 14 && (value == 0 || value == 1) ? SUCCESS : INVALID_VALUE;
    if (!result && attribute == 8)
        kernel->smem[device] = value;
    else if (!result)
        kernel->large[device] = value;
    return end(result);
}

CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device)
{
    CUresult result = begin(__func__, 2, NUMBER(attribute), NUMBER(device));
    if (!result)
        result = !is_kernel(kernel) ? INVALID_HANDLE : !is_device(device) ? INVALID_DEVICE : SUCCESS;
    if (!result)
        result = attribute < 0 || attribute > 1 ? INVALID_VALUE : SUCCESS;
    if (!result)
        *value = attribute ? kernel->fixed : most_registered;
    return end(result);
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        result = stream >= streams && stream < streams + MAX_STREAMS ? SUCCESS : INVALID_HANDLE;
    if (!result)
        *status = stream->capture;
    return end(result);
}

/* Memory of a device is the host's here. */
CUresult cuMemsetD8Async(void *address, unsigned char value, size_t count, CUstream stream)
{
    CUresult result = begin(__func__, 4, NUMBER(address), NUMBER(value), NUMBER(count),
                            NUMBER(stream));
    if (!result)
        result = !current() ? INVALID_CONTEXT : count ? SUCCESS : INVALID_VALUE;
    if (!result)
        memset(address, value, count);
    return end(result);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    CUresult result = begin(__func__, 1, NUMBER(*mode));
    if (!result) {
        int before = capture_mode;
        capture_mode = *mode;
        *mode = before;
    }
    return end(result);
}

/* Write the attributes down; blocks must be whole clusters of at most so many. */
static CUresult check_attributes(const CUlaunchConfig *config, unsigned most)
{
    if (config->num_attributes > MAX_ATTRIBUTES || (config->num_attributes && !config->attributes))
        return INVALID_VALUE;
    begun->num_attributes = config->num_attributes;
    for (unsigned i = 0; i < config->num_attributes; i++) {
        const CUlaunchAttribute *each = &config->attributes[i];
        begun->attributes[i] = *each;
        unsigned sizes[3], blocks = 1;
        memcpy(sizes, each->value, sizeof sizes);
        for (int axis = 0; each->id == 4 && axis < 3; axis++) {
            if (!sizes[axis] || config->grid[axis] % sizes[axis])
                return INVALID_VALUE;
            blocks *= sizes[axis];
        }
        if (blocks > most)
            return INVALID_CLUSTER_SIZE;
        if (each->id == 2 && config->grid[0] > 132 * 8)
            return COOPERATIVE_TOO_LARGE;
    }
    return SUCCESS;
}

static CUresult check_config(const CUlaunchConfig *config, unsigned smem, unsigned most_in_cluster)
{
    const unsigned most_blocks[] = {0x7FFFFFFF, 65535, 65535}, most_threads[] = {1024, 1024, 64};
    unsigned long threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        unsigned blocks = config->grid[axis], size = config->block[axis];
        if (!blocks || blocks > most_blocks[axis] || !size || size > most_threads[axis])
            return INVALID_VALUE;
        threads *= size;
    }
    if (threads > 1024 || config->smem > smem)
        return INVALID_VALUE;
    if (threads > (unsigned long)most_registered)
        return OUT_OF_RESOURCES;
    CUresult result = check_attributes(config, most_in_cluster);
    return result ? result : is_stream(config->stream) ? SUCCESS : INVALID_HANDLE;
}

/* Write down the bytes of all parameters, one behind the other. */
static CUresult copy_parameters(CUkernel kernel, void **parameters)
{
    int total = 0;
    for (int i = 0; i < kernel->num_parameters; i++) {
        if (!parameters || !parameters[i])
            return INVALID_VALUE;
        total += begun->sizes[i] = kernel->sizes[i];
    }
    unsigned char *place = begun->bytes = malloc(total + 1);
    begun->num_parameters = kernel->num_parameters;
    for (int i = 0; i < kernel->num_parameters; i++) {
        memcpy(place, parameters[i], kernel->sizes[i]);
        place += kernel->sizes[i];
    }
    return SUCCESS;
}

#ifndef OLD
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUkernel kernel, void **parameters,
                          void **extra)
{
    static const CUlaunchConfig none;
    const CUlaunchConfig *c = config ? config : &none;
    CUresult result = begin(__func__, 8, NUMBER(c->grid[0]), NUMBER(c->grid[1]),
                            NUMBER(c->grid[2]), NUMBER(c->block[0]), NUMBER(c->block[1]),
                            NUMBER(c->block[2]), NUMBER(c->smem), NUMBER(c->stream));
    if (!result)
        result = !current() ? INVALID_CONTEXT : !is_kernel(kernel) ? INVALID_HANDLE : SUCCESS;
    if (!result && current()->dead)
        result = CONTEXT_IS_DESTROYED;
    unsigned smem = result || !kernel->smem[current()->device] ? 49152
                                                                : kernel->smem[current()->device];
    if (!result)
        strcpy(begun->target, library_of(kernel)->target);
    if (!result && !runs(current()->device, library_of(kernel)))
        result = NO_BINARY_FOR_GPU;
    unsigned most = result || !kernel->large[current()->device] ? 8 : 16;
    if (!result)
        result = !config || extra ? INVALID_VALUE : check_config(config, smem, most);
    if (!result)
        result = copy_parameters(kernel, parameters);
    if (!result)
        strcpy(begun->kernel, kernel->name);
    return end(result);
}
#endif
