/* Variables of libraries: where they are, and what is written to them.  Memory of a device is that
 * of the process; the memory of a variable is never freed, so that a test can look at it. */
#include "fake.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VARIABLES = 256 };

static struct { CUlibrary library; CUdevice device; char name[MAX_NAME]; long size; char *memory; }
    variables[MAX_VARIABLES];
static int num_variables;

/* The bytes of `.const .align 4 .b8 name[68];` or `.global .u32 name;`, -1 for none. */
static long ptx_size(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at += length) {
        const char *line = at, *type = NULL;
        if (at[-1] != ' ' || !strchr("[;= ", at[length]))
            continue;
        while (line > text && line[-1] != '\n')
            line--;
        if (strncmp(line, ".const", 6) && strncmp(line, ".global", 7) && strncmp(line, ".visible", 8))
            continue;
        for (const char *each = line; each < at; each++)
            if (*each == '.' && strchr("bsuf", each[1]) && each[2] >= '1' && each[2] <= '8')
                type = each;
        return type ? atoi(type + 2) / 8 * (at[length] == '[' ? atol(at + length + 1) : 1) : -1;
    }
    return -1;
}

static long cubin_size(const char *file, const char *name)
{
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const char *names = file + sections[sections[i].sh_link].sh_offset;
        const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
        for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++)
            if ((symbols[j].st_info & 15) == STT_OBJECT && !strcmp(names + symbols[j].st_name, name))
                return symbols[j].st_size;
    }
    return -1;
}

#pragma GCC visibility push(default)

CUresult cuLibraryGetGlobal(char **address, size_t *size, CUlibrary library, const char *name)
{
    CUresult result = begin(__func__, 0);
    if (!result)
        result = !is_library(library) ? INVALID_HANDLE : !current() ? INVALID_CONTEXT : SUCCESS;
    if (result)
        return end(result);
    strncpy(begun->kernel, name, MAX_NAME - 1);
    CUdevice device = current()->device;
    long bytes = memcmp(library->code, ELFMAG, SELFMAG) ? ptx_size(library->code, name)
                                                        : cubin_size(library->code, name);
    int i = 0;
    while (i < num_variables && (variables[i].library != library || variables[i].device != device
                                 || strcmp(variables[i].name, name)))
        i++;
    if (bytes < 0 || i == MAX_VARIABLES)
        return end(NOT_FOUND);
    if (i == num_variables) {
        variables[num_variables++].memory = calloc(1, bytes);
        variables[i].library = library;
        variables[i].device = device;
        variables[i].size = bytes;
        strncpy(variables[i].name, name, MAX_NAME - 1);
    }
    *address = variables[i].memory;
    *size = bytes;
    return end(SUCCESS);
}

CUresult cuMemcpyAsync(char *to, const char *from, size_t size, CUstream stream)
{
    CUresult result = begin(__func__, 2, NUMBER(size), NUMBER(stream));
    if (!result)
        memcpy(to, from, size);
    return end(result);
}

/* The memory of the variable of this name that was asked for last on a device, null for none. */
char *fake_variable(CUdevice device, const char *name, long *size)
{
    for (int i = num_variables; i-- > 0;)
        if (variables[i].device == device && !strcmp(variables[i].name, name)) {
            *size = variables[i].size;
            return variables[i].memory;
        }
    return NULL;
}
