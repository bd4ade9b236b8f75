/* What the parts of the stand-in share: its world, which is that of the process. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

typedef int CUresult, CUdevice;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct library *CUlibrary;
typedef struct kernel *CUkernel;

typedef struct {
    int id;
    char pad[4], value[64];
} CUlaunchAttribute;

typedef struct {
    unsigned grid[3], block[3], smem;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned num_attributes;
} CUlaunchConfig;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    OUT_OF_RESOURCES = 701,
    CONTEXT_IS_DESTROYED = 709,
    COOPERATIVE_TOO_LARGE = 720,
    CAPTURE_UNSUPPORTED = 900,
    INVALID_CLUSTER_SIZE = 912,
};

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))
#define NUMBER(value) (long long)(intptr_t)(value)

enum { MAX_CALLS = 8192, MAX_DEVICES = 4, MAX_LIBRARIES = 64, MAX_KERNELS = 64, MAX_STREAMS = 16,
       MAX_PARAMETERS = 32, MAX_ATTRIBUTES = 8, MAX_DEPTH = 16, MAX_FAILURES = 64, MAX_NAME = 512 };

/* ---- what there is ---- */

/* A primary context that was reset is `dead` until it is retained by nobody, and then again. */
struct context { CUdevice device; int retained; bool dead; };
/* `capture` is a CUstreamCaptureStatus. */
struct stream { CUdevice device; bool live; int capture; };
/* `smem` is the dynamic shared memory that is allowed on each device, 0 for the default, `large`
 * whether clusters may have more than 8 blocks there, `fixed` what all kernels of the module have of
 * their own. */
struct kernel {
    char name[MAX_NAME];
    int num_parameters, sizes[MAX_PARAMETERS], fixed;
    unsigned smem[MAX_DEVICES];
    bool large[MAX_DEVICES];
};
/* `code` is the image, which the object has. */
struct library { bool live; const void *code; int num_kernels; char target[16]; struct kernel kernels[MAX_KERNELS]; };

/* As `cuda_device.py` reads it. `device` is the one that was current, -1 for none; `kernel`, the
 * architecture of its image, the sizes and the bytes are of launches alone. */
struct call {
    char name[40], kernel[MAX_NAME], target[16];
    int result, device, num_numbers, num_parameters;
    long long numbers[8];
    int sizes[MAX_PARAMETERS];
    unsigned char *bytes;
    int num_attributes;
    CUlaunchAttribute attributes[MAX_ATTRIBUTES];
};

extern struct context primaries[MAX_DEVICES], others[MAX_DEVICES];
extern struct stream streams[MAX_STREAMS];
extern struct library *libraries[MAX_LIBRARIES];
/* `most_registered`: the threads of a block that registers are enough for. */
extern int num_devices, load_delay, most_registered, most_shared;
/* Ten times the compute capability of each device. */
extern int capabilities[MAX_DEVICES];
/* Whether a library is loaded for all contexts at once, and not when a launch needs it. */
extern bool eager;
/* `initialised` is the process that called cuInit, 0 for none. */
extern int initialised;
extern _Thread_local int capture_mode;
extern _Thread_local struct stack {
    CUcontext contexts[MAX_DEPTH];
    int depth, epoch;
} stack;

/* ---- world.c ---- */

/* The context that is current on this thread, null for none. */
CUcontext current(void);
bool is_device(CUdevice device);
bool is_context(CUcontext context);
bool is_library(CUlibrary library);
bool is_kernel(CUkernel kernel);
/* The library of a kernel, null for what is none. */
CUlibrary library_of(CUkernel kernel);
/* Whether a device runs the code of a library: that for an older one, for its very own with an `a`,
 * for its major version with an `f`. */
bool runs(CUdevice device, CUlibrary library);
bool is_stream(CUstream stream);
/* Whether a stream is captured and this thread did not say that it may disturb that: if so, the
 * capture is over. */
bool disturbs_a_capture(void);
void register_exit(void);

/* Every driver call is `begin`, what it does unless that failed, and `end`; in between the world is
 * this thread's alone. `begun` is where the call is written down. */
extern struct call *begun;
CUresult begin(const char *name, int count, ...);
CUresult end(CUresult result);

/* ---- ptx.c ---- */

/* Find the kernels of a PTX text; false for what is none. */
bool read_ptx(struct library *library, const char *text);

/* ---- cubin.c ---- */

/* Find the kernels of a cubin; false for what is none. */
bool read_cubin(struct library *library, const void *data);

#endif
