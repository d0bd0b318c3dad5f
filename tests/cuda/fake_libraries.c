/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcublasLt.so.13 and libcudnn.so.9 for tests of cuda_probe. They do what their callers can see
 * of the order of things: a product or a convolution fills (the first elements of) its result with
 * ones. cuDNN proposes two engines, the first of which says that it uses tensor cores.
 */
#include <stdio.h>
#include <string.h>

#include "tests/cuda/fake.h"

enum { ONE = 0x3f800000 };

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

struct layout {
    uint64_t rows, columns;
};

EXPORT const char *cublasLtGetStatusName(unsigned result);
const char *cublasLtGetStatusName(unsigned result)
{
    return result ? "CUBLAS_STATUS_FAKE" : "CUBLAS_STATUS_SUCCESS";
}

FAKE(cublasLtCreate, void **handle)
{
    PLANNED();
    *handle = fake_hold(1);
    return FAKE_OK;
}

FAKE(cublasLtMatmulDescCreate, void **description, unsigned compute, unsigned scale)
{
    (void)compute;
    (void)scale;
    *description = fake_hold(1);
    return FAKE_OK;
}

FAKE(cublasLtMatrixLayoutCreate, void **layout, unsigned type, uint64_t rows, uint64_t columns,
     int64_t leading)
{
    EXPECT(type == 0 && leading == (int64_t)rows);
    struct layout *made = fake_hold(sizeof *made);
    *made = (struct layout){rows, columns};
    *layout = made;
    return FAKE_OK;
}

FAKE(cublasLtMatmul, void *handle, void *description, const void *alpha, const void *a,
     const struct layout *a_layout, const void *b, const struct layout *b_layout, const void *beta,
     const void *c, const struct layout *c_layout, void *d, const struct layout *d_layout,
     const void *algorithm, void *workspace, size_t size, cuda_stream stream)
{
    PLANNED();
    EXPECT(handle && description && alpha && beta && a && b && !algorithm && workspace && size);
    EXPECT(c == d && c_layout == d_layout);
    EXPECT(a_layout->columns == b_layout->rows && a_layout->rows == c_layout->rows);
    return cuMemsetD32Async((cuda_address)d, ONE, c_layout->rows * c_layout->columns, stream);
}

/* ---- cuDNN ----------------------------------------------------------------------------------- */

enum {
#define CUDNN_VALUE(ours, theirs, value) DNN_##ours = (value),
#include "device/cuda/cudnn_values.def"
#undef CUDNN_VALUE
};

struct descriptor {
    unsigned kind;
    int finalized;
    int64_t index;     /* of a config or an engine */
    void *pointers[3]; /* of a variant pack */
};

struct handle {
    cuda_stream stream;
};

EXPORT size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
    return 91900;
}

EXPORT const char *cudnnGetErrorString(unsigned result);
const char *cudnnGetErrorString(unsigned result)
{
    return result ? "CUDNN_STATUS_FAKE" : "CUDNN_STATUS_SUCCESS";
}

FAKE(cudnnCreate, struct handle **handle)
{
    PLANNED();
    *handle = fake_hold(sizeof **handle);
    return FAKE_OK;
}

FAKE(cudnnSetStream, struct handle *handle, cuda_stream stream)
{
    handle->stream = stream;
    return FAKE_OK;
}

FAKE(cudnnBackendCreateDescriptor, unsigned kind, struct descriptor **descriptor)
{
    *descriptor = fake_hold(sizeof **descriptor);
    (*descriptor)->kind = kind;
    return FAKE_OK;
}

FAKE(cudnnBackendFinalize, struct descriptor *descriptor)
{
    PLANNED();
    EXPECT(!descriptor->finalized);
    descriptor->finalized = 1;
    return FAKE_OK;
}

FAKE(cudnnBackendSetAttribute, struct descriptor *descriptor, unsigned name, unsigned type,
     int64_t count, const void *values)
{
    (void)type;
    EXPECT(!descriptor->finalized && count > 0 && values);
    if (name == DNN_PACK_POINTERS)
        memcpy(descriptor->pointers, values, sizeof descriptor->pointers);
    return FAKE_OK;
}

/* The values of an attribute: how many there are, and those for which there is room. */
static int64_t get(const struct descriptor *descriptor, unsigned name, int64_t room, void *values)
{
    static const char json[] = "{\"deviceName\": \"Fake card\"}";
    struct descriptor **descriptors = values;
    switch (name) {
    case DNN_HEURISTIC_RESULTS:
        for (int64_t i = 0; i < 2 && i < room; i++)
            descriptors[i]->index = i;
        return room < 2 ? room : 2;
    case DNN_CONFIG_ENGINE:
        descriptors[0]->index = descriptor->index;
        return 1;
    case DNN_ENGINE_INDEX:
        *(int64_t *)values = descriptor->index;
        return 1;
    case DNN_ENGINE_NUMERICAL_NOTE:
        *(unsigned *)values = DNN_NOTE_TENSOR_CORE;
        return descriptor->index == 0;
    case DNN_PLAN_WORKSPACE:
        *(int64_t *)values = 0;
        return 1;
    case DNN_DEVICEPROP_JSON:
        snprintf(values, (size_t)room, "%s", json);
        return sizeof json;
    default:
        return 0;
    }
}

FAKE(cudnnBackendGetAttribute, const struct descriptor *descriptor, unsigned name, unsigned type,
     int64_t room, int64_t *count, void *values)
{
    (void)type;
    PLANNED();
    *count = get(descriptor, name, room, values);
    return FAKE_OK;
}

FAKE(cudnnBackendExecute, struct handle *handle, const struct descriptor *plan,
     const struct descriptor *pack)
{
    PLANNED();
    EXPECT(plan->kind == DNN_PLAN && plan->finalized && pack->kind == DNN_PACK && pack->finalized);
    return cuMemsetD32Async((cuda_address)pack->pointers[2], ONE, 16, handle->stream);
}
