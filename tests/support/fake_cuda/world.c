/* The world of the stand-in, the book of calls, and the functions that tests use. */
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct context primaries[MAX_DEVICES], others[MAX_DEVICES];
struct stream streams[MAX_STREAMS];
struct library *libraries[MAX_LIBRARIES];
int num_devices, load_delay, most_registered = 1024, most_shared = 232448, initialised;
int capabilities[MAX_DEVICES];
bool eager;
_Thread_local int capture_mode;
_Thread_local struct stack stack;
struct call *begun;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call calls[MAX_CALLS];
static struct { char name[40]; CUresult code; int after; } failures[MAX_FAILURES];
static int num_calls, num_failures, epoch;
static bool shut_down;

CUcontext current(void)
{
    if (stack.epoch != epoch) {
        stack.depth = 0;
        stack.epoch = epoch;
    }
    return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

bool is_context(CUcontext context)
{
    bool primary = context >= primaries && context < primaries + MAX_DEVICES;
    bool other = context >= others && context < others + MAX_DEVICES;
    return other || (primary && context->retained > 0);
}

bool is_device(CUdevice device) { return device >= 0 && device < num_devices; }

static CUresult asked_to_fail(const char *name)
{
    CUresult code = SUCCESS;
    for (int i = 0; i < num_failures; i++)
        if (strcmp(failures[i].name, name) == 0 && failures[i].after-- == 0)
            code = failures[i].code;
    return code;
}

CUresult begin(const char *name, int count, ...)
{
    static struct call dropped;
    pthread_mutex_lock(&lock);
    begun = num_calls < MAX_CALLS ? &calls[num_calls++] : &dropped;
    *begun = (struct call){.device = current() ? current()->device : -1, .num_numbers = count};
    strncpy(begun->name, name, sizeof begun->name - 1);
    va_list numbers;
    va_start(numbers, count);
    for (int i = 0; i < count; i++)
        begun->numbers[i] = va_arg(numbers, long long);
    va_end(numbers);
    CUresult asked = asked_to_fail(name);
    if (shut_down)
        fprintf(stderr, "%s was called after the driver had shut down\n", name);
    bool texts = strncmp(name, "cuGetError", 10) == 0 || strcmp(name, "cuDriverGetVersion") == 0;
    if (shut_down || (initialised && initialised != getpid() && !texts))
        return shut_down ? DEINITIALIZED : NOT_INITIALIZED;
    bool always = texts || strcmp(name, "cuInit") == 0;
    return asked ? asked : initialised || always ? SUCCESS : NOT_INITIALIZED;
}

CUresult end(CUresult result)
{
    begun->result = result;
    pthread_mutex_unlock(&lock);
    return result;
}

bool is_library(CUlibrary library)
{
    for (int i = 0; i < MAX_LIBRARIES; i++)
        if (library && library == libraries[i])
            return library->live;
    return false;
}

CUlibrary library_of(CUkernel kernel)
{
    for (int i = 0; i < MAX_LIBRARIES; i++) {
        struct library *each = libraries[i];
        if (each && each->live && kernel >= each->kernels
            && kernel < each->kernels + each->num_kernels)
            return each;
    }
    return NULL;
}

bool is_kernel(CUkernel kernel) { return library_of(kernel); }

bool runs(CUdevice device, CUlibrary library)
{
    int number = 0, own = capabilities[device];
    char kind = ' ';
    sscanf(library->target, "sm_%d%c", &number, &kind);
    return own >= number && (kind != 'a' || own == number)
           && (kind != 'f' || own / 10 == number / 10);
}

bool disturbs_a_capture(void)
{
    bool found = false;
    for (int i = 0; i < MAX_STREAMS && capture_mode != 2; i++)
        if (streams[i].capture == 1) {
            streams[i].capture = 2;
            found = true;
        }
    return found;
}

static void on_exit_of_process(void) { shut_down = true; }

void register_exit(void)
{
    static bool known;
    if (!known)
        atexit(on_exit_of_process);
    known = true;
}

bool is_stream(CUstream stream)
{
    if (NUMBER(stream) <= 2) /* the default ones: null, legacy, of each thread */
        return NUMBER(stream) >= 0;
    bool inside = stream >= streams && stream < streams + MAX_STREAMS && stream->live;
    return inside && stream->device == current()->device;
}

/* ---- for tests ---- */

#pragma GCC visibility push(default)

void fake_clear(void)
{
    pthread_mutex_lock(&lock);
    while (num_calls)
        free(calls[--num_calls].bytes);
    pthread_mutex_unlock(&lock);
}

/* Forget everything; then there are so many devices. */
void fake_reset(int devices)
{
    fake_clear();
    pthread_mutex_lock(&lock);
    num_failures = load_delay = initialised = eager = 0;
    most_registered = 1024;
    most_shared = 232448;
    num_devices = devices;
    epoch++;
    memset(streams, 0, sizeof streams);
    memset(libraries, 0, sizeof libraries);
    for (int i = 0; i < MAX_DEVICES; i++)
        primaries[i] = others[i] = (struct context){.device = i};
    for (int i = 0; i < MAX_DEVICES; i++)
        capabilities[i] = 90;
    pthread_mutex_unlock(&lock);
}

/* Let the call of this name that comes after so many others fail with this code. */
void fake_fail(const char *name, CUresult code, int after)
{
    pthread_mutex_lock(&lock);
    if (num_failures < MAX_FAILURES) {
        strncpy(failures[num_failures].name, name, sizeof failures->name - 1);
        failures[num_failures].code = code;
        failures[num_failures++].after = after;
    }
    pthread_mutex_unlock(&lock);
}

void fake_delay_loads(int microseconds) { load_delay = microseconds; }

/* Let a context be the only one on this thread's stack, as somebody else's code would; none for
 * -1. The primary context is retained by whoever makes it current. */
void fake_set_current(CUdevice device, bool primary)
{
    pthread_mutex_lock(&lock);
    current();
    stack.depth = 0;
    if (is_device(device)) {
        stack.contexts[stack.depth++] = primary ? &primaries[device] : &others[device];
        stack.contexts[0]->retained++;
        initialised = getpid();
    }
    pthread_mutex_unlock(&lock);
}

/* Let a device have a compute capability, ten times it: 90 at first. */
void fake_capability(CUdevice device, int capability) { capabilities[device] = capability; }

/* Let libraries be loaded for all contexts at once. */
void fake_load_eagerly(void) { eager = true; }

/* Let kernels have so few threads a block. */
void fake_limit_threads(int most) { most_registered = most; }

/* Let devices have so much shared memory for a block. */
void fake_limit_shared(int most) { most_shared = most; }

/* Reset a device, as cuDevicePrimaryCtxReset does: libraries go with their contexts. */
void fake_reset_device(CUdevice device)
{
    pthread_mutex_lock(&lock);
    primaries[device].dead = true;
    memset(libraries, 0, sizeof libraries);
    pthread_mutex_unlock(&lock);
}

/* Begin to capture a stream, or end it; whether the capture was whole till then. */
bool fake_capture(CUstream stream, bool on)
{
    bool whole = stream->capture == 1;
    stream->capture = on;
    return whole;
}

/* A new stream of a device. */
CUstream fake_stream(CUdevice device)
{
    for (int i = 0; i < MAX_STREAMS; i++)
        if (!streams[i].live) {
            streams[i] = (struct stream){device, true, 0};
            return &streams[i];
        }
    return NULL;
}

int fake_depth(void) { return current() ? stack.depth : 0; }
int fake_device(void) { return current() ? current()->device : -1; }
int fake_retained(CUdevice device) { return primaries[device].retained; }
int fake_num_calls(void) { return num_calls; }
const struct call *fake_call(int number) { return &calls[number]; }

/* The architecture of the PTX that was loaded last, "" if there is none. */
const char *fake_target(void)
{
    const char *found = "";
    for (int i = 0; i < MAX_LIBRARIES; i++)
        found = libraries[i] && libraries[i]->live ? libraries[i]->target : found;
    return found;
}

int fake_num_libraries(void)
{
    int live = 0;
    for (int i = 0; i < MAX_LIBRARIES; i++)
        live += libraries[i] && libraries[i]->live;
    return live;
}
