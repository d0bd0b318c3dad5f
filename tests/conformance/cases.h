/* SPDX-License-Identifier: Apache-2.0 */
/* Which official cases there are, and lists of case names in files. */
#ifndef TSSA_CONFORMANCE_CASES_H
#define TSSA_CONFORMANCE_CASES_H

#include <stdbool.h>
#include <stddef.h>

struct test_case {
    char *name;   /* "node/test_abs" */
    char *model;  /* path of the .onnx file */
    char *folder; /* holds test_data_set_K; NULL: a real model, whose input is computed */
    double rtol, atol;
};

struct case_list {
    struct test_case *cases; /* by name */
    size_t count;
};

/*
 * All cases below onnx/backend/test/data. NULL and a message on standard error when it holds none.
 */
bool cases_find(const char *data, struct case_list *list);
void cases_free(struct case_list *list);

struct name_list {
    char **names; /* sorted */
    size_t count;
};

/* One name per line; empty lines and lines with # are left out. */
bool names_read(const char *path, struct name_list *list);
bool names_contain(const struct name_list *list, const char *name);
void names_free(struct name_list *list);

#endif
