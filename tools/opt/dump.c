/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "tools/common/interrupt.h"

static tssa_status *write_file(struct dump *dump, const char *what, const char *text, size_t size)
{
    const char *folder = dump->arguments->dump_dir;
    char *path;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return ERROR(TSSA_IO, "cannot make the folder %s: %s", folder, strerror(errno));
    if (asprintf(&path, "%s/%03u_%s.tir", folder, dump->number++, what) < 0)
        return status_out_of_memory();
    interrupt_defer();
    tssa_status *status = file_write(&allocator_default, path, text, size);
    interrupt_resume();
    free(path);
    return status;
}

void dump_write(void *user, const char *what, const char *text, size_t size)
{
    struct dump *dump = user;
    if (dump->status || (dump->last && strcmp(dump->last, text) == 0))
        return;
    free(dump->last);
    dump->last = strdup(text);
    if (!dump->last)
        dump->status = status_out_of_memory();
    else if (dump->arguments->dump_dir)
        dump->status = write_file(dump, what, text, size);
    else
        fprintf(stderr, "// %s\n%s", what, text);
}

static void add_text(void *user, const char *text, size_t size)
{
    text_append(user, text, size);
}

static void dump_model(struct dump *dump, const char *what, const tssa_model *model)
{
    struct text text;
    text_init(&text, &allocator_default);
    tssa_status *status = tssa_model_print(model, add_text, &text);
    const char *string = text_string(&text);
    if (!status && !string)
        status = status_out_of_memory();
    if (!status)
        dump_write(dump, what, string, text.size);
    else if (!dump->status)
        dump->status = status;
    else
        tssa_status_free(status);
    text_free(&text);
}

static bool dumps_all(const struct dump *dump)
{
    const char *pass = dump->arguments->dump_pass;
    return dump->arguments->dump && pass && strcmp(pass, "all") == 0;
}

void dump_before(struct dump *dump, const tssa_model *model)
{
    if (dumps_all(dump))
        dump_model(dump, "before", model);
}

void dump_result(struct dump *dump, const tssa_model *model)
{
    if (dump->arguments->dump && !dump->arguments->dump_pass)
        dump_model(dump, "result", model);
}

void dump_free(struct dump *dump)
{
    free(dump->last);
    dump->last = NULL;
}
