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
    unsigned grid[3], block[3], smem;
    CUstream stream;
    void *attributes;
    unsigned num_attributes;
} CUlaunchConfig;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
};

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))
#define NUMBER(value) (long long)(intptr_t)(value)

enum { MAX_CALLS = 8192, MAX_DEVICES = 2, MAX_LIBRARIES = 64, MAX_KERNELS = 64, MAX_STREAMS = 16,
       MAX_PARAMETERS = 32, MAX_DEPTH = 16, MAX_FAILURES = 64, MAX_NAME = 512 };

/* ---- what there is ---- */

struct context { CUdevice device; int retained; };
struct stream { CUdevice device; bool live; };
/* `smem` is the dynamic shared memory that is allowed, 0 for the default. */
struct kernel { char name[MAX_NAME]; int num_parameters, sizes[MAX_PARAMETERS]; unsigned smem; };
struct library { bool live; int num_kernels; struct kernel kernels[MAX_KERNELS]; };

/* As `cuda_device.py` reads it. `device` is the one that was current, -1 for none; `kernel`, the
 * sizes and the bytes are of launches alone. */
struct call {
    char name[32], kernel[MAX_NAME];
    int result, device, num_numbers, num_parameters;
    long long numbers[8];
    int sizes[MAX_PARAMETERS];
    unsigned char *bytes;
};

extern struct context primaries[MAX_DEVICES], others[MAX_DEVICES];
extern struct stream streams[MAX_STREAMS];
extern struct library libraries[MAX_LIBRARIES];
extern int num_devices, load_delay;
extern bool initialised;
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
bool is_stream(CUstream stream);

/* Every driver call is `begin`, what it does unless that failed, and `end`; in between the world is
 * this thread's alone. `begun` is where the call is written down. */
extern struct call *begun;
CUresult begin(const char *name, int count, ...);
CUresult end(CUresult result);

/* ---- ptx.c ---- */

/* Find the kernels of a PTX text; false for what is none. */
bool read_ptx(struct library *library, const char *text);

#endif
