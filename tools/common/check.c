/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handles.h"
#include "base/text.h"
#include "tools/common/check_state.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/progress.h"

#define MIB (1024.0 * 1024.0)

/* A new model that is cut off took too long when it had at least so many seconds, and so many times
 * what the original took. */
#define SLOW_SECONDS 1
#define SLOW_TIMES 10

double check_time_left(const struct check *check)
{
    double left = check->end - clock_seconds();
    return left > 0.001 ? left : 0.001;
}

bool check_is_over(const struct check *check)
{
    return check->error || check->failed || check->hopeless || interrupt_pending() ||
           clock_seconds() >= check->end;
}

void check_refuse(struct check *check, tssa_status *status)
{
    snprintf(check->why, sizeof check->why, "%s", tssa_status_message(status));
    tssa_status_free(status);
}

/* ---- Comparing one run ----------------------------------------------------------------------- */

void check_clear(struct check *check, int which)
{
    for (size_t i = 0; i < check->n_outputs; i++) {
        tssa_value_free(check->outputs[which][i]);
        check->outputs[which][i] = NULL;
    }
}

/* Does the original give the same again? A model with random operators does not. */
static bool is_repeatable(struct check *check, const struct run_inputs *inputs)
{
    const struct engine_limits limits = {.seconds = check_time_left(check)};
    struct engine_cost cost;
    tssa_status *status =
        check->engine->run(check->engine, CHECK_OLD, inputs, &limits, check->outputs[2], &cost);
    bool same = !status;
    struct compare_report report;
    for (size_t i = 0; same && i < check->n_outputs; i++)
        same = compare_values(&check->outputs[2][i]->value, &check->outputs[0][i]->value,
                              &check->options->rule, &report);
    /* Without time for it nothing says that it is unstable. */
    same |= tssa_status_code(status) == TSSA_LIMIT;
    tssa_status_free(status);
    check_clear(check, 2);
    return same;
}

static void note(struct tally *tally, const char *set, const struct compare_report *report)
{
    bool worse = !report->equal ? !tally->differs
                                : report->max_abs > tally->worst.max_abs ||
                                      report->zero_signs > tally->worst.zero_signs;
    if (!worse || (tally->differs && report->equal))
        return;
    tally->worst = *report;
    tally->differs |= !report->equal;
    snprintf(tally->set, sizeof tally->set, "%s", set);
}

static enum set_outcome compare_outputs(struct check *check, const char *set,
                                        const struct run_inputs *inputs)
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
        if (differs && pass == 0 &&
            (!is_repeatable(check, inputs) ||
             (check->made_up && check_is_sensitive(check, inputs))))
            return SET_UNSTABLE;
    }
    return SET_COMPARED;
}

/* ---- One run of both ------------------------------------------------------------------------- */

/* "12.1 MiB", and "3 KiB" of what is small. */
static const char *print_bytes(size_t bytes, char text[32])
{
    if (bytes < (size_t)MIB)
        snprintf(text, 32, "%zu KiB", (bytes + 1023) / 1024);
    else
        snprintf(text, 32, "%.1f MiB", (double)bytes / MIB);
    return text;
}

/* What keeps anything from being run, and what is no fault of the inputs. */
static bool is_final(const tssa_status *status)
{
    return tssa_status_code(status) == TSSA_IO;
}

__attribute__((format(printf, 3, 4))) static enum set_outcome
fail(struct check *check, const char *set, const char *format, ...)
{
    va_list arguments;
    progress_done();
    fprintf(check->options->out, "  DIFFERS with %s: ", set);
    va_start(arguments, format);
    vfprintf(check->options->out, format, arguments);
    va_end(arguments);
    fputc('\n', check->options->out);
    check->failed = true;
    return SET_COMPARED;
}

/* Was it ended, by the time or by Ctrl-C? Tensors that are too large have that status as well. */
static bool was_ended(const tssa_status *status, const struct engine_cost *cost,
                      const struct engine_limits *limits)
{
    return tssa_status_code(status) == TSSA_LIMIT &&
           (interrupt_pending() || cost->seconds >= limits->seconds);
}

/* The new model did not run as the original did. */
static enum set_outcome judge_failure(struct check *check, const char *set, tssa_status *status,
                                      const struct engine_cost *old, const struct engine_cost *new,
                                      const struct engine_limits *limits)
{
    enum set_outcome outcome = SET_CUT;
    char may[32], takes[32];
    if (is_final(status)) {
        check->error = status;
        return SET_CUT;
    }
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY)
        outcome = fail(check, set, "the new model takes more than %s of memory, the original %s",
                       print_bytes(limits->memory, may), print_bytes(old->memory, takes));
    else if (!was_ended(status, new, limits))
        outcome = fail(check, set, "the original runs, the new model fails: %s",
                       tssa_status_message(status));
    else if (!interrupt_pending() &&
             new->seconds >= SLOW_SECONDS &&new->seconds >= SLOW_TIMES * old->seconds)
        outcome =
            fail(check, set, "the new model does not end in %.1f s, the original does in %.2f s",
                 new->seconds, old->seconds);
    tssa_status_free(status);
    return outcome;
}

static enum set_outcome run_new(struct check *check, const char *set,
                                const struct run_inputs *inputs, const struct engine_cost *old)
{
    size_t allowed = 2 * old->memory + CHECK_MEMORY_FLOOR;
    const struct engine_limits limits = {.seconds = check_time_left(check), .memory = allowed};
    struct engine_cost new = {0};
    char texts[2][32];
    progress("checking with %s: the new model", set);
    tssa_status *status =
        check->engine->run(check->engine, CHECK_NEW, inputs, &limits, check->outputs[1], &new);
    progress_done();
    if (status)
        return judge_failure(check, set, status, old, &new, &limits);
    if (new.memory > allowed)
        return fail(check, set, "the new model takes %s of memory, the original %s",
                    print_bytes(new.memory, texts[1]), print_bytes(old->memory, texts[0]));
    if (new.memory > check->memory[1]) {
        check->memory[0] = old->memory;
        check->memory[1] = new.memory;
    }
    return compare_outputs(check, set, inputs);
}

enum set_outcome check_run(struct check *check, const char *set, const struct run_inputs *inputs,
                           double seconds, size_t memory)
{
    const struct engine_limits limits = {.seconds = seconds, .memory = memory};
    struct engine_cost cost = {0};
    enum set_outcome outcome;
    progress("checking with %s", set);
    tssa_status *status =
        check->engine->run(check->engine, CHECK_OLD, inputs, &limits, check->outputs[0], &cost);
    if (!status) {
        outcome = run_new(check, set, inputs, &cost);
    } else if (is_final(status)) {
        check->error = status;
        outcome = SET_CUT;
    } else {
        outcome = was_ended(status, &cost, &limits) ? SET_CUT : SET_REFUSED;
        check->hopeless = tssa_status_code(status) == TSSA_UNSUPPORTED;
        check_refuse(check, status);
    }
    check_clear(check, 0);
    check_clear(check, 1);
    return outcome;
}

/* ---- Telling --------------------------------------------------------------------------------- */

static void print_tally(FILE *out, const char *name, const struct tally *tally)
{
    const struct compare_report *worst = &tally->worst;
    if (tally->differs)
        fprintf(out, "  %-24s DIFFERS: %s (%s)\n", name, worst->why, tally->set);
    else if (worst->max_abs > 0)
        fprintf(out, "  %-24s close: max abs %.3g, max rel %.3g, at %s (%s)%s\n", name,
                worst->max_abs, worst->max_rel, worst->where, tally->set,
                worst->zero_signs ? "; zeros of other sign, too" : "");
    else
        fprintf(out, "  %-24s identical\n", name);
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void print_inputs(const struct check *check, struct text *text)
{
    const struct check_sets *sets = &check->sets;
    size_t count = sets->recorded + sets->random;
    text_printf(text, "checked ");
    if (check->engine->name)
        text_printf(text, "with %s ", check->engine->name);
    text_printf(text, "on %zu set%s of inputs (", count, plural(count));
    if (sets->recorded)
        text_printf(text, "%zu recorded", sets->recorded);
    if (sets->random)
        text_printf(text, "%s%zu random, seed %" PRIu64, sets->recorded ? ", " : "", sets->random,
                    check->options->source->seed);
    if (sets->dim)
        text_printf(text, ", dims to %" PRId64, sets->dim);
    if (sets->number)
        text_printf(text, ", single integers to %" PRId64, sets->number);
    text_puts(text, ")");
}

/* What was not compared, and why: with commas. */
static void print_rest(const struct check *check, struct text *text)
{
    const struct check_sets *sets = &check->sets;
    const char *comma = "";
    if (sets->refused)
        text_printf(text, "%zu set%s on which the original itself failed, the last time: %s",
                    sets->refused, plural(sets->refused), check->why);
    comma = sets->refused ? "; " : "";
    if (sets->unstable)
        text_printf(text,
                    "%s%zu set%s on which the original does not give the same twice, or "
                    "other results when its inputs are rounded in another way",
                    comma, sets->unstable, plural(sets->unstable));
    comma = sets->refused || sets->unstable ? "; " : "";
    if (sets->unreached)
        text_printf(text, "%s%zu set%s for which %g s were too short (--timeout)", comma,
                    sets->unreached, plural(sets->unreached), check->options->seconds);
}

/* The one line. */
static void print_summary(const struct check *check, struct text *text)
{
    const struct compare_rule *rule = &check->options->rule;
    char texts[2][32];
    print_inputs(check, text);
    text_printf(text,
                ": values (rtol %g, atol %g; integers, NaN and signs of zero exactly) and memory "
                "(%s, the original %s)",
                rule->rtol, rule->atol, print_bytes(check->memory[1], texts[1]),
                print_bytes(check->memory[0], texts[0]));
    if (check->sets.refused || check->sets.unstable || check->sets.unreached) {
        text_puts(text, "; not compared: ");
        print_rest(check, text);
    } else {
        text_puts(text, "; no set was left out");
    }
}

static tssa_status *print_outputs(const struct check *check)
{
    for (size_t i = 0; i < check->n_outputs; i++) {
        tssa_value_info info;
        TRY(tssa_model_output(check->original, i, &info));
        print_tally(check->options->out, info.name, &check->tallies[i]);
    }
    return NULL;
}

static tssa_status *report(const struct check *check, struct check_result *result)
{
    bool differs = check->failed, nothing = !(check->sets.recorded + check->sets.random);
    struct text text;
    for (size_t i = 0; i < check->n_outputs; i++)
        differs |= check->tallies[i].differs;
    result->verdict = differs ? CHECK_DIFFERS : nothing ? CHECK_NOTHING : CHECK_SAME;
    if (interrupt_pending()) {
        *result = (struct check_result){.verdict = CHECK_NOTHING, .why = "interrupted"};
        return NULL;
    }
    if (check->failed || (check->options->quiet && result->verdict == CHECK_SAME))
        return NULL;
    text_init(&text, &allocator_default);
    if (nothing)
        print_rest(check, &text);
    else
        print_summary(check, &text);
    const char *line = text_string(&text);
    if (nothing)
        snprintf(result->why, sizeof result->why, "%s", line ? line : "out of memory");
    else if (line)
        fprintf(check->options->out, "%s\n", line);
    text_free(&text);
    return nothing ? NULL : print_outputs(check);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static tssa_status *check_open(struct check *check)
{
    check->n_outputs = tssa_model_output_count(check->original);
    check->tallies = calloc(check->n_outputs + 1, sizeof *check->tallies);
    TRY_ALLOC(check->tallies);
    for (int i = 0; i < 3; i++) {
        check->outputs[i] = calloc(check->n_outputs + 1, sizeof(tssa_value *));
        TRY_ALLOC(check->outputs[i]);
    }
    return NULL;
}

static void check_close(struct check *check)
{
    for (int i = 0; i < 3; i++) {
        if (check->outputs[i])
            check_clear(check, i);
        free(check->outputs[i]);
    }
    free(check->tallies);
}

tssa_status *check_models(tssa_context *context, const tssa_model *original,
                          struct check_engine *engine, const struct check_options *options,
                          struct check_result *result)
{
    struct check check = {.context = context,
                          .original = original,
                          .engine = engine,
                          .options = options,
                          .end = clock_seconds() + options->seconds};
    tssa_status *status = check_open(&check);
    if (!status)
        status = check_recorded(&check);
    if (!status)
        check_random(&check);
    progress_done();
    if (status)
        tssa_status_free(check.error);
    else
        status = check.error;
    if (!status)
        status = report(&check, result);
    check_close(&check);
    return status;
}
