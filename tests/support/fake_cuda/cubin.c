/* Reads cubins: the names of the entries and the sizes of their parameters.
 *
 * A cubin is an ELF64 file.  Each entry has a section `.nv.info.<name>` of records: a format, an
 * attribute and a size or value; KPARAM_INFO and, where there are more than 4 KB of parameters,
 * LONG_KPARAM_INFO say ordinal and size of a parameter.  It trusts what it reads: a test's cubin is
 * whole.
 */
#include "fake.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WITH_DATA = 4, KPARAM_INFO = 0x17, LONG_KPARAM_INFO = 0x45 };

static const char prefix[] = ".nv.info.", shared[] = ".nv.shared.";

static void read_records(struct kernel *kernel, const unsigned char *at, const unsigned char *stop)
{
    while (at + 4 <= stop) {
        uint16_t size = 0, ordinal;
        uint32_t flags;
        if (at[0] == WITH_DATA)
            memcpy(&size, at + 2, sizeof size);
        if (at[0] == WITH_DATA && (at[1] == KPARAM_INFO || at[1] == LONG_KPARAM_INFO)) {
            memcpy(&ordinal, at + 8, sizeof ordinal);
            memcpy(&flags, at + 12, sizeof flags);
            if (ordinal < MAX_PARAMETERS)
                kernel->sizes[ordinal] = at[1] == KPARAM_INFO ? flags >> 18 : flags & 0xffff;
            if (ordinal < MAX_PARAMETERS && kernel->num_parameters <= ordinal)
                kernel->num_parameters = ordinal + 1;
        }
        at += 4 + size;
    }
}

bool read_cubin(struct library *library, const void *data)
{
    const unsigned char *file = data;
    const Elf64_Ehdr *header = data;
    if (memcmp(file, ELFMAG, SELFMAG) || header->e_machine != 190)
        return false;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    const char *names = (const char *)file + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum && library->num_kernels < MAX_KERNELS; i++) {
        const char *name = names + sections[i].sh_name;
        if (strncmp(name, prefix, strlen(prefix)))
            continue;
        struct kernel *kernel = &library->kernels[library->num_kernels++];
        strncpy(kernel->name, name + strlen(prefix), MAX_NAME - 1);
        const unsigned char *start = file + sections[i].sh_offset;
        read_records(kernel, start, start + sections[i].sh_size);
        for (int j = 0; j < header->e_shnum; j++) {
            const char *other = names + sections[j].sh_name;
            if (!strncmp(other, shared, strlen(shared))
                && !strcmp(other + strlen(shared), kernel->name))
                kernel->fixed = sections[j].sh_size;
        }
    }
    /* CUDA 13 has the architecture in bits 8 to 15 of the flags, CUDA 12 in the lowest 8. */
    unsigned flags = header->e_flags, arch = header->e_ident[EI_ABIVERSION] >= 8 ? flags >> 8 : flags;
    snprintf(library->target, sizeof library->target, "sm_%u", arch & 255);
    return true;
}
