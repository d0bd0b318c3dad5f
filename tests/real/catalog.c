/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/xmalloc.h"

#define MICRO "micro-loops"

static void add(struct catalog *catalog, struct real_case entry)
{
    catalog->cases = xrealloc(catalog->cases, (catalog->count + 1) * sizeof entry);
    catalog->cases[catalog->count++] = entry;
}

/* A model's own order may have other inputs, with defaults, in between. */
static char **input_names(json_t *set)
{
    json_t *inputs = json_object_get(set, "inputs"), *input;
    size_t index;
    char **names = xcalloc(json_array_size(inputs) + 1, sizeof *names);
    json_array_foreach(inputs, index, input)
    {
        const char *name = json_string_value(json_object_get(input, "name"));
        names[index] = xstrdup(name ? name : "");
    }
    return names;
}

static void add_sets(const char *folder, const char *name, json_t *meta, struct catalog *catalog)
{
    size_t index;
    json_t *set;
    json_array_foreach(json_object_get(meta, "sets"), index, set)
    {
        const char *set_name = json_string_value(json_object_get(set, "set"));
        json_t *timing = json_object_get(json_object_get(set, "ort"), "t1_opt");
        if (!set_name)
            continue;
        add(catalog, (struct real_case){
                         .model = xstrdup(name),
                         .set = xstrdup(set_name),
                         .path = xprintf("%s/%s/model.onnx", folder, name),
                         .folder = xprintf("%s/%s/%s", folder, name, set_name),
                         .quantized = json_object_get(json_object_get(meta, "ops"),
                                                      "QuantizeLinear") != NULL,
                         .inputs = input_names(set),
                         .reference_ms = json_number_value(json_object_get(timing, "median_ms")),
                     });
    }
}

static bool add_model(const char *folder, const char *name, struct catalog *catalog)
{
    json_error_t error;
    char *path = xprintf("%s/%s/meta.json", folder, name);
    json_t *meta = NULL;
    bool good = true;
    if (access(path, F_OK) == 0) {
        meta = json_load_file(path, 0, &error);
        good = meta != NULL;
        if (good)
            add_sets(folder, name, meta, catalog);
        else
            fprintf(stderr, "%s: line %d: %s\n", path, error.line, error.text);
    }
    json_decref(meta);
    free(path);
    return good;
}

static void add_micro(const char *folder, const char *file, struct catalog *catalog)
{
    const char *dot = strrchr(file, '.');
    if (dot && strcmp(dot, ".onnx") == 0)
        add(catalog, (struct real_case){.model = xprintf("%s/%.*s", MICRO, (int)(dot - file), file),
                                        .path = xprintf("%s/" MICRO "/%s", folder, file)});
}

static int by_model(const void *a, const void *b)
{
    const struct real_case *x = a, *y = b;
    int order = strcmp(x->model, y->model);
    return order || !x->set || !y->set ? order : strcmp(x->set, y->set);
}

bool catalog_read(const char *folder, struct catalog *catalog)
{
    struct dirent *entry;
    bool good = true;
    *catalog = (struct catalog){0};
    DIR *directory = opendir(folder);
    while (directory && (entry = readdir(directory)))
        good &= entry->d_name[0] == '.' || add_model(folder, entry->d_name, catalog);
    if (directory)
        closedir(directory);
    char *micro = xprintf("%s/%s", folder, MICRO);
    directory = opendir(micro);
    while (directory && (entry = readdir(directory)))
        add_micro(folder, entry->d_name, catalog);
    if (directory)
        closedir(directory);
    free(micro);
    if (catalog->count)
        qsort(catalog->cases, catalog->count, sizeof *catalog->cases, by_model);
    return good;
}

void catalog_free(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->count; i++) {
        free(catalog->cases[i].model);
        free(catalog->cases[i].set);
        free(catalog->cases[i].path);
        free(catalog->cases[i].folder);
        for (char **name = catalog->cases[i].inputs; name && *name; name++)
            free(*name);
        free(catalog->cases[i].inputs);
    }
    free(catalog->cases);
}
