/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/json.h"

#include <jansson.h>
#include <stdio.h>

#include "base/status.h"

static json_t *remark_json(const struct remark *remark)
{
    bool applied = remark->kind == TSSA_REMARK_APPLIED;
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "kind", applied ? "applied" : "missed", "pass",
                     remark->pass, "op", remark->op, "message", remark->message, "times",
                     (json_int_t)remark->times);
}

static json_t *remarks_json(const struct remark_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < list->count; i++) {
        if (json_array_append_new(array, remark_json(&list->remarks[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static void add_function(void *user, const tssa_function_info *info)
{
    json_t **array = user;
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:b}", "domain", info->domain, "name", info->name,
                  "overload", info->overload, "operators", (json_int_t)info->op_count, "calls",
                  (json_int_t)info->calls, "stays", info->stays);
    if (*array && json_array_append_new(*array, row) != 0) {
        json_decref(*array);
        *array = NULL;
    }
}

static json_t *functions_json(const tssa_model *model)
{
    json_t *array = json_array();
    tssa_status *status = tssa_model_functions(model, add_function, &array);
    if (status) {
        tssa_status_free(status);
        json_decref(array);
        return NULL;
    }
    return array;
}

tssa_status *json_print(const struct rewrite *rewrite)
{
    json_t *object = json_object();
    json_t *operators = op_table_json(&rewrite->before, &rewrite->after);
    json_t *functions = functions_json(rewrite->model);
    json_t *remarks = remarks_json(&rewrite->remarks);
    bool made = object && operators && functions && remarks;
    made &= json_object_set_new(object, "model", json_string(rewrite->arguments.model)) == 0;
    made &= json_object_set_new(object, "operators", operators) == 0;
    made &= json_object_set_new(object, "functions", functions) == 0;
    made &= json_object_set_new(object, "remarks", remarks) == 0;
    if (made)
        made = json_dumpf(object, stdout, JSON_INDENT(2)) == 0;
    json_decref(object);
    if (!made)
        return ERROR(TSSA_OUT_OF_MEMORY, "out of memory, or a name is no UTF-8");
    printf("\n");
    return NULL;
}
