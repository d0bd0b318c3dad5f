/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/targets.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What a name is -------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* FOLDER/NAME; NULL when memory runs out. */
static char *join(const char *folder, const char *name)
{
    char *path;
    const char *slash = ends_with(folder, "/") ? "" : "/";
    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

/* The model in a folder, to be freed; NULL: there is none, or no memory. */
static char *model_in(const char *folder)
{
    char *path = is_folder(folder) ? join(folder, "model.onnx") : NULL;
    if (path && access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* ---- Targets --------------------------------------------------------------------------------- */

static bool add_data_set(struct target *target, char *path)
{
    char **more = reallocarray(target->data_sets, target->data_set_count + 1, sizeof *more);
    if (!more || !path) {
        target->data_sets = more ? more : target->data_sets;
        free(path);
        return false;
    }
    target->data_sets = more;
    more[target->data_set_count++] = path;
    return true;
}

static int is_recorded(const struct dirent *entry)
{
    return strncmp(entry->d_name, "test_data_set_", sizeof "test_data_set_" - 1) == 0;
}

static void drop_data_sets(struct target *target)
{
    for (size_t i = 0; i < target->data_set_count; i++)
        free(target->data_sets[i]);
    target->data_set_count = 0;
    target->found = false;
}

/* In the order of their numbers. */
static bool add_recorded(struct target *target, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_recorded, versionsort);
    bool good = true;
    for (int i = 0; i < count; i++) {
        char *path = join(folder, entries[i]->d_name);
        if (path && !is_folder(path))
            free(path);
        else
            good &= add_data_set(target, path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return good;
}

/* NULL when memory runs out. */
static struct target *add_target(struct targets *targets, const char *name, int level)
{
    struct target *more = reallocarray(targets->items, targets->count + 1, sizeof *more);
    if (!more)
        return NULL;
    targets->items = more;
    char *path = model_in(name);
    struct target target = {
        .name = strdup(name), .path = path ? path : strdup(name), .level = level, .found = path};
    bool good = target.name && target.path && (!path || add_recorded(&target, name));
    more[targets->count++] = target;
    return good ? &more[targets->count - 1] : NULL;
}

static enum exit_code no_memory(void)
{
    complain("out of memory");
    return EXIT_RUN;
}

static enum exit_code add_name(struct targets *targets, const char *name, int level)
{
    if (!name[0]) {
        complain("the name of a file is empty");
        return EXIT_USAGE;
    }
    struct target *last = targets->count ? &targets->items[targets->count - 1] : NULL;
    bool folder = is_folder(name);
    char *model = folder ? model_in(name) : NULL;
    bool is_data_set = folder && !model;
    free(model);
    if (is_data_set && !last) {
        complain("%s: a folder without a model.onnx in it", name);
        return EXIT_MODEL;
    }
    if (is_data_set && last->found)
        drop_data_sets(last);
    if (is_data_set)
        return add_data_set(last, strdup(name)) ? EXIT_OK : no_memory();
    if (last && access(name, F_OK) != 0 && strcmp(name, "-") != 0 && !ends_with(name, ".onnx") &&
        !ends_with(name, ".tir")) {
        complain("%s: there is no such data set or model", name);
        return EXIT_FILE;
    }
    return add_target(targets, name, level) ? EXIT_OK : no_memory();
}

/* "O0": 0, ...; -1: it is a model. */
static int level_of(const char *baseline)
{
    bool level = baseline[0] == 'O' && baseline[1] >= '0' && baseline[1] <= '2' && !baseline[2];
    return level ? baseline[1] - '0' : -1;
}

/* The baseline goes before the others. A level is one of the first model, with its data sets. */
static enum exit_code add_baseline(const struct bench_arguments *arguments, struct targets *targets)
{
    int level = level_of(arguments->baseline), own = arguments->common.level;
    const char *name = level < 0 ? arguments->baseline : targets->items[0].name;
    if (level == own) {
        complain("--baseline %s: that is the level of the model already", arguments->baseline);
        return EXIT_USAGE;
    }
    struct target *added = add_target(targets, name, level < 0 ? own : level);
    if (!added)
        return no_memory();
    struct target baseline = *added;
    memmove(targets->items + 1, targets->items, (targets->count - 1) * sizeof baseline);
    targets->items[0] = baseline;
    return EXIT_OK;
}

static enum exit_code lend_data_sets(struct targets *targets)
{
    const struct target *lender = NULL;
    for (size_t i = 0; i < targets->count && !lender; i++)
        lender = targets->items[i].data_set_count ? &targets->items[i] : NULL;
    for (size_t i = 0; i < targets->count && lender; i++) {
        struct target *target = &targets->items[i];
        if (target->data_set_count)
            continue;
        target->lender = lender;
        target->data_sets = lender->data_sets;
        target->data_set_count = lender->data_set_count;
    }
    return EXIT_OK;
}

/* One model at two levels has two names. */
static enum exit_code tell_levels(struct targets *targets)
{
    bool differ = false;
    for (size_t i = 1; i < targets->count; i++)
        differ |= targets->items[i].level != targets->items[0].level;
    for (size_t i = 0; i < targets->count && differ; i++) {
        struct target *target = &targets->items[i];
        char *name;
        if (asprintf(&name, "%s -O%d", target->name, target->level) < 0)
            return no_memory();
        free(target->name);
        target->name = name;
    }
    return EXIT_OK;
}

enum exit_code targets_make(const struct bench_arguments *arguments, struct targets *targets)
{
    enum exit_code code = EXIT_OK;
    for (size_t i = 0; i < arguments->name_count && code == EXIT_OK; i++)
        code = add_name(targets, arguments->names[i], arguments->common.level);
    if (code == EXIT_OK && arguments->baseline)
        code = add_baseline(arguments, targets);
    if (code == EXIT_OK)
        code = lend_data_sets(targets);
    return code == EXIT_OK ? tell_levels(targets) : code;
}

void targets_free(struct targets *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        struct target *target = &targets->items[i];
        if (!target->lender) {
            drop_data_sets(target);
            free(target->data_sets);
        }
        free(target->name);
        free(target->path);
    }
    free(targets->items);
    *targets = (struct targets){0};
}
