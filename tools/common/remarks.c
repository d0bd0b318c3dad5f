/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/remarks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/status.h"

static void release(struct remark *remark)
{
    free(remark->pass);
    free(remark->op);
    free(remark->message);
}

void remarks_free(struct remark_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        release(&list->remarks[i]);
    free(list->remarks);
    *list = (struct remark_list){0};
}

static bool make_room(struct remark_list *list)
{
    if (list->count < list->capacity)
        return true;
    size_t capacity = list->capacity ? 2 * list->capacity : 64;
    struct remark *more = reallocarray(list->remarks, capacity, sizeof *more);
    if (!more)
        return false;
    list->remarks = more;
    list->capacity = capacity;
    return true;
}

void remarks_add(void *user, const tssa_remark *remark)
{
    struct remark_list *list = user;
    struct remark copy = {.kind = remark->kind,
                          .pass = strdup(remark->pass),
                          .op = strdup(remark->op),
                          .message = strdup(remark->message),
                          .times = 1};
    if (!copy.pass || !copy.op || !copy.message || !make_room(list)) {
        list->failed = true;
        release(&copy);
        return;
    }
    list->remarks[list->count++] = copy;
}

/* Keeps those that `keep` wants. */
static void filter(struct remark_list *list, size_t end,
                   bool (*keep)(const void *context, const struct remark *remark),
                   const void *context)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (i >= end || keep(context, &list->remarks[i]))
            list->remarks[kept++] = list->remarks[i];
        else
            release(&list->remarks[i]);
    }
    list->count = kept;
}

static bool is_not_older_of(const void *pass, const struct remark *remark)
{
    return remark->kind == TSSA_REMARK_APPLIED || strcmp(remark->pass, pass) != 0;
}

void remarks_pass_done(struct remark_list *list, const char *pass)
{
    filter(list, list->run, is_not_older_of, pass);
    list->run = list->count;
}

/* ---- What is still there --------------------------------------------------------------------- */

struct present {
    struct map ops; /* descriptions of loops and branches; keys are owned */
    bool failed;
};

static void note_present(void *user, const tssa_control_info *info)
{
    struct present *present = user;
    char *op = strdup(info->op);
    if (op && map_get_str(&present->ops, op))
        free(op);
    else if (!op || !map_put_str(&present->ops, op, op))
        present->failed = true;
}

static bool is_about_control_flow(const char *op)
{
    static const char *const names[] = {"Loop (", "If (", "Scan (", "SequenceMap ("};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(op, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool is_true_still(const void *context, const struct remark *remark)
{
    const struct map *present = context;
    return remark->kind == TSSA_REMARK_APPLIED || !is_about_control_flow(remark->op) ||
           map_get_str(present, remark->op);
}

/* ---- What is said again ---------------------------------------------------------------------- */

static bool is_told(const void *unused, const struct remark *remark)
{
    (void)unused;
    return remark->times > 0;
}

/* Counts a remark with the first one that says the same. `seen` owns its keys. */
static bool count_equal(struct map *seen, struct remark *remark)
{
    char *key;
    if (asprintf(&key, "%d\n%s\n%s\n%s", (int)remark->kind, remark->pass, remark->op,
                 remark->message) < 0)
        return false;
    struct remark *first = map_get_str(seen, key);
    if (!first && map_put_str(seen, key, remark))
        return true;
    free(key);
    if (!first)
        return false;
    first->times += remark->times;
    remark->times = 0;
    return true;
}

static bool merge_equal(struct remark_list *list)
{
    struct map seen;
    bool good = true;
    map_init(&seen, &allocator_default);
    for (size_t i = 0; i < list->count && good; i++)
        good = count_equal(&seen, &list->remarks[i]);
    for (const struct map_entry *e = map_next(&seen, NULL); e; e = map_next(&seen, e))
        free((void *)e->key);
    map_free(&seen);
    filter(list, list->count, is_told, NULL);
    return good;
}

tssa_status *remarks_settle(struct remark_list *list, const tssa_model *model)
{
    struct present present = {.failed = false};
    map_init(&present.ops, &allocator_default);
    tssa_status *status = tssa_model_control_flow(model, note_present, &present);
    if (!status && (present.failed || list->failed))
        status = status_out_of_memory();
    if (!status)
        filter(list, list->count, is_true_still, &present.ops);
    if (!status && !merge_equal(list))
        status = status_out_of_memory();
    for (const struct map_entry *e = map_next(&present.ops, NULL); e; e = map_next(&present.ops, e))
        free(e->value);
    map_free(&present.ops);
    return status;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static bool is_of_kernel(const struct remark *remark)
{
    return strcmp(remark->pass, "gir") == 0;
}

static bool tells_of_kernels(const void *unused, const struct remark *remark)
{
    (void)unused;
    return is_of_kernel(remark) ||
           (remark->kind == TSSA_REMARK_MISSED && strcmp(remark->pass, "fuse") == 0);
}

static bool tells_no_estimate(const void *unused, const struct remark *remark)
{
    (void)unused;
    return !is_of_kernel(remark);
}

void remarks_keep_kernels(struct remark_list *list)
{
    filter(list, list->count, tells_of_kernels, NULL);
}

void remarks_drop_kernels(struct remark_list *list)
{
    filter(list, list->count, tells_no_estimate, NULL);
}

static bool tells_of_layouts(const void *unused, const struct remark *remark)
{
    static const char *const passes[] = {"widen_convs", "channels_last", "lay_out_convs",
                                         "append_to_convs", "winograd_convs"};
    (void)unused;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (strcmp(remark->pass, passes[i]) == 0)
            return true;
    return false;
}

void remarks_keep_layouts(struct remark_list *list)
{
    filter(list, list->count, tells_of_layouts, NULL);
}

/* ---- Printing -------------------------------------------------------------------------------- */

static void print_times(const struct remark *remark)
{
    if (remark->times > 1)
        printf(" (%zu times)", remark->times);
    printf("\n");
}

/* Returns how many there are. */
static size_t print_kind(const struct remark_list *list, tssa_remark_kind kind, const char *title)
{
    size_t printed = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct remark *remark = &list->remarks[i];
        if (remark->kind != kind)
            continue;
        if (!printed++)
            printf("%s\n", title);
        printf("  [%s] %s: %s", remark->pass, remark->op, remark->message);
        print_times(remark);
    }
    return printed;
}

static void print_both(const struct remark_list *list, const char *applied, const char *missed)
{
    size_t printed = print_kind(list, TSSA_REMARK_APPLIED, applied);
    printed += print_kind(list, TSSA_REMARK_MISSED, missed);
    if (!printed)
        printf("no remarks\n");
}

void remarks_print(const struct remark_list *list)
{
    print_both(list, "what was rewritten", "what stays, and why");
}

void remarks_print_kernels(const struct remark_list *list)
{
    print_both(list, "what is computed in one", "what is not in one with others, and why");
}

void remarks_print_missed(const struct remark_list *list, const char *op, int indent)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct remark *remark = &list->remarks[i];
        if (remark->kind == TSSA_REMARK_MISSED && strcmp(remark->op, op) == 0) {
            printf("%*s[%s] %s", indent, "", remark->pass, remark->message);
            print_times(remark);
        }
    }
}
