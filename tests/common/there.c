/* SPDX-License-Identifier: Apache-2.0 */
#include "common/there.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/no_error.h"
#include "common/xmalloc.h"

void *there_memory(const struct there *t, size_t index)
{
    return (char *)t->memory[index] + t->offset;
}

void there_open(struct there *t, tssa_context *context, struct device_context *device,
                tssa_value *const *values, size_t n, size_t offset)
{
    *t = (struct there){.n = n,
                        .offset = offset,
                        .values = xcalloc(n + 1, sizeof *t->values),
                        .memory = xcalloc(n + 1, sizeof *t->memory),
                        .sizes = xcalloc(n + 1, sizeof *t->sizes)};
    no_error(device->device->stream_open(device, &t->stream));
    for (size_t i = 0; i < n; i++) {
        const struct value *value = values[i] ? &values[i]->value : NULL;
        if (!value || value->kind != TSSA_KIND_TENSOR || value->tensor.dtype == TSSA_STRING)
            continue;
        const struct tensor *tensor = &value->tensor;
        t->sizes[i] = tensor_bytes(tensor);
        t->memory[i] = device->device->allocate(t->stream, offset + t->sizes[i]);
        assert_non_null(t->memory[i]);
        no_error(tssa_tensor_borrow_on(context, "cuda", tensor->dtype, tensor->rank, tensor->dims,
                                       there_memory(t, i), t->sizes[i], &t->values[i]));
        assert_string_equal(tssa_value_device(t->values[i]), "cuda");
    }
}

void there_close(struct there *t)
{
    const struct device *device = t->stream->context->device;
    for (size_t i = 0; i < t->n; i++) {
        tssa_value_free(t->values[i]);
        device->release(t->stream, t->memory[i], t->offset + t->sizes[i]);
    }
    device->stream_close(t->stream);
    free(t->values);
    free(t->memory);
    free(t->sizes);
}

static void copy(const struct there *t, size_t i, void *here, enum device_copy kind)
{
    const struct device_place host = {here, 0}, away = {t->memory[i], t->offset};
    const bool in = kind == DEVICE_COPY_IN;
    no_error(t->stream->context->device->copy(t->stream, kind, in ? away : host, in ? host : away,
                                              t->sizes[i]));
}

void there_copy(const struct there *t, tssa_value *const *values, enum device_copy kind)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->values[i])
            copy(t, i, values[i]->value.tensor.data, kind);
    no_error(t->stream->context->device->stream_wait(t->stream));
}

void there_fill(const struct there *t, unsigned char byte)
{
    const struct device *device = t->stream->context->device;
    for (size_t i = 0; i < t->n; i++)
        if (t->values[i])
            no_error(device->fill(t->stream, (struct device_place){t->memory[i], t->offset}, byte,
                                  t->sizes[i]));
    no_error(device->stream_wait(t->stream));
}

/* What tensor i has there. */
static unsigned char *fetch(const struct there *t, size_t i)
{
    unsigned char *bytes = xcalloc(t->sizes[i] + 1, 1);
    copy(t, i, bytes, DEVICE_COPY_OUT);
    return bytes;
}

bool there_is_filled(const struct there *t, unsigned char byte)
{
    bool filled = true;
    for (size_t i = 0; i < t->n; i++) {
        if (!t->values[i])
            continue;
        unsigned char *bytes = fetch(t, i);
        for (size_t k = 0; k < t->sizes[i]; k++)
            filled &= bytes[k] == byte;
        free(bytes);
    }
    return filled;
}

bool there_is(const struct there *t, tssa_value *const *values)
{
    bool same = true;
    for (size_t i = 0; i < t->n; i++) {
        if (!t->values[i])
            continue;
        unsigned char *bytes = fetch(t, i);
        same &= memcmp(bytes, values[i]->value.tensor.data, t->sizes[i]) == 0;
        free(bytes);
    }
    return same;
}
