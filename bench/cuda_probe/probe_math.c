/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of float32 on the card and in the C library, each against the result in double. */
#include <math.h>
#include <stdlib.h>

#include "bench/cuda_probe/probe.h"
#include "bench/cuda_probe/ulp.h"

enum { COUNT = 1 << 20 };

static float root_inverse(float x)
{
    return 1.0f / sqrtf(x);
}

static double root_inverse_exact(double x)
{
    return 1.0 / sqrt(x);
}

static const struct function {
    const char *name; /* of the kernel, behind "math_" */
    float from, to;
    float (*cpu)(float);
    double (*exact)(double);
} functions[] = {
    {"expf", -87, 88, expf, exp},        {"exp_fast", -87, 88, expf, exp},
    {"tanhf", -10, 10, tanhf, tanh},     {"erff", -4, 4, erff, erf},
    {"logf", 1e-6f, 1e6f, logf, log},    {"rsqrtf", 1e-6f, 1e6f, root_inverse, root_inverse_exact},
    {"sqrtf", 1e-6f, 1e6f, sqrtf, sqrt}, {"sinf", -100, 100, sinf, sin},
};

struct numbers {
    float *x, *card;
};

/* Ranges that lie on one side of zero are walked by factors, others by steps. */
static void fill(const struct function *function, float *x)
{
    double from = function->from, to = function->to;
    for (int i = 0; i < COUNT; i++) {
        double part = (double)i / (COUNT - 1);
        x[i] = (float)(from > 0 ? from * pow(to / from, part) : from + (to - from) * part);
    }
}

static tssa_status *compute(struct card *card, const struct function *function,
                            struct numbers *numbers)
{
    char name[64];
    cuda_function kernel;
    cuda_address x, y;
    int count = COUNT;
    size_t size = COUNT * sizeof(float);
    snprintf(name, sizeof name, "math_%s", function->name);
    TRY(card_kernel(card, KERNELS_BASIC, name, &kernel));
    TRY(card_upload(card, numbers->x, size, &x));
    TRY(card_zeros(card, size, &y));
    TRY(CARD_LAUNCH(card, card->stream, kernel, 256, 256, &x, &y, &count));
    TRY(card_download(card, y, size, numbers->card));
    TRY(CARD(card, cuMemFree_v2, x));
    return CARD(card, cuMemFree_v2, y);
}

static void compare(FILE *out, const struct function *function, const struct numbers *numbers)
{
    double worst_card = 0, worst_cpu = 0, worst_between = 0;
    int differ = 0;
    for (int i = 0; i < COUNT; i++) {
        float cpu = function->cpu(numbers->x[i]);
        double exact = function->exact(numbers->x[i]);
        worst_card = fmax(worst_card, ulp_error(numbers->card[i], exact));
        worst_cpu = fmax(worst_cpu, ulp_error(cpu, exact));
        worst_between = fmax(worst_between, ulp_error(numbers->card[i], (double)cpu));
        differ += numbers->card[i] != cpu;
    }
    record_figure(out, worst_card, "ulp", "%s, card", function->name);
    record_figure(out, worst_cpu, "ulp", "%s, CPU", function->name);
    record_figure(out, worst_between, "ulp", "%s, card against CPU", function->name);
    record_figure(out, 100.0 * differ / COUNT, "%", "%s, results that differ", function->name);
}

static tssa_status *ask(struct card *card, FILE *out, struct numbers *numbers)
{
    TRY_ALLOC(numbers->x);
    TRY_ALLOC(numbers->card);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        fill(&functions[i], numbers->x);
        TRY(compute(card, &functions[i], numbers));
        compare(out, &functions[i], numbers);
    }
    return NULL;
}

tssa_status *probe_math(struct card *card, FILE *out)
{
    struct numbers numbers = {calloc(COUNT, sizeof(float)), calloc(COUNT, sizeof(float))};
    tssa_status *status = ask(card, out, &numbers);
    free(numbers.x);
    free(numbers.card);
    return status;
}
