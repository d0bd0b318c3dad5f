/* SPDX-License-Identifier: Apache-2.0 */
/* The operator sets that a model or a function imports, and what their operators are here. */
#include <string.h>

#include "onnx/import.h"

/* Operator sets that a model or function may import: they are searched one by one. */
#define MAX_OPSETS 1000

/* Upgrades of operator sets below this one need to know types (Clip, Pad and broadcasting). */
#define EAGER_BELOW 11

const char *import_domain(const char *domain)
{
    return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static tssa_status *add_opset(const Onnx__OperatorSetIdProto *proto, struct opset *data,
                              size_t *count)
{
    const char *domain = import_domain(proto->domain);
    const char *shown = domain[0] ? domain : "ai.onnx";
    if (!proto->has_version || proto->version < 1)
        return ERROR(TSSA_MALFORMED, "operator set %lld of domain \"%s\" does not exist",
                     (long long)proto->version, shown);
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(data[i].domain, domain) != 0)
            continue;
        if (data[i].version == proto->version)
            return NULL;
        return ERROR(TSSA_MALFORMED, "operator sets %lld and %lld of domain \"%s\" are imported",
                     (long long)data[i].version, (long long)proto->version, shown);
    }
    data[(*count)++] = (struct opset){domain, proto->version};
    return NULL;
}

tssa_status *import_opsets(struct import *import, Onnx__OperatorSetIdProto *const *protos,
                           size_t count, struct opset_list *list)
{
    if (count > MAX_OPSETS)
        return ERROR(TSSA_LIMIT, "more than %d operator sets are imported", MAX_OPSETS);
    struct opset *data = ARENA_ARRAY(&import->scratch, struct opset, count);
    TRY_ALLOC(data);
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        TRY(add_opset(protos[i], data, &n));
    for (size_t i = 0; i < n; i++)
        if (!data[i].domain[0] && data[i].version < EAGER_BELOW)
            import->eager = true;
    *list = (struct opset_list){data, n};
    return NULL;
}

int64_t import_opset(const struct import *import, const struct opset_list *opsets,
                     const char *domain)
{
    for (size_t i = 0; i < opsets->count; i++)
        if (strcmp(opsets->data[i].domain, domain) == 0)
            return opsets->data[i].version;
    /* Before IR 3 there was one operator set. */
    return import->model->ir_version < 3 ? 1 : 0;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static int64_t newest_opset(const char *domain)
{
    return !domain[0]                          ? IR_NEWEST_OPSET
           : strcmp(domain, "ai.onnx.ml") == 0 ? IR_NEWEST_ML_OPSET
                                               : 1;
}

/* The row of the op table; the one of opaque ops where tssa has none. */
static tssa_status *find_info(struct import *import, const char *domain, const char *name,
                              const struct ir_op_info **info)
{
    const struct ir_op_info *opaque = ir_op_info(IR_OP_opaque);
    *info = opaque;
    if (strcmp(domain, opaque->domain) == 0) /* not ONNX's: models cannot name these */
        return NULL;
    if (domain[0]) {
        const struct ir_op_info *found = ir_op_lookup(domain, name);
        *info = found ? found : opaque;
        return NULL;
    }
    *info = map_get_str(&import->operators, name);
    if (*info)
        return NULL;
    *info = ir_op_lookup(domain, name);
    if (!*info)
        *info = opaque;
    if (!map_put_str(&import->operators, name, (void *)*info))
        return status_out_of_memory();
    return NULL;
}

tssa_status *import_bind(struct import *import, const char *domain, const char *name, int64_t opset,
                         const struct ir_op_info **info, int *version)
{
    int replaced = 0;
    *version = 0;
    *info = ir_op_info(IR_OP_opaque);
    if (opset > newest_opset(domain))
        return NULL;
    const char *replacement = domain[0] ? NULL : upgrade_replaced(name, opset, &replaced);
    TRY(find_info(import, domain, replacement ? replacement : name, info));
    if ((*info)->id == IR_OP_opaque)
        return NULL;
    *version = replacement ? replaced : ir_op_bind(*info, opset);
    if (*version == 0) /* the operator is younger than the opset */
        *info = ir_op_info(IR_OP_opaque);
    return NULL;
}
