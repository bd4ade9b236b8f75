/* Reads PTX: the names of the entries and the sizes of their parameters. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bits_of(const char *type)
{
    return strchr("usbf", type[0]) && isdigit((unsigned char)type[1]) ? atoi(type + 1) : 0;
}

/* `.param .align 8 .b8 name[16]` is 16 bytes, `.param .u64 .ptr .global name` is 8. */
static int parameter_size(const char *text, const char *stop)
{
    int bits = 0, count = 1;
    for (; text < stop; text++) {
        if (*text == '.' && bits_of(text + 1))
            bits = bits_of(text + 1);
        if (*text == '[')
            count = atoi(text + 1);
    }
    return bits / 8 * count;
}

static const char *read_parameters(struct kernel *kernel, const char *text)
{
    const char *stop = strchr(text, ')');
    for (text = strstr(text, ".param"); stop && text && text < stop;) {
        const char *next = strstr(text + 1, ".param");
        const char *behind = next && next < stop ? next : stop;
        if (kernel->num_parameters < MAX_PARAMETERS)
            kernel->sizes[kernel->num_parameters++] = parameter_size(text + 6, behind);
        text = next;
    }
    return stop;
}

/* The bytes of all `.visible .shared .align 16 .b8 name[1024];`, but those that are `.extern`. */
static int shared_size(const char *text)
{
    int total = 0;
    for (const char *at = text; (at = strstr(at, ".shared .align")); at += 7) {
        const char *stop = strchr(at, ';');
        bool other = at - text > 8 && strncmp(at - 8, ".extern ", 8) == 0;
        total += stop && !other ? parameter_size(at + 7, stop) : 0;
    }
    return total;
}

bool read_ptx(struct library *library, const char *text)
{
    if (!strstr(text, ".version") || !strstr(text, ".target"))
        return false;
    int fixed = shared_size(text);
    sscanf(strstr(text, ".target"), ".target %15[a-z0-9_]", library->target);
    while (text && (text = strstr(text, ".entry")) && library->num_kernels < MAX_KERNELS) {
        struct kernel *kernel = &library->kernels[library->num_kernels++];
        int length = 0;
        kernel->fixed = fixed;
        sscanf(text + 6, " %511[A-Za-z0-9_$]%n", kernel->name, &length);
        const char *behind = text + 6 + length + strspn(text + 6 + length, " \t\n");
        text = *behind == '(' ? read_parameters(kernel, behind) : behind;
    }
    return true;
}
