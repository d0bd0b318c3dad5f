/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/check.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handles.h"
#include "tools/common/inputs.h"
#include "tools/common/interrupt.h"
#include "tools/common/progress.h"

/* The worst that was seen of an output, over all sets. */
struct tally {
    struct compare_report worst;
    char set[128]; /* where that was */
    bool differs;
};

struct check {
    tssa_context *context;
    tssa_model *original, *rewritten;
    tssa_session *sessions[2];
    const struct check_options *options;
    size_t n_outputs;
    struct tally *tallies;
    tssa_value **outputs[3]; /* of the original, of the rewritten, of the original once more */
    size_t ran, refused;     /* sets */
    size_t unstable;         /* sets on which the original does not give the same twice */
    char why[512];           /* the original's last refusal */
    bool failed;             /* the rewritten model failed where the original ran */
};

/* ---- Signatures ------------------------------------------------------------------------------------- */

static tssa_status *compare_infos(const char *what, size_t index, const tssa_value_info *old,
                                  const tssa_value_info *new)
{
    if (strcmp(old->name, new->name) != 0)
        return ERROR(TSSA_INTERNAL, "%s %zu is called %s now, not %s", what, index, new->name,
                     old->name);
    if (old->kind != new->kind || old->is_optional != new->is_optional)
        return ERROR(TSSA_INTERNAL, "%s %s is of another kind now", what, old->name);
    if (old->dtype != new->dtype && old->dtype != TSSA_UNDEFINED &&new->dtype != TSSA_UNDEFINED)
        return ERROR(TSSA_INTERNAL, "%s %s has the element type %s now, not %s", what, old->name,
                     tssa_dtype_name(new->dtype), tssa_dtype_name(old->dtype));
    return NULL;
}

/* Of inputs alone: what a model declares of its outputs may be wrong, and be shown while nothing better
 * is known. */
static tssa_status *compare_shapes(const tssa_value_info *old, const tssa_value_info *new)
{
    if (old->rank >= 0 && new->rank >= 0 && old->rank != new->rank)
        return ERROR(TSSA_INTERNAL, "input %s has %d dims now, not %d", old->name, new->rank,
                     old->rank);
    for (int i = 0; i < old->rank && i < new->rank; i++)
        if (old->dims[i] >= 0 && new->dims[i] >= 0 && old->dims[i] != new->dims[i])
            return ERROR(TSSA_INTERNAL, "input %s: dim %d is %" PRId64 " now, not %" PRId64,
                         old->name, i, new->dims[i], old->dims[i]);
    return NULL;
}

tssa_status *check_signatures(const tssa_model *original, const tssa_model *rewritten)
{
    tssa_value_info old, new;
    size_t inputs = tssa_model_input_count(original), outputs = tssa_model_output_count(original);
    if (inputs != tssa_model_input_count(rewritten) ||
        outputs != tssa_model_output_count(rewritten))
        return ERROR(TSSA_INTERNAL,
                     "the rewritten model has %zu inputs and %zu outputs, not %zu "
                     "and %zu",
                     tssa_model_input_count(rewritten), tssa_model_output_count(rewritten), inputs,
                     outputs);
    for (size_t i = 0; i < inputs; i++) {
        TRY(tssa_model_input(original, i, &old));
        TRY(tssa_model_input(rewritten, i, &new));
        TRY(compare_infos("input", i, &old, &new));
        TRY(compare_shapes(&old, &new));
    }
    for (size_t i = 0; i < outputs; i++) {
        TRY(tssa_model_output(original, i, &old));
        TRY(tssa_model_output(rewritten, i, &new));
        TRY(compare_infos("output", i, &old, &new));
    }
    return NULL;
}

/* ---- Comparing one run ------------------------------------------------------------------------------ */

static void clear_outputs(struct check *check, int which)
{
    for (size_t i = 0; i < check->n_outputs; i++) {
        tssa_value_free(check->outputs[which][i]);
        check->outputs[which][i] = NULL;
    }
}

/* Does the original give the same again? A model with random operators does not. */
static bool is_repeatable(struct check *check, const struct run_inputs *inputs)
{
    tssa_status *status = tssa_session_run(check->sessions[0], inputs->count, inputs->values,
                                           check->n_outputs, check->outputs[2]);
    bool same = !status;
    struct compare_report report;
    for (size_t i = 0; same && i < check->n_outputs; i++)
        same = compare_values(&check->outputs[2][i]->value, &check->outputs[0][i]->value,
                              &check->options->rule, &report);
    tssa_status_free(status);
    clear_outputs(check, 2);
    return same;
}

static void note(struct tally *tally, const char *set, const struct compare_report *report)
{
    bool worse = !report->equal ? !tally->differs : report->max_abs > tally->worst.max_abs;
    if (!worse || (tally->differs && report->equal))
        return;
    tally->worst = *report;
    tally->differs |= !report->equal;
    snprintf(tally->set, sizeof tally->set, "%s", set);
}

static void compare_outputs(struct check *check, const char *set, const struct run_inputs *inputs)
{
    bool differs = false;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < check->n_outputs; i++) {
            struct compare_report report;
            compare_values(&check->outputs[1][i]->value, &check->outputs[0][i]->value,
                           &check->options->rule, &report);
            differs |= !report.equal;
            if (pass == 1)
                note(&check->tallies[i], set, &report);
        }
        if (differs && pass == 0 && !is_repeatable(check, inputs)) {
            check->unstable++;
            return;
        }
    }
}

/* Keeps the reason why inputs did not do. Lack of memory is one: smaller ones may do. */
static void refuse(struct check *check, tssa_status *status)
{
    snprintf(check->why, sizeof check->why, "%s", tssa_status_message(status));
    tssa_status_free(status);
}

/* One run; a session that was stopped is made anew. */
static tssa_status *run_one(struct check *check, int which, const struct run_inputs *inputs)
{
    tssa_model *model = which ? check->rewritten : check->original;
    interrupt_limit(check->sessions[which], check->options->timeout);
    tssa_status *status = tssa_session_run(check->sessions[which], inputs->count, inputs->values,
                                           check->n_outputs, check->outputs[which]);
    interrupt_disarm();
    if (tssa_status_code(status) != TSSA_LIMIT || !check->options->timeout)
        return status;
    tssa_session_free(check->sessions[which]);
    check->sessions[which] = NULL;
    tssa_status *failed = tssa_session_create(model, NULL, &check->sessions[which]);
    if (!failed)
        return status;
    tssa_status_free(status);
    return failed;
}

/* Runs both. False when the original refuses the inputs: then others may do. */
static bool run_set(struct check *check, const char *set, const struct run_inputs *inputs)
{
    progress("checking with %s", set);
    tssa_status *status = check->sessions[0] ? run_one(check, 0, inputs) : status_out_of_memory();
    if (status) {
        refuse(check, status);
        return false;
    }
    check->ran++;
    progress("checking with %s: the new model", set);
    status = check->sessions[1] ? run_one(check, 1, inputs) : status_out_of_memory();
    progress_done();
    if (status) {
        fprintf(check->options->out,
                "  DIFFERS with %s: the original runs, the new model fails: %s\n", set,
                tssa_status_message(status));
        tssa_status_free(status);
        check->failed = true;
    } else {
        compare_outputs(check, set, inputs);
    }
    clear_outputs(check, 0);
    clear_outputs(check, 1);
    return true;
}

/* ---- Recorded inputs -------------------------------------------------------------------------------- */

static bool has_file(const char *folder, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return false;
    bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

static bool is_data_set(const char *folder)
{
    return has_file(folder, "input_0.pb") || has_file(folder, "input_0.npy") ||
           has_file(folder, "in_0.npy");
}

static void run_recorded(struct check *check, const char *folder)
{
    struct run_inputs inputs = {0};
    struct input_source source = {.data_set = folder};
    const char *name = strrchr(folder, '/');
    tssa_status *status = inputs_make(check->context, check->original, &source, &inputs);
    if (status) {
        refuse(check, status);
        check->refused++;
    } else {
        check->refused += !run_set(check, name ? name + 1 : folder, &inputs);
    }
    inputs_free(&inputs);
}

static int keep_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The data sets in the model's folder, in the order of their names. */
static tssa_status *check_recorded(struct check *check)
{
    const char *path = check->options->path, *slash = strrchr(path, '/');
    struct dirent **entries = NULL;
    tssa_status *status = NULL;
    if (strcmp(path, "-") == 0)
        return NULL;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    TRY_ALLOC(folder);
    int count = scandir(folder, &entries, keep_visible, versionsort);
    for (int i = 0; i < count; i++) {
        char *set = NULL;
        if (!status && asprintf(&set, "%s%s", folder, entries[i]->d_name) < 0) {
            set = NULL;
            status = status_out_of_memory();
        }
        if (!status && is_data_set(set))
            run_recorded(check, set);
        free(set);
        free(entries[i]);
    }
    free(entries);
    free(folder);
    return status;
}

/* ---- Random inputs ---------------------------------------------------------------------------------- */

/* What is tried when a set is refused: indices that fit more, numbers that are scores, sizes that
 * convolutions need. */
struct attempt {
    bool tame;        /* floats from 0 to 1 */
    int64_t integers; /* see struct random_style; 0: the set's own */
    struct size_guess guess;
};

static const struct attempt attempts[] = {
    {.guess = {.spread = 8, .rank = 2}},
    {.tame = true, .integers = 4, .guess = {.size = 4, .rank = 2}},
    {.integers = 2, .guess = {.spread = 8, .rank = 1}},
    {.tame = true, .integers = 2, .guess = {.size = 3, .rank = 3}},
    {.tame = true, .integers = 2, .guess = {.size = 1, .rank = 4}},
    {.tame = true, .integers = 1, .guess = {.size = 1, .rank = 1}},
    {.tame = true, .integers = 2, .guess = {.size = 32, .rank = 4}},
    {.tame = true, .integers = 1, .guess = {.size = 8, .rank = 2}},
    {.tame = true, .integers = 2, .guess = {.size = 224, .rank = 4}},
};

/* What a set of random inputs is like before it has to be made tamer. */
static struct random_style style_of(int64_t set)
{
    static const int64_t integers[] = {4, 8, 2, 100};
    static const enum random_floats floats[] = {RANDOM_NORMAL, RANDOM_UNIT, RANDOM_WIDE};
    return (struct random_style){.floats = floats[set % 3], .integers = integers[set % 4]};
}

/* Whether integers decide anything, which is when the model has integer inputs. */
static bool has_integers(const tssa_model *model)
{
    tssa_value_info info;
    for (size_t i = 0; i < tssa_model_input_count(model); i++) {
        tssa_status *status = tssa_model_input(model, i, &info);
        if (!status && dtype_info(info.dtype)->cls != DTYPE_CLASS_FLOAT)
            return true;
        tssa_status_free(status);
    }
    return false;
}

/* One attempt: *ran is set when the original took the inputs; *guessed when sizes were guessed. */
static void attempt_set(struct check *check, int64_t set, const struct attempt *attempt, bool *ran,
                        bool *guessed)
{
    struct run_inputs inputs = {0};
    struct input_source source = *check->options->source;
    char name[sizeof check->tallies->set];
    source.seed += (uint64_t)set;
    source.style = style_of(set);
    source.guess = attempt->guess;
    if (attempt->integers)
        source.style.integers = attempt->integers;
    if (attempt->tame)
        source.style.floats = RANDOM_UNIT;
    tssa_status *status = inputs_make(check->context, check->original, &source, &inputs);
    if (status) {
        refuse(check, status);
    } else {
        const char *sizes = inputs.guesses && inputs.guesses[0] ? inputs.guesses : NULL;
        snprintf(name, sizeof name, "random set %" PRId64 "%s%.80s%s", set + 1, sizes ? " (" : "",
                 sizes ? sizes : "", sizes ? ")" : "");
        *guessed = sizes != NULL;
        *ran = run_set(check, name, &inputs);
    }
    inputs_free(&inputs);
}

static void check_random(struct check *check)
{
    bool integers = has_integers(check->original);
    for (int64_t set = 0; set < check->options->sets && !check->failed; set++) {
        bool ran = false, guessed = true;
        for (size_t i = 0; i < sizeof attempts / sizeof *attempts && !ran; i++)
            if (i < 2 || guessed || integers)
                attempt_set(check, set, &attempts[i], &ran, &guessed);
        check->refused += !ran;
    }
}

/* ---- All of it -------------------------------------------------------------------------------------- */

static tssa_status *check_open(struct check *check)
{
    check->n_outputs = tssa_model_output_count(check->original);
    check->tallies = calloc(check->n_outputs + 1, sizeof *check->tallies);
    TRY_ALLOC(check->tallies);
    for (int i = 0; i < 3; i++) {
        check->outputs[i] = calloc(check->n_outputs + 1, sizeof(tssa_value *));
        TRY_ALLOC(check->outputs[i]);
    }
    TRY(tssa_session_create(check->original, NULL, &check->sessions[0]));
    return status_prefix(tssa_session_create(check->rewritten, NULL, &check->sessions[1]),
                         "the new model");
}

static void check_close(struct check *check)
{
    for (int i = 0; i < 3; i++) {
        if (check->outputs[i])
            clear_outputs(check, i);
        free(check->outputs[i]);
    }
    free(check->tallies);
    tssa_session_free(check->sessions[0]);
    tssa_session_free(check->sessions[1]);
}

static void print_tally(FILE *out, const char *name, const struct tally *tally)
{
    const struct compare_report *worst = &tally->worst;
    if (tally->differs)
        fprintf(out, "  %-24s DIFFERS: %s (%s)\n", name, worst->why, tally->set);
    else if (worst->max_abs > 0)
        fprintf(out, "  %-24s close: max abs %.3g, max rel %.3g, at %s (%s)\n", name,
                worst->max_abs, worst->max_rel, worst->where, tally->set);
    else
        fprintf(out, "  %-24s identical\n", name);
}

static tssa_status *report(const struct check *check, bool *same)
{
    FILE *out = check->options->out;
    *same = !check->failed;
    for (size_t i = 0; i < check->n_outputs; i++)
        *same &= !check->tallies[i].differs;
    if (check->options->quiet && *same)
        return NULL;
    if (check->ran)
        fprintf(out,
                "checked on %zu set%s of inputs (seed %" PRIu64
                ", rtol %g, atol %g, integers exactly)\n",
                check->ran, check->ran == 1 ? "" : "s", check->options->source->seed,
                check->options->rule.rtol, check->options->rule.atol);
    else
        fprintf(out, "NOT CHECKED by running: the original refused every set of inputs; structure, "
                     "types and signature were checked\n");
    if (check->refused)
        fprintf(out, "  the original itself failed on %zu set%s, the last time: %s\n",
                check->refused, check->refused == 1 ? "" : "s", check->why);
    if (check->unstable)
        fprintf(out,
                "  on %zu set%s the original does not give the same twice, which proves nothing\n",
                check->unstable, check->unstable == 1 ? "" : "s");
    for (size_t i = 0; i < check->n_outputs && check->ran && !check->failed; i++) {
        tssa_value_info info;
        TRY(tssa_model_output(check->original, i, &info));
        print_tally(out, info.name, &check->tallies[i]);
    }
    return NULL;
}

tssa_status *check_models(tssa_context *context, tssa_model *original, tssa_model *rewritten,
                          const struct check_options *options, bool *same)
{
    struct check check = {
        .context = context, .original = original, .rewritten = rewritten, .options = options};
    tssa_status *status = check_open(&check);
    if (!status)
        status = check_recorded(&check);
    if (!status)
        check_random(&check);
    progress_done();
    if (!status)
        status = report(&check, same);
    check_close(&check);
    return status;
}
