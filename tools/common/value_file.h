/* SPDX-License-Identifier: Apache-2.0 */
/* Values in files: .pb (TensorProto, SequenceProto, OptionalProto) and .npy, by their names. */
#ifndef TSSA_TOOLS_VALUE_FILE_H
#define TSSA_TOOLS_VALUE_FILE_H

#include "base/value.h"
#include "onnx/tensor_proto.h"

/* What the model says about an input or output, for a file that does not say it itself. */
struct onnx_value_type value_file_type(const tssa_value_info *info);

/* The value owns its memory. Errors start with the path. */
tssa_status *value_file_read(const tssa_allocator *allocator, const char *path,
                             const struct onnx_value_type *type, struct value *value);

/* As .pb, which holds every kind of value. Errors start with the path. */
tssa_status *value_file_write(const tssa_allocator *allocator, const char *path,
                              const struct value *value, const tssa_value_info *info);

/*
 * Value number `index` of a data set, found under the first of these names that there is:
 * FOLDER/PREFIX_K.pb, FOLDER/PREFIX_K.npy, and FOLDER/PREFIX_K_0.npy, PREFIX_K_1.npy, ... for a
 * sequence. *found is false when there is none.
 */
tssa_status *data_set_read(const tssa_allocator *allocator, const char *folder, const char *prefix,
                           size_t index, const struct onnx_value_type *type, bool *found,
                           struct value *value);

#endif
