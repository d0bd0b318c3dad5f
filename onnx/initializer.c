/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of a model: borrowed from its mapped file where they lie there as memory would hold them.
 */
#include <string.h>

#include "base/dtype.h"
#include "base/file.h"
#include "ir/copies.h"
#include "onnx/import.h"

/* Copies are made in pieces of this size, whose pages are given back one by one: while a large
 * tensor is copied out of a file, it is in memory once. */
#define COPY_PIECE ((size_t)1 << 20)

/* Where tensors come from. */
struct located {
    struct tensor_source source;
    bool mapped; /* the source is a mapped file of ours */
};

static tssa_status *locate(struct import *import, const Onnx__TensorProto *proto,
                           const struct tensor *tensor, struct located *located)
{
    if (proto->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        TRY(onnx_tensor_locate(&import->file, proto, tensor, &located->source));
        located->mapped = import->mapped && located->source.in_file;
        return NULL;
    }
    const char *field = onnx_tensor_data_field(&import->file, proto);
    if (field)
        return ERROR(TSSA_MALFORMED, "it has both external data and %s", field);
    size_t size;
    const void *data;
    if (tensor->dtype == TSSA_STRING)
        return ERROR(TSSA_MALFORMED, "strings cannot be external data");
    if (!dtype_file_bytes(tensor->dtype, tensor_count(tensor), &size))
        return ERROR(TSSA_LIMIT, "its size overflows");
    TRY(external_data(&import->external, proto, size, &data));
    TRY(onnx_tensor_locate_bytes(tensor, data, size, &located->source));
    located->mapped = true;
    return NULL;
}

static void copy_out_of_file(char *to, const char *from, size_t size)
{
    for (size_t done = 0; done < size; done += COPY_PIECE) {
        size_t piece = size - done < COPY_PIECE ? size - done : COPY_PIECE;
        memcpy(to + done, from + done, piece);
        file_map_forget(from + done, piece);
    }
}

/* Memory for elements, without zeroing pages that are about to be filled twice. */
static tssa_status *read_copy(struct import *import, const struct located *located,
                              struct tensor *tensor)
{
    const struct tensor_source *source = &located->source;
    size_t size = tensor_bytes(tensor);
    tensor->data = arena_alloc_aligned(&import->graph->arena, size, TENSOR_ALIGNMENT);
    TRY_ALLOC(tensor->data);
    char *text = NULL;
    if (source->kind == TENSOR_SOURCE_STRINGS) {
        text = arena_alloc_aligned(&import->graph->arena, source->string_size, 1);
        TRY_ALLOC(text);
    }
    bool plain =
        source->kind == TENSOR_SOURCE_BYTES && source->size == size && tensor->dtype != TSSA_BOOL;
    if (plain && located->mapped && size >= COPY_PIECE)
        copy_out_of_file(tensor->data, source->data, size);
    else
        onnx_tensor_read(tensor, source, tensor->data, text);
    if (plain && source->in_file && !ir_copies_add(import->graph, tensor->data, source->data, size))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *import_any(struct import *import, const Onnx__TensorProto *proto,
                               struct tensor *tensor)
{
    struct located located;
    TRY(onnx_tensor_header(proto, tensor));
    TRY(locate(import, proto, tensor, &located));
    if (onnx_tensor_can_borrow(tensor, &located.source)) {
        tensor->data = (void *)located.source.data;
        return NULL;
    }
    return read_copy(import, &located, tensor);
}

/* Tensors in function bodies are read once, however often the function is inlined. */
struct cached_tensor {
    const void *key;
    const struct tensor *tensor;
};

static const struct tensor *recall(const struct import *import, const void *proto)
{
    const struct cached_tensor *cached = map_get(&import->tensors, &proto, sizeof proto);
    return cached ? cached->tensor : NULL;
}

static tssa_status *remember(struct import *import, const void *proto, const struct tensor *tensor)
{
    if (import->inlining == 0)
        return NULL;
    struct cached_tensor *cached = ARENA_NEW(&import->scratch, struct cached_tensor);
    TRY_ALLOC(cached);
    *cached = (struct cached_tensor){proto, tensor};
    if (!map_put(&import->tensors, &cached->key, sizeof cached->key, cached))
        return status_out_of_memory();
    return NULL;
}

tssa_status *import_tensor(struct import *import, const Onnx__TensorProto *proto,
                           const struct tensor **tensor)
{
    *tensor = recall(import, proto);
    if (*tensor)
        return NULL;
    struct tensor *made = ARENA_NEW(&import->graph->arena, struct tensor);
    TRY_ALLOC(made);
    tssa_status *status = import_any(import, proto, made);
    if (status)
        return proto->name && proto->name[0] ? status_prefix(status, "tensor \"%s\"", proto->name)
                                             : status_prefix(status, "tensor");
    *tensor = made;
    return remember(import, proto, made);
}

/* ---- Sparse tensors -------------------------------------------------------------------------- */

/* The place in the dense tensor of entry `i`, whose coordinates are one linear index or one per
 * dim. */
static tssa_status *sparse_place(const struct tensor *dense, const struct tensor *indices, size_t i,
                                 int64_t *place)
{
    const int64_t *data = indices->data;
    *place = 0;
    if (indices->rank == 1) {
        *place = data[i];
        if (*place < 0 || (uint64_t)*place >= tensor_count(dense))
            return ERROR(TSSA_MALFORMED, "index %lld is out of range", (long long)*place);
        return NULL;
    }
    for (int d = 0; d < dense->rank; d++) {
        int64_t at = data[i * (size_t)dense->rank + (size_t)d];
        if (at < 0 || at >= dense->dims[d])
            return ERROR(TSSA_MALFORMED, "index %lld is out of range in dim %d", (long long)at, d);
        *place = *place * dense->dims[d] + at; /* below the count, which was checked */
    }
    return NULL;
}

static tssa_status *sparse_fill(const struct tensor *dense, const struct tensor *values,
                                const struct tensor *indices)
{
    size_t size = tssa_dtype_size(dense->dtype);
    int64_t last = -1;
    for (size_t i = 0; i < tensor_count(values); i++) {
        int64_t place;
        TRY(sparse_place(dense, indices, i, &place));
        if (place <= last)
            return ERROR(TSSA_MALFORMED, "its indices do not ascend");
        last = place;
        memcpy((char *)dense->data + (size_t)place * size, (const char *)values->data + i * size,
               size);
    }
    return NULL;
}

static tssa_status *sparse_check(const Onnx__SparseTensorProto *proto, const struct tensor *values,
                                 const struct tensor *indices)
{
    if (values->rank != 1)
        return ERROR(TSSA_MALFORMED, "its values have rank %d, not 1", values->rank);
    if (indices->dtype != TSSA_INT64)
        return ERROR(TSSA_MALFORMED, "its indices are not INT64");
    bool linear = indices->rank == 1;
    bool coordinates = indices->rank == 2 && (size_t)indices->dims[1] == proto->n_dims;
    if ((!linear && !coordinates) || indices->dims[0] != values->dims[0])
        return ERROR(TSSA_MALFORMED, "its indices do not have the shape of its values");
    return NULL;
}

static tssa_status *densify(struct import *import, const Onnx__SparseTensorProto *proto,
                            const struct tensor **tensor)
{
    if (!proto->values || !proto->indices)
        return ERROR(TSSA_MALFORMED, "it has no %s", proto->values ? "indices" : "values");
    const struct tensor *values, *indices;
    TRY(import_tensor(import, proto->values, &values));
    TRY(import_tensor(import, proto->indices, &indices));
    TRY(sparse_check(proto, values, indices));
    Onnx__TensorProto shape = ONNX__TENSOR_PROTO__INIT;
    shape.data_type = values->dtype;
    shape.dims = proto->dims;
    shape.n_dims = proto->n_dims;
    struct tensor *dense = ARENA_NEW(&import->graph->arena, struct tensor);
    TRY_ALLOC(dense);
    TRY(onnx_tensor_header(&shape, dense));
    size_t size = tensor_bytes(dense);
    if (size > import->dense_left)
        return ERROR(TSSA_LIMIT, "made dense, the model's sparse tensors are too large");
    import->dense_left -= size;
    dense->data = arena_alloc_aligned(&import->graph->arena, size, TENSOR_ALIGNMENT);
    TRY_ALLOC(dense->data);
    TRY(sparse_fill(dense, values, indices));
    *tensor = dense;
    return NULL;
}

tssa_status *import_sparse(struct import *import, const Onnx__SparseTensorProto *proto,
                           const struct tensor **tensor)
{
    *tensor = recall(import, proto);
    if (*tensor)
        return NULL;
    tssa_status *status = densify(import, proto, tensor);
    if (!status)
        return remember(import, proto, *tensor);
    const char *name = proto->values && proto->values->name ? proto->values->name : "";
    return status_prefix(status, "sparse tensor \"%s\"", name);
}
