/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of onnx/backend/test/data in the onnx package, release 1.22.0: four folders with a
 * folder per case, and `real`, whose cases name a model in `light` (onnx/backend/test/loader and
 * runner).
 */
#include "cases.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/xmalloc.h"

#define RTOL 1e-3
#define ATOL 1e-7

static const char *const groups[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

static struct test_case *add(struct case_list *list)
{
    if ((list->count & (list->count + 1)) == 0)
        list->cases = xrealloc(list->cases, (2 * list->count + 2) * sizeof *list->cases);
    return &list->cases[list->count++];
}

static void add_group(const char *data, const char *group, struct case_list *list)
{
    char *folder = xprintf("%s/%s", data, group);
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char *model = xprintf("%s/%s/model.onnx", folder, entry->d_name);
        if (entry->d_name[0] != '.' && access(model, R_OK) == 0)
            *add(list) = (struct test_case){
                .name = xprintf("%s/%s", group, entry->d_name),
                .model = xstrdup(model),
                .folder = xprintf("%s/%s", folder, entry->d_name),
                .rtol = RTOL,
                .atol = ATOL,
            };
        free(model);
    }
    if (directory)
        closedir(directory);
    free(folder);
}

/*
 * data.json: {"model_name": ..., "url": "onnx/backend/test/data/light/NAME.onnx", "rtol", "atol"}
 */
static void add_real(const char *data, const char *name, struct case_list *list)
{
    static const char prefix[] = "onnx/backend/test/data/";
    char *path = xprintf("%s/real/%s/data.json", data, name);
    json_t *json = json_load_file(path, 0, NULL);
    const char *url = json_string_value(json_object_get(json, "url"));
    if (url && strncmp(url, prefix, strlen(prefix)) == 0) {
        json_t *rtol = json_object_get(json, "rtol"), *atol = json_object_get(json, "atol");
        *add(list) = (struct test_case){
            .name = xprintf("real/%s", name),
            .model = xprintf("%s/%s", data, url + strlen(prefix)),
            .rtol = json_is_number(rtol) ? json_number_value(rtol) : RTOL,
            .atol = json_is_number(atol) ? json_number_value(atol) : ATOL,
        };
    }
    json_decref(json);
    free(path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct test_case *)a)->name, ((const struct test_case *)b)->name);
}

bool cases_find(const char *data, struct case_list *list)
{
    *list = (struct case_list){0};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        add_group(data, groups[i], list);
    char *real = xprintf("%s/real", data);
    DIR *directory = opendir(real);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] != '.')
            add_real(data, entry->d_name, list);
    }
    if (directory)
        closedir(directory);
    free(real);
    if (!list->count) {
        fprintf(stderr, "%s holds no test cases; wanted: onnx/backend/test/data of onnx 1.22.0\n",
                data);
        return false;
    }
    qsort(list->cases, list->count, sizeof *list->cases, by_name);
    return true;
}

void cases_free(struct case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->cases[i].name);
        free(list->cases[i].model);
        free(list->cases[i].folder);
    }
    free(list->cases);
}

/* ---- Lists of names -------------------------------------------------------------------------- */

static int by_string(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool names_read(const char *path, struct name_list *list)
{
    char *line = NULL;
    size_t capacity = 0;
    *list = (struct name_list){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    while (getline(&line, &capacity, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (!line[0] || line[0] == '#')
            continue;
        list->names = xrealloc(list->names, (list->count + 1) * sizeof *list->names);
        list->names[list->count++] = xstrdup(line);
    }
    free(line);
    fclose(file);
    if (list->count)
        qsort(list->names, list->count, sizeof *list->names, by_string);
    return true;
}

bool names_contain(const struct name_list *list, const char *name)
{
    return list->count &&
           bsearch(&name, list->names, list->count, sizeof *list->names, by_string) != NULL;
}

void names_free(struct name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
}
