/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/probe.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/clones.h"

#define RUNS 5 /* of which the least counts */
#define LAST_BYTES ((size_t)4 << 20)
#define MEMORY_BYTES ((size_t)64 << 20) /* a container may have little */
#define FEW 4096                        /* elements, in the fastest cache */

/* ---- What is done ---------------------------------------------------------------------------- */

/* Memory that all of them use. */
struct room {
    char *bytes;
    uint64_t sum; /* so that nothing is left out */
};

VECTOR_PROCEDURE(multiply, (float *x, size_t n), (x, n))
{
    for (size_t i = 0; i < n; i++) {
        float v = x[i];
        for (int k = 0; k < 16; k++)
            v = v * 0.75f + 0.25f;
        x[i] = v;
    }
}
#define OPERATIONS 32.0 /* of multiply(), an element */

VECTOR_PROCEDURE(divide, (float *x, size_t n), (x, n))
{
    for (size_t i = 0; i < n; i++)
        x[i] = 1 / x[i];
}

VECTOR_FUNCTION(uint64_t, look, (const uint64_t *x, size_t n), (x, n))
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum ^= x[i];
    return sum;
}

VECTOR_PROCEDURE(put, (uint64_t * x, size_t n, uint64_t value), (x, n, value))
{
    for (size_t i = 0; i < n; i++)
        x[i] = value;
}

static void step(struct room *room, size_t n)
{
    uint64_t x = room->sum;
    for (size_t i = 0; i < n; i++)
        x = x * 0x9e3779b97f4a7c15u + i;
    room->sum = x;
}

static void compute(struct room *room, size_t n)
{
    multiply((float *)(void *)room->bytes, n);
}

static void invert(struct room *room, size_t n)
{
    divide((float *)(void *)room->bytes, n);
}

static void read_all(struct room *room, size_t bytes)
{
    room->sum ^= look((const uint64_t *)(const void *)room->bytes, bytes / 8);
}

static void write_all(struct room *room, size_t bytes)
{
    put((uint64_t *)(void *)room->bytes, bytes / 8, room->sum);
}

/* ---- How long it takes ----------------------------------------------------------------------- */

/* Nanoseconds of what is done `times` times, of `n` each, the first time apart. */
static double least(void (*done)(struct room *, size_t), struct room *room, size_t n, int times)
{
    double best = INFINITY;
    done(room, n);
    for (int run = 0; run < RUNS; run++) {
        const uint64_t begin = clock_monotonic();
        for (int i = 0; i < times; i++)
            done(room, n);
        best = fmin(best, (double)(clock_monotonic() - begin) / times);
    }
    return best;
}

static void probe_core(struct room *room, struct cpu_probe *probe)
{
    const double registers = FEW * sizeof(float) /
                             (isa_level() == ISA_V4   ? 64.0
                              : isa_level() == ISA_V3 ? 32.0
                                                      : 16.0);
    for (size_t i = 0; i < FEW; i++)
        memcpy(room->bytes + i * sizeof(float), &(float){1.5f}, sizeof(float));
    probe->pace = least(step, room, 10000, 2) / 10000;
    probe->operation = least(compute, room, FEW, 20) / (registers * OPERATIONS);
    probe->division = least(invert, room, FEW, 20) / registers;
}

/* Of so many bytes that are in the level, if they are there: as often as takes a while. */
static void probe_level(struct room *room, size_t bytes, double *read, double *written)
{
    const int times = bytes < (4u << 20) ? (int)((4u << 20) / bytes) : 1;
    /* Pages that nobody has written are all the same one. */
    *written = least(write_all, room, bytes, times) / (double)bytes;
    *read = least(read_all, room, bytes, times) / (double)bytes;
}

static double cache_size(int name)
{
    const long size = sysconf(name);
    return size > 0 ? (double)size : 0;
}

/* Half of a cache. Of the last one, which others use, too, and which processors tell the size of
 * as that of all of its parts, so much as is in it anywhere. */
static size_t share_of(const struct cpu_probe *probe, int level)
{
    static const double usual[] = {32e3, 1e6};
    if (level == 2)
        return LAST_BYTES;
    const double size = probe->bytes[level] > 0 ? probe->bytes[level] : usual[level];
    const size_t share = (size_t)(size / 2) & ~(size_t)63;
    return share < 4096 ? 4096 : share < LAST_BYTES ? share : LAST_BYTES;
}

bool cpu_probe(const tssa_allocator *allocator, struct cpu_probe *probe)
{
    struct room room = {allocator_alloc(allocator, MEMORY_BYTES), 0};
    *probe = (struct cpu_probe){
        .bytes = {cache_size(_SC_LEVEL1_DCACHE_SIZE), cache_size(_SC_LEVEL2_CACHE_SIZE)}};
    if (!room.bytes)
        return false;
    probe_core(&room, probe);
    for (int i = 0; i < GIR_LEVELS; i++)
        probe_level(&room, i < GIR_LEVELS - 1 ? share_of(probe, i) : MEMORY_BYTES, &probe->read[i],
                    &probe->written[i]);
    allocator_free(allocator, room.bytes);
    return true;
}

/* ---- Scaling --------------------------------------------------------------------------------- */

/* A machine is not so different: a measurement is wrong. */
#define MOST_TIMES 8

static double times(double there, double here)
{
    const double ratio = here / there;
    return ratio > 0 ? fmin(fmax(ratio, 1.0 / MOST_TIMES), MOST_TIMES) : 1; /* NaN: 1 */
}

void cpu_probe_scale(const struct cpu_probe *there, const struct cpu_probe *here,
                     struct gir_rates *rates)
{
    const double pace = times(there->pace, here->pace),
                 operation = times(there->operation, here->operation);
    double *const of_pace[] = {&rates->launch, &rates->region, &rates->call, &rates->row};
    double *const of_operation[] = {&rates->operation, &rates->function, &rates->reduction,
                                    &rates->copy};
    for (size_t i = 0; i < sizeof of_pace / sizeof *of_pace; i++)
        *of_pace[i] *= pace;
    for (size_t i = 0; i < sizeof of_operation / sizeof *of_operation; i++)
        *of_operation[i] *= operation;
    rates->division *= times(there->division, here->division);
    for (int i = 0; i < GIR_LEVELS; i++) {
        struct gir_level *level = &rates->levels[i];
        const double read = times(there->read[i], here->read[i]);
        if (here->bytes[i] > 0 && there->bytes[i] > 0)
            level->bytes *= here->bytes[i] / there->bytes[i];
        level->read *= read;
        level->element *= read;
        level->written *= times(there->written[i], here->written[i]);
    }
}
