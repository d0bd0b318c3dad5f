/* SPDX-License-Identifier: Apache-2.0 */
/* The op table, from the rows of ops.def. */
#include "ir/ops.h"

#include <string.h>

#include "ir/ew_table.h"
#include "ir/infer.h"
#include "ir/reduction.h"
#include "ir/rule_draft.h"

#define ONNX ""
#define ONNX_ML "ai.onnx.ml"
#define TSSA "tssa"
#define V(...) ((const uint8_t[]){__VA_ARGS__, 0})

/* What rows name; repeated declarations are harmless. */
#define OP(id, domain, name, versions, min_in, max_in, min_out, max_out, cls, flags, types, infer, \
           kernel)                                                                                 \
    INFER_RULE_DECLARED(infer);
#define MOVE(id, domain, name, versions, min_in, max_in, min_out, max_out, cls, flags, types,      \
             infer, kernel, rule)                                                                  \
    INFER_RULE_DECLARED(infer);                                                                    \
    MOVEMENT_DECLARED(rule);
#define EW(...)
#include "ir/ops.def"
#undef OP
#undef MOVE
#undef EW
INFER_RULE_DECLARED(elementwise);

/* The ids that were read from the files of the table are its rows, in their order. */
enum {
#define OP(id, ...) ROW_##id,
#define EW(id, ...) ROW_##id,
#include "ir/ops.def"
#undef OP
#undef EW
    ROW_COUNT
};
#define OP(id, ...) _Static_assert((int)ROW_##id == (int)IR_OP_##id, #id);
#define EW(id, ...) _Static_assert((int)ROW_##id == (int)IR_OP_##id, #id);
#include "ir/ops.def"
#undef OP
#undef EW
_Static_assert((int)ROW_COUNT == (int)IR_OP_COUNT, "all rows have ids");

static const struct ir_op_info op_table[IR_OP_COUNT] = {
#define ROW(id_, domain_, name_, versions_, min_in, max_in, min_out, max_out, class_, flags_,      \
            types_, inference_, ew_, reduction_, rule_)                                            \
    [IR_OP_##id_] = {.id = IR_OP_##id_,                                                            \
                     .domain = domain_,                                                            \
                     .name = name_,                                                                \
                     .versions = versions_,                                                        \
                     .min_operands = min_in,                                                       \
                     .max_operands = max_in,                                                       \
                     .min_results = min_out,                                                       \
                     .max_results = max_out,                                                       \
                     .cls = IR_CLASS_##class_,                                                     \
                     .flags = flags_,                                                              \
                     .types = types_,                                                              \
                     .infer = infer_##inference_,                                                  \
                     .ew = ew_,                                                                    \
                     .reduction = reduction_,                                                      \
                     .rule = rule_},
#define OP(id_, domain_, name_, versions_, min_in, max_in, min_out, max_out, class_, flags_,       \
           types_, inference_, kernel_)                                                            \
    ROW(id_, domain_, name_, versions_, min_in, max_in, min_out, max_out, class_, flags_, types_,  \
        inference_, NULL, NULL, NULL)
#define MOVE(id_, domain_, name_, versions_, min_in, max_in, min_out, max_out, class_, flags_,     \
             types_, inference_, kernel_, rule_)                                                   \
    ROW(id_, domain_, name_, versions_, min_in, max_in, min_out, max_out, class_,                  \
        (flags_) | IR_MOVES, types_, inference_, NULL, NULL, movement_##rule_)
#define REDUCE(row_, versions_, types_)                                                            \
    ROW(Reduce##row_, ONNX, "Reduce" #row_, versions_, 1, 2, 1, 1, REDUCTION, IR_PURE, types_,     \
        reduce, NULL, &reduction_table[REDUCTION_##row_], NULL)
#define EW(id_, versions_, min_in, max_in, types_, result_, params_, expression_)                  \
    ROW(id_, ONNX, #id_, versions_, min_in, max_in, 1, 1, ELEMENTWISE, IR_PURE, types_,            \
        elementwise, &ew_table[EW_INDEX_##id_], NULL, NULL)
#include "ir/ops.def"
#undef OP
#undef MOVE
#undef REDUCE
#undef EW
};

const struct ir_op_info *ir_op_info(enum ir_op_id id)
{
    return &op_table[id];
}

const struct ir_op_info *ir_op_lookup(const char *domain, const char *name)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (size_t i = 0; i < IR_OP_COUNT; i++)
        if (strcmp(op_table[i].name, name) == 0 && strcmp(op_table[i].domain, domain) == 0)
            return &op_table[i];
    return NULL;
}

bool ir_op_default_axis(const struct ir_op_info *info, int version, int *axis)
{
    uint32_t before = info->flags >> 16 & 0xff, now = info->flags >> 8 & 15,
             then = info->flags >> 12 & 15;
    *axis = now ? (int)(version && version < (int)before ? then : now) - IR_AXIS_BIAS : 0;
    return now != 0;
}

int ir_op_bind(const struct ir_op_info *info, int64_t opset)
{
    int bound = 0;
    for (const uint8_t *v = info->versions; *v != 0 && *v <= opset; v++)
        bound = *v;
    return bound;
}
