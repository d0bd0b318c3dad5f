/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is ready to be measured: its session, its sets of inputs, and what getting there
 * took. */
#ifndef TSSA_BENCH_SUBJECT_H
#define TSSA_BENCH_SUBJECT_H

#include "tools/bench/measure.h"
#include "tools/bench/targets.h"
#include "tools/common/inputs.h"
#include "tools/common/load.h"
#include "tools/common/profile_table.h"

struct input_set {
    struct run_inputs inputs;
    uint64_t seed;        /* of random ones */
    const char *data_set; /* NULL: they are random */
};

struct subject {
    const struct target *target;
    char *dim;             /* that is swept through; NULL: none is */
    int64_t size;          /* of it, or -1 */
    tssa_context *context; /* its own, so that memory is told apart */
    tssa_model *model;
    tssa_session *session;
    struct input_set *sets;
    size_t set_count;
    bool recorded; /* the sets are the target's data sets; else they are random */
    size_t output_count;
    double load_ms, optimize_ms, session_ms, first_ms;
    tssa_library_info library;         /* when each set had been run once */
    tssa_compile_info kernels;         /* when the runs that count had been made */
    size_t model_bytes, session_bytes; /* held when each was there */
    size_t prepare_peak, run_peak;     /* the most that was held before the first run, and since */
    const char *device;                /* NULL: the default one */
    tssa_compile compile;
    tssa_precision precision;
    double share; /* as tssa_session_options.data_share */
    bool allow_tf32, no_winograd;
    bool counted; /* the device counts, and told `work` of the latest run */
    tssa_session_work work;
    tssa_memory_use use;          /* of runs, as subject_read_memory found it last */
    struct profile_table profile; /* of runs after those that count; may be empty */
    uint64_t profiled_runs;
    double profiled_ns;
};

/* Loads, fixes dims, optimizes and makes the session. Not EXIT_OK: it was said why. subject_close
 * it in any case. */
enum exit_code subject_open(struct subject *subject, const struct bench_arguments *arguments,
                            const struct target *target, int64_t size,
                            const struct model_bytes *bytes);
/* Before the first run. `lender`: the model of the target's lender, or NULL. Not EXIT_OK: it was
 * said why. */
enum exit_code subject_make_inputs(struct subject *subject, const struct bench_arguments *arguments,
                                   const tssa_model *lender);
/* One run with a set, so that what is wrong with it is found out before minutes are spent. The
 * first is told apart from all others. */
tssa_status *subject_try_set(struct subject *subject, size_t set);
/* One that the model does not take is left out. */
void subject_drop_set(struct subject *subject, size_t set);
/* Runs with a session that records a profile, in place of the other, for `seconds` and a round
 * through the sets at least. */
tssa_status *subject_profile(struct subject *subject, double seconds, bool layers);
/* What runs of its session take; how much of that is live is known of profiled ones. */
tssa_status *subject_read_memory(struct subject *subject);
/* What the latest run of its session asked of a device that counts; of no other. */
tssa_status *subject_read_work(struct subject *subject);
void subject_close(struct subject *subject);

/* Somebody who calls a subject: a thread of its own has one of its own. */
struct caller {
    struct subject *subject;
    tssa_value **outputs;
    struct callee callee; /* for measure.h; caller_open sets it */
};

tssa_status *caller_open(struct caller *caller, struct subject *subject);
void caller_close(struct caller *caller);

#endif
