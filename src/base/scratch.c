/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"

/* In the first cache line of what is taken. */
struct scratch_block {
    /* of two references, one of them nobody's: who releases it frees nothing */
    struct buffer buffer;
    struct scratch_block *below;
};
_Static_assert(sizeof(struct scratch_block) <= TENSOR_ALIGNMENT, "a block's header fills one line");

static bool is_released(const struct scratch_block *block)
{
    return atomic_load_explicit(&block->buffer.references, memory_order_acquire) == 1;
}

/* Where the next one may begin. */
static size_t top_end(const struct step_scratch *scratch, struct scratch_use *use)
{
    while (use->top && is_released(use->top))
        use->top = use->top->below;
    if (!use->top)
        return 0;
    const struct buffer *top = &use->top->buffer;
    return (size_t)((char *)top->data - (char *)scratch->memory) + top->size;
}

static void note(struct step_scratch *scratch, size_t most)
{
    if (most > scratch->most)
        scratch->most = most;
    if (most > scratch->size)
        *scratch->missed = true;
}

static struct buffer *take_here(const struct step_scratch *scratch, struct scratch_use *use,
                                size_t begin, size_t end)
{
    struct scratch_block *block = (struct scratch_block *)((char *)scratch->memory + begin);
    atomic_init(&block->buffer.references, 2);
    block->buffer.data = (char *)block + TENSOR_ALIGNMENT;
    block->buffer.offset = 0;
    block->buffer.size = end - begin - TENSOR_ALIGNMENT;
    block->buffer.allocator = NULL;
    block->buffer.space = NULL;
    block->buffer.pool = NULL;
    block->below = use->top;
    use->top = block;
    return &block->buffer;
}

/* Outputs that come from the pool as well count here: the next run, which finds enough, tells
 * better. */
static struct buffer *take_from_pool(struct step_scratch *scratch, struct scratch_use *use,
                                     struct pool *pool, size_t begin, size_t size)
{
    if (!use->pooled) {
        use->pooled = true;
        use->pool_bytes = pool->used_bytes;
    }
    struct buffer *buffer = pool_alloc(pool, size);
    if (buffer && pool->used_bytes > use->pool_bytes)
        note(scratch, begin + TENSOR_ALIGNMENT + (pool->used_bytes - use->pool_bytes));
    return buffer;
}

/* Of a buffer that begins there; false: there is no such memory. */
static bool end_of(size_t begin, size_t size, size_t *end)
{
    if (!size_add(size, begin + 2 * TENSOR_ALIGNMENT - 1, end))
        return false;
    *end = *end / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
    return true;
}

void scratch_expect(struct step_scratch *scratch, size_t size)
{
    size_t end;
    if (scratch && size && end_of(0, size, &end) && end > scratch->most)
        scratch->most = end;
}

struct buffer *scratch_take(struct step_scratch *scratch, struct scratch_use *use,
                            struct pool *pool, size_t size)
{
    size_t end;
    if (!scratch || !scratch->missed)
        return pool_alloc(pool, size);
    const size_t begin = top_end(scratch, use);
    if (!end_of(begin, size, &end))
        return NULL;
    if (end > scratch->size)
        return take_from_pool(scratch, use, pool, begin, size);
    note(scratch, end);
    return take_here(scratch, use, begin, end);
}
