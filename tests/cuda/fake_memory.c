/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake driver's memory. An address is that of the host's memory, and a high bit, so that who
 * takes it for a pointer ends; and what is asked of it is checked against what is alive. What
 * nobody wrote is 0xff.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake.h"

enum { MEMORY_LIMIT = 64 << 20, ALIGNMENT = 256 };

struct block {
    struct block *next;
    cuda_context owner;
    char *bytes;
    size_t size;
};
static struct block *blocks, *pinned;
static size_t memory_used;

/* The link to the block that has these bytes; to NULL: there is none. */
static struct block **find_block(struct block **list, const char *bytes, size_t size)
{
    struct block **at = list;
    while (*at && !(bytes >= (*at)->bytes && bytes <= (*at)->bytes + (*at)->size &&
                    size <= (*at)->size - (size_t)(bytes - (*at)->bytes)))
        at = &(*at)->next;
    return at;
}

static struct block *add_block(struct block **list, size_t size)
{
    struct block *block = malloc(sizeof *block);
    void *bytes;
    if (!block || posix_memalign(&bytes, ALIGNMENT, size) != 0)
        abort();
    *block = (struct block){*list, fake_current(), bytes, size};
    *list = block;
    fake_count(1);
    return block;
}

static void drop_block(struct block **at)
{
    struct block *block = *at;
    *at = block->next;
    free(block->bytes);
    free(block);
    fake_count(-1);
}

void *fake_bytes(cuda_address address, size_t size)
{
    if (address < FAKE_FIRST_ADDRESS)
        return (void *)(uintptr_t)address;
    char *bytes = (char *)(uintptr_t)(address - FAKE_FIRST_ADDRESS);
    const struct block *block = *find_block(&blocks, bytes, size);
    return block && block->owner == fake_current() ? bytes : NULL;
}

bool fake_is_pinned(const void *memory)
{
    return *find_block(&pinned, memory, 1) != NULL;
}

FAKE(cuDeviceTotalMem_v2, size_t *size, int device)
{
    (void)device;
    *size = MEMORY_LIMIT;
    return FAKE_OK;
}

FAKE(cuMemAlloc_v2, cuda_address *memory, size_t size)
{
    IN_CONTEXT();
    EXPECT(size > 0);
    if (size > MEMORY_LIMIT - memory_used)
        return FAKE_OUT_OF_MEMORY;
    struct block *block = add_block(&blocks, size);
    memset(block->bytes, 0xff, size);
    memory_used += size;
    *memory = (cuda_address)(uintptr_t)block->bytes + FAKE_FIRST_ADDRESS;
    return FAKE_OK;
}

FAKE(cuMemFree_v2, cuda_address memory)
{
    ENTER();
    struct block **at = find_block(&blocks, (char *)(uintptr_t)(memory - FAKE_FIRST_ADDRESS), 0);
    EXPECT(*at && (uintptr_t)(*at)->bytes + FAKE_FIRST_ADDRESS == memory &&
           (*at)->owner == fake_current());
    memory_used -= (*at)->size;
    drop_block(at);
    return planned_;
}

FAKE(cuMemAllocHost_v2, void **memory, size_t size)
{
    IN_CONTEXT();
    EXPECT(size > 0);
    *memory = add_block(&pinned, size)->bytes;
    memset(*memory, 0, size);
    return FAKE_OK;
}

FAKE(cuMemFreeHost, void *memory)
{
    ENTER();
    struct block **at = find_block(&pinned, memory, 0);
    EXPECT(*at && (*at)->bytes == memory);
    drop_block(at);
    return planned_;
}

/* ---- Copies and fills ------------------------------------------------------------------------ */

static bool is_device(cuda_address address, size_t size)
{
    return address >= FAKE_FIRST_ADDRESS && fake_bytes(address, size);
}

/* Memory that is not pinned is read at the call. */
FAKE(cuMemcpyHtoDAsync_v2, cuda_address target, const void *source, size_t size, cuda_stream stream)
{
    IN_CONTEXT();
    EXPECT(is_device(target, size) && (uintptr_t)source < FAKE_FIRST_ADDRESS);
    struct fake_work work = {.kind = FAKE_COPY, .to = target, .size = size};
    work.from = (cuda_address)(uintptr_t)source;
    if (!fake_is_pinned(source)) {
        work.staged = malloc(size + 1);
        if (!work.staged)
            abort();
        memcpy(work.staged, source, size);
    }
    return fake_push(stream, &work);
}

FAKE(cuMemcpyDtoHAsync_v2, void *target, cuda_address source, size_t size, cuda_stream stream)
{
    IN_CONTEXT();
    EXPECT((uintptr_t)target < FAKE_FIRST_ADDRESS && is_device(source, size));
    const struct fake_work work = {
        .kind = FAKE_COPY, .to = (cuda_address)(uintptr_t)target, .from = source, .size = size};
    return fake_push(stream, &work);
}

FAKE(cuMemcpyDtoDAsync_v2, cuda_address target, cuda_address source, size_t size,
     cuda_stream stream)
{
    IN_CONTEXT();
    EXPECT(is_device(target, size) && is_device(source, size));
    const struct fake_work work = {.kind = FAKE_COPY, .to = target, .from = source, .size = size};
    return fake_push(stream, &work);
}

static unsigned fill(cuda_address target, unsigned value, size_t count, size_t unit,
                     cuda_stream stream)
{
    EXPECT(is_device(target, count * unit) && target % unit == 0);
    const struct fake_work work = {
        .kind = FAKE_FILL, .to = target, .value = value, .size = count, .unit = unit};
    return fake_push(stream, &work);
}

FAKE(cuMemsetD8Async, cuda_address target, unsigned char value, size_t count, cuda_stream stream)
{
    IN_CONTEXT();
    return fill(target, value, count, 1, stream);
}

FAKE(cuMemsetD32Async, cuda_address target, unsigned value, size_t count, cuda_stream stream)
{
    IN_CONTEXT();
    return fill(target, value, count, 4, stream);
}
