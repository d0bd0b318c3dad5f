/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of inputs of a check: recorded ones, small random ones, and ever larger random ones. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handles.h"
#include "tools/common/check_state.h"
#include "tools/common/clock.h"

static void count(struct check *check, enum set_outcome outcome, size_t *compared)
{
    switch (outcome) {
    case SET_COMPARED:
        ++*compared;
        break;
    case SET_UNSTABLE:
        check->sets.unstable++;
        break;
    case SET_REFUSED:
        check->sets.refused++;
        break;
    case SET_CUT:
        check->sets.unreached++;
        break;
    }
}

/* Of a set that is not run any more. */
static enum set_outcome not_run(const struct check *check)
{
    return check->hopeless ? SET_REFUSED : SET_CUT;
}

/* ---- Recorded inputs ------------------------------------------------------------------------- */

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

static enum set_outcome run_recorded(struct check *check, const char *folder)
{
    struct run_inputs inputs = {0};
    struct input_source source = {.data_set = folder};
    const char *name = strrchr(folder, '/');
    enum set_outcome outcome = SET_REFUSED;
    tssa_status *status = inputs_make(check->context, check->original, &source, &inputs);
    if (status)
        check_refuse(check, status);
    else
        outcome = check_run(check, name ? name + 1 : folder, &inputs, check_time_left(check), 0);
    inputs_free(&inputs);
    return outcome;
}

static int keep_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The data sets in the model's folder, in the order of their names. */
tssa_status *check_recorded(struct check *check)
{
    const char *path = check->options->path, *slash = strrchr(path, '/');
    struct dirent **entries = NULL;
    tssa_status *status = NULL;
    if (strcmp(path, "-") == 0)
        return NULL;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    TRY_ALLOC(folder);
    int found = scandir(folder, &entries, keep_visible, versionsort);
    for (int i = 0; i < found; i++) {
        char *set = NULL;
        if (!status && asprintf(&set, "%s%s", folder, entries[i]->d_name) < 0) {
            set = NULL;
            status = status_out_of_memory();
        }
        if (!status && is_data_set(set))
            count(check, check_is_over(check) ? not_run(check) : run_recorded(check, set),
                  &check->sets.recorded);
        free(set);
        free(entries[i]);
    }
    free(entries);
    free(folder);
    return status;
}

/* ---- Random inputs --------------------------------------------------------------------------- */

/* How a random set is made. */
struct attempt {
    bool tame;        /* floats from 0 to 1 */
    int64_t integers; /* see struct random_style; 0: the set's own */
    int64_t single;   /* the same */
    struct size_guess guess;
};

#define DRAWS 16
#define DRAW_SECONDS 0.1

/* What is tried when a set is refused: indices that fit more, numbers that are scores, sizes that
 * convolutions need. */
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
    static const enum random_floats floats[] = {RANDOM_NORMAL, RANDOM_ZEROS, RANDOM_UNIT,
                                                RANDOM_WIDE};
    return (struct random_style){.floats = floats[set % 4], .integers = integers[set % 4]};
}

/* What of the inputs is there to be chosen. */
struct freedom {
    bool sizes;    /* a dim that nothing fixes, or a rank */
    bool integers; /* what may be an index */
    bool singles;  /* an integer by itself, which may be a trip count */
};

static struct freedom freedom_of(const tssa_model *model)
{
    struct freedom freedom = {false, false, false};
    tssa_value_info info;
    for (size_t i = 0; i < tssa_model_input_count(model); i++) {
        tssa_status *status = tssa_model_input(model, i, &info);
        bool good = !status;
        tssa_status_free(status);
        if (!good || info.has_default)
            continue;
        bool single = info.kind == TSSA_KIND_TENSOR && info.rank >= 0;
        freedom.sizes |= info.rank < 0;
        for (int k = 0; k < info.rank; k++) {
            freedom.sizes |= info.dims[k] < 0;
            single &= info.dims[k] == 1;
        }
        freedom.integers |= dtype_info(info.dtype)->cls != DTYPE_CLASS_FLOAT;
        freedom.singles |= single && dtype_is_integer(info.dtype);
    }
    return freedom;
}

/* What the largest of a set's dims, and integers by themselves, was. */
static void note_value(struct check_sets *sets, const struct value *value)
{
    const struct tensor *tensor = &value->tensor;
    if (value->kind == TSSA_KIND_SEQUENCE)
        for (size_t i = 0; i < sequence_length(value->sequence); i++)
            note_value(sets, sequence_element(value->sequence, i));
    if (value->kind != TSSA_KIND_TENSOR)
        return;
    for (int k = 0; k < tensor->rank; k++)
        if (tensor->dims[k] > sets->dim)
            sets->dim = tensor->dims[k];
    bool single = tensor_count(tensor) == 1 && dtype_is_integer(tensor->dtype);
    int64_t number = single ? dtype_load_int64(tensor->dtype, tensor->data) : 0;
    if (number > sets->number)
        sets->number = number;
}

/* Where a set was made as one of the attempts says. */
struct trial {
    int64_t set, draw;
    double seconds; /* that the original may take */
    size_t memory;  /* the same in bytes, inputs included; 0: no limit */
    bool guessed;   /* sizes were */
};

static enum set_outcome run_random(struct check *check, const struct run_inputs *inputs,
                                   struct trial *trial, size_t memory)
{
    char name[CHECK_SET_NAME];
    const char *sizes = inputs->guesses && inputs->guesses[0] ? inputs->guesses : NULL;
    int used = snprintf(name, sizeof name, "random set %" PRId64, trial->set + 1);
    if (trial->draw)
        used +=
            snprintf(name + used, sizeof name - (size_t)used, ", draw %" PRId64, trial->draw + 1);
    if (sizes)
        snprintf(name + used, sizeof name - (size_t)used, " (%.70s)", sizes);
    trial->guessed = sizes != NULL;
    check->made_up = true;
    enum set_outcome outcome = check_run(check, name, inputs, trial->seconds, memory);
    check->made_up = false;
    for (size_t i = 0; i < inputs->count && outcome == SET_COMPARED; i++)
        if (inputs->values[i])
            note_value(&check->sets, &inputs->values[i]->value);
    return outcome;
}

static enum set_outcome try_attempt(struct check *check, const struct attempt *attempt,
                                    struct trial *trial)
{
    struct run_inputs inputs = {0};
    struct input_source source = *check->options->source;
    tssa_context *context = check->context;
    size_t held = atomic_load(&context->memory_used), limit = context->memory_limit;
    enum set_outcome outcome = SET_REFUSED;
    source.seed += (uint64_t)trial->set + ((uint64_t)trial->draw << 32);
    source.style = style_of(trial->set);
    source.style.single = attempt->single;
    source.guess = attempt->guess;
    if (attempt->integers)
        source.style.integers = attempt->integers;
    if (attempt->tame)
        source.style.floats = RANDOM_UNIT;
    else if (trial->draw % 2 == 1)
        source.style.floats = RANDOM_ZEROS;
    if (trial->memory && held < limit && trial->memory < limit - held)
        context->memory_limit = held + trial->memory;
    tssa_status *status = inputs_make(context, check->original, &source, &inputs);
    context->memory_limit = limit;
    size_t taken = atomic_load(&context->memory_used) - held;
    if (status)
        check_refuse(check, status);
    else
        outcome = run_random(check, &inputs, trial,
                             trial->memory > taken ? trial->memory - taken : trial->memory);
    inputs_free(&inputs);
    return outcome;
}

/* Where a run takes no time, a set is drawn again: other sizes, other zeros. What is refused then
 * does not count. */
static void draw_again(struct check *check, const struct attempt *attempt, struct trial *trial)
{
    double end = clock_seconds() + DRAW_SECONDS;
    for (trial->draw = 1; trial->draw < DRAWS && clock_seconds() < end && !check_is_over(check);
         trial->draw++) {
        trial->seconds = check_time_left(check);
        try_attempt(check, attempt, trial);
    }
}

static enum set_outcome small_set(struct check *check, const struct freedom *freedom, int64_t set)
{
    struct trial trial = {.set = set, .guessed = true};
    enum set_outcome outcome = SET_REFUSED;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts && outcome == SET_REFUSED; i++) {
        if (check_is_over(check))
            return not_run(check);
        trial.seconds = check_time_left(check);
        double start = clock_seconds();
        if (i < 2 || trial.guessed || freedom->integers)
            outcome = try_attempt(check, &attempts[i], &trial);
        if (outcome == SET_COMPARED && clock_seconds() - start < DRAW_SECONDS)
            draw_again(check, &attempts[i], &trial);
    }
    return outcome;
}

/* ---- Large random inputs --------------------------------------------------------------------- */

/* Of the time that is left. */
#define LARGE_SHARE 8
#define LARGE_FIRST 32
#define LARGE_STEP 4
#define LARGE_LAST (INT64_C(1) << 25)

/* What may be large, in the order in which it is tried. A trip count that is not larger than any
 * dim does as an index of rows, too. */
struct growth {
    bool sizes, alike, singles; /* dims; dims all the same; integers by themselves */
};

static const struct growth growths[] = {
    {.sizes = true, .singles = true},
    {.sizes = true, .alike = true, .singles = true},
    {.sizes = true},
    {.sizes = true, .alike = true},
    {.singles = true},
};

#define GROWTHS (sizeof growths / sizeof *growths)

static enum set_outcome try_size(struct check *check, const struct growth *growth, int64_t size,
                                 struct trial *trial)
{
    struct attempt attempt = {.guess = {.spread = 8, .rank = 2}};
    if (growth->singles)
        attempt.single = size / 2;
    if (growth->sizes && growth->alike)
        attempt.guess = (struct size_guess){.size = size, .rank = 2};
    else if (growth->sizes)
        attempt.guess =
            (struct size_guess){.spread = (uint64_t)size, .least = (uint64_t)size / 2, .rank = 2};
    return try_attempt(check, &attempt, trial);
}

/* Whether the next step is likely to be in time: beyond what any run takes it may take the square
 * of what this one did. */
static bool is_soon(double first, double last, double seconds)
{
    return first < seconds / 2 && first + (last - first) * LARGE_STEP * LARGE_STEP < seconds;
}

/* The first kind of growth, from *kind on, that is not refused. */
static enum set_outcome grow(struct check *check, const struct freedom *freedom, int64_t size,
                             size_t *kind, struct trial *trial)
{
    enum set_outcome outcome = SET_REFUSED;
    for (; *kind < GROWTHS && !check_is_over(check); ++*kind) {
        const struct growth *growth = &growths[*kind];
        bool fits = (!growth->sizes || freedom->sizes) && (!growth->singles || freedom->singles);
        if (fits)
            outcome = try_size(check, growth, size, trial);
        if (outcome != SET_REFUSED)
            break;
    }
    return outcome;
}

/* Larger and larger, while the original is not refused its memory and there is time. What ran at
 * all counts as one set; SET_REFUSED when nothing did. */
static enum set_outcome large_set(struct check *check, const struct freedom *freedom, int64_t set)
{
    struct trial trial = {
        .set = set, .seconds = check_time_left(check) / LARGE_SHARE, .memory = CHECK_LARGE_MEMORY};
    enum set_outcome outcome = SET_COMPARED, best = SET_REFUSED;
    size_t kind = 0; /* what was refused once is not tried again */
    double start = clock_seconds(), first = 0, last = 0;
    for (int64_t size = LARGE_FIRST; size <= LARGE_LAST && outcome == SET_COMPARED;
         size *= LARGE_STEP) {
        double begin = clock_seconds();
        outcome = grow(check, freedom, size, &kind, &trial);
        if (outcome == SET_COMPARED || best == SET_REFUSED)
            best = outcome;
        last = clock_seconds() - begin;
        if (size == LARGE_FIRST)
            first = last;
        if (!is_soon(first, last, trial.seconds) || begin + last - start > trial.seconds)
            break;
    }
    return best;
}

/* ---- All random sets ------------------------------------------------------------------------- */

/* Every second one is large, where there is something to be chosen. */
void check_random(struct check *check)
{
    struct freedom freedom = freedom_of(check->original);
    for (int64_t set = 0; set < check->options->sets && !check->failed && !check->error; set++) {
        enum set_outcome outcome = check_is_over(check) ? not_run(check) : SET_REFUSED;
        if (set % 2 == 1 && (freedom.sizes || freedom.singles) && !check_is_over(check))
            outcome = large_set(check, &freedom, set);
        if (outcome == SET_REFUSED || (outcome == SET_CUT && !check_is_over(check)))
            outcome = small_set(check, &freedom, set);
        count(check, outcome, &check->sets.random);
    }
}
