/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/object.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_SECTIONS 64
#define BROKEN "the object file is broken"

struct loader {
    const char *bytes;
    size_t size;
    Elf64_Ehdr header;
    Elf64_Shdr sections[MOST_SECTIONS];
    size_t offsets[MOST_SECTIONS]; /* in memory; SIZE_MAX: it is not there */
    char *memory;
    const char *entry_name;
    const char *entry;
};

static bool is_within(const struct loader *l, uint64_t offset, uint64_t size)
{
    return offset <= l->size && size <= l->size - offset;
}

static const char *read_sections(struct loader *l)
{
    if (!is_within(l, 0, sizeof l->header))
        return BROKEN;
    memcpy(&l->header, l->bytes, sizeof l->header);
    if (memcmp(l->header.e_ident, ELFMAG, SELFMAG) != 0 || l->header.e_type != ET_REL ||
        l->header.e_machine != EM_X86_64 || l->header.e_shentsize != sizeof(Elf64_Shdr) ||
        l->header.e_shnum > MOST_SECTIONS ||
        !is_within(l, l->header.e_shoff, l->header.e_shnum * sizeof(Elf64_Shdr)))
        return BROKEN;
    if (l->header.e_shnum)
        memcpy(l->sections, l->bytes + l->header.e_shoff, l->header.e_shnum * sizeof(Elf64_Shdr));
    for (int i = 0; i < l->header.e_shnum; i++)
        if (l->sections[i].sh_type != SHT_NOBITS &&
            !is_within(l, l->sections[i].sh_offset, l->sections[i].sh_size))
            return BROKEN;
    return NULL;
}

/* One behind the other; 0 when it is more than can be. */
static size_t lay_out(struct loader *l)
{
    size_t end = 0;
    for (int i = 0; i < l->header.e_shnum; i++) {
        const Elf64_Shdr *section = &l->sections[i];
        const uint64_t alignment = section->sh_addralign ? section->sh_addralign : 1;
        l->offsets[i] = SIZE_MAX;
        if (!(section->sh_flags & SHF_ALLOC))
            continue;
        if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_WRITE) || alignment > 4096 ||
            (alignment & (alignment - 1)))
            return 0;
        l->offsets[i] = (end + alignment - 1) & ~(size_t)(alignment - 1);
        end = l->offsets[i] + section->sh_size;
    }
    return end;
}

static bool read_symbol(const struct loader *l, const Elf64_Shdr *table, uint64_t index,
                        Elf64_Sym *symbol)
{
    if (index >= table->sh_size / sizeof *symbol)
        return false;
    memcpy(symbol, l->bytes + table->sh_offset + index * sizeof *symbol, sizeof *symbol);
    return true;
}

/* Where a symbol is in memory; NULL: it is from elsewhere. */
static char *find(const struct loader *l, const Elf64_Sym *symbol)
{
    if (symbol->st_shndx >= l->header.e_shnum || l->offsets[symbol->st_shndx] == SIZE_MAX ||
        symbol->st_value > l->sections[symbol->st_shndx].sh_size)
        return NULL;
    return l->memory + l->offsets[symbol->st_shndx] + symbol->st_value;
}

static const char *relocate_one(const struct loader *l, const Elf64_Shdr *target, size_t offset,
                                const Elf64_Shdr *symbols, const Elf64_Rela *rela)
{
    Elf64_Sym symbol;
    const uint32_t type = ELF64_R_TYPE(rela->r_info);
    if (!read_symbol(l, symbols, ELF64_R_SYM(rela->r_info), &symbol))
        return BROKEN;
    const char *to = find(l, &symbol);
    if (!to)
        return "the code needs something from elsewhere";
    const size_t width = type == R_X86_64_64 ? 8 : 4;
    if (rela->r_offset > target->sh_size || width > target->sh_size - rela->r_offset)
        return BROKEN;
    char *at = l->memory + offset + rela->r_offset;
    const int64_t value = (int64_t)((uint64_t)(uintptr_t)to + (uint64_t)rela->r_addend),
                  distance = (int64_t)((uint64_t)value - (uint64_t)(uintptr_t)at);
    const int32_t narrow = (int32_t)distance;
    if (type == R_X86_64_64) {
        memcpy(at, &value, sizeof value);
        return NULL;
    }
    if ((type != R_X86_64_PC32 && type != R_X86_64_PLT32) || narrow != distance)
        return "the code has a relocation of an unknown kind";
    memcpy(at, &narrow, sizeof narrow);
    return NULL;
}

static const char *relocate(const struct loader *l, const Elf64_Shdr *section)
{
    if (section->sh_info >= l->header.e_shnum || section->sh_link >= l->header.e_shnum)
        return BROKEN;
    if (l->offsets[section->sh_info] == SIZE_MAX)
        return NULL;
    for (size_t i = 0; i < section->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela rela;
        memcpy(&rela, l->bytes + section->sh_offset + i * sizeof rela, sizeof rela);
        const char *why =
            relocate_one(l, &l->sections[section->sh_info], l->offsets[section->sh_info],
                         &l->sections[section->sh_link], &rela);
        if (why)
            return why;
    }
    return NULL;
}

static bool is_entry(const struct loader *l, const Elf64_Shdr *table, const Elf64_Sym *symbol)
{
    if (table->sh_link >= l->header.e_shnum)
        return false;
    const Elf64_Shdr *names = &l->sections[table->sh_link];
    const size_t size = strlen(l->entry_name) + 1;
    return names->sh_type == SHT_STRTAB && symbol->st_name <= names->sh_size &&
           size <= names->sh_size - symbol->st_name &&
           memcmp(l->bytes + names->sh_offset + symbol->st_name, l->entry_name, size) == 0;
}

static const char *fill(struct loader *l)
{
    const char *why = NULL;
    for (int i = 0; i < l->header.e_shnum; i++)
        if (l->offsets[i] != SIZE_MAX)
            memcpy(l->memory + l->offsets[i], l->bytes + l->sections[i].sh_offset,
                   l->sections[i].sh_size);
    for (int i = 0; i < l->header.e_shnum && !why; i++) {
        const Elf64_Shdr *section = &l->sections[i];
        if (section->sh_type == SHT_RELA)
            why = relocate(l, section);
        Elf64_Sym symbol;
        for (uint64_t k = 0; section->sh_type == SHT_SYMTAB && read_symbol(l, section, k, &symbol);
             k++)
            if (is_entry(l, section, &symbol))
                l->entry = find(l, &symbol);
    }
    return why ? why : l->entry ? NULL : BROKEN;
}

const char *object_load(struct object *object, const void *bytes, size_t size, const char *entry)
{
    struct loader l = {.bytes = bytes, .size = size, .entry_name = entry};
    const char *why = read_sections(&l);
    const size_t wanted = why ? 0 : lay_out(&l);
    if (!wanted)
        return why ? why : BROKEN;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t mapped = (wanted + page - 1) & ~(page - 1);
    void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return "there is no memory for code";
    l.memory = memory;
    why = fill(&l);
    if (!why && mprotect(memory, mapped, PROT_READ | PROT_EXEC))
        why = "the system allows no executable memory";
    if (why)
        munmap(memory, mapped);
    else
        *object = (struct object){memory, mapped, l.entry};
    return why;
}

void object_unload(struct object *object)
{
    munmap(object->memory, object->size);
}
