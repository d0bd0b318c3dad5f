/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the detections among the outputs, and printing them. */
#include <inttypes.h>
#include <stdio.h>

#include "api/handles.h"
#include "base/dtype.h"
#include "tools/run/summary.h"

#define BOX_COLUMNS 5

static bool is_boxes(const struct value *value)
{
    return value->kind == TSSA_KIND_TENSOR && dtype_is_float(value->tensor.dtype) &&
           value->tensor.rank == 2 && value->tensor.dims[1] == BOX_COLUMNS;
}

static bool is_labels(const struct value *value, int64_t count)
{
    return value->kind == TSSA_KIND_TENSOR && dtype_is_integer(value->tensor.dtype) &&
           value->tensor.rank == 1 && value->tensor.dims[0] == count;
}

/* Whether the two are boxes and their labels, or sequences of such. */
static bool are_pair(const struct value *boxes, const struct value *labels)
{
    if (boxes->kind != TSSA_KIND_SEQUENCE || labels->kind != TSSA_KIND_SEQUENCE)
        return is_boxes(boxes) && is_labels(labels, boxes->tensor.dims[0]);
    size_t length = sequence_length(boxes->sequence);
    if (!length || length != sequence_length(labels->sequence))
        return false;
    for (size_t i = 0; i < length; i++) {
        const struct value *box = sequence_element(boxes->sequence, i);
        if (!is_boxes(box) ||
            !is_labels(sequence_element(labels->sequence, i), box->tensor.dims[0]))
            return false;
    }
    return true;
}

static void print_table(const struct tensor *boxes, const struct tensor *labels)
{
    size_t size = dtype_info(boxes->dtype)->size, label_size = dtype_info(labels->dtype)->size;
    printf("%4s %6s %7s %9s %9s %9s %9s\n", "", "label", "score", "x1", "y1", "x2", "y2");
    for (int64_t i = 0; i < boxes->dims[0]; i++) {
        double row[BOX_COLUMNS];
        for (int k = 0; k < BOX_COLUMNS; k++)
            row[k] =
                dtype_load_double(boxes->dtype, (const char *)boxes->data +
                                                    ((size_t)i * BOX_COLUMNS + (size_t)k) * size);
        int64_t label =
            dtype_load_int64(labels->dtype, (const char *)labels->data + (size_t)i * label_size);
        printf("%4" PRId64 " %6" PRId64 " %7.3f %9.2f %9.2f %9.2f %9.2f\n", i + 1, label, row[4],
               row[0], row[1], row[2], row[3]);
    }
    printf("%" PRId64 " detection%s\n", boxes->dims[0], boxes->dims[0] == 1 ? "" : "s");
}

bool summary_boxes(size_t count, tssa_value *const *outputs)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            const struct value *boxes = &outputs[i]->value, *labels = &outputs[k]->value;
            if (i == k || !are_pair(boxes, labels))
                continue;
            if (boxes->kind == TSSA_KIND_TENSOR) {
                print_table(&boxes->tensor, &labels->tensor);
                return true;
            }
            for (size_t n = 0; n < sequence_length(boxes->sequence); n++) {
                printf("image %zu\n", n);
                print_table(&sequence_element(boxes->sequence, n)->tensor,
                            &sequence_element(labels->sequence, n)->tensor);
            }
            return true;
        }
    }
    return false;
}
