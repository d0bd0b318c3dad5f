/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_probe: asks a card what the design of a CUDA backend wants to know (docs/cuda.md). */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_probe/report.h"

enum { ALL_ANSWERED, SOME_FAILED, BAD_USAGE, NO_CARD, INTERRUPTED = 130 };
enum { ONLY_LIMIT = 64 };

struct options {
    const char *json;
    const struct probe *only[ONLY_LIMIT];
    size_t only_count;
    double limit;
    int compile_for; /* an architecture, or 0 */
};

static void print_list(void)
{
    for (size_t i = 0; i < probe_count; i++)
        printf("  %-18s %s\n", probes[i].name, probes[i].question);
}

static void print_help(void)
{
    printf("Usage: cuda_probe [OPTION]...\n"
           "Asks the first CUDA card some questions and prints the answers.\n\n"
           "  --only NAME      ask this one (may be given several times)\n"
           "  --json FILE      also write all answers there\n"
           "  --limit SECONDS  for each probe (default 60)\n"
           "  --compile ARCH   only compile the kernels, for sm_ARCH; needs NVRTC and no card\n"
           "  --list           the probes, and what they ask\n"
           "  --help           this\n\n"
           "Environment: " SHARED_FOLDER " names a folder from which alone libcuda, libnvrtc,\n"
           "libcublasLt and libcudnn are taken; CUDA_HOME a toolkit to look into.\n\n"
           "Status: 0 all answered, 1 some could not be, 2 wrong usage, 3 no driver or no card (or "
           "no\n"
           "NVRTC with --compile), 130 interrupted.\n\nProbes:\n");
    print_list();
}

static bool add_only(struct options *options, const char *name)
{
    const struct probe *probe = probe_find(name);
    if (probe && options->only_count < ONLY_LIMIT) {
        options->only[options->only_count++] = probe;
        return true;
    }
    fprintf(stderr, "cuda_probe: there is no probe '%s' (--list shows them)\n", name);
    return false;
}

static bool parse_number(const char *option, const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    if (end != text && *end == '\0' && *number > 0 && *number < 1e6)
        return true;
    fprintf(stderr, "cuda_probe: %s wants a number above 0, not '%s'\n", option, text);
    return false;
}

/* An exit status, or -1 to go on. */
static int parse_option(struct options *options, int option, const char *text)
{
    double number;
    switch (option) {
    case 'o':
        return add_only(options, text) ? -1 : BAD_USAGE;
    case 'j':
        options->json = text;
        return -1;
    case 't':
        return parse_number("--limit", text, &options->limit) ? -1 : BAD_USAGE;
    case 'c':
        if (!parse_number("--compile", text, &number))
            return BAD_USAGE;
        options->compile_for = (int)number;
        return -1;
    case 'l':
        print_list();
        return ALL_ANSWERED;
    case 'h':
        print_help();
        return ALL_ANSWERED;
    default:
        return BAD_USAGE; /* getopt said why */
    }
}

static int parse_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"only", required_argument, NULL, 'o'},
        {"json", required_argument, NULL, 'j'},
        {"limit", required_argument, NULL, 't'},
        {"compile", required_argument, NULL, 'c'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, status = -1;
    while (status < 0 && (option = getopt_long(argc, argv, "", known, NULL)) != -1)
        status = parse_option(options, option, optarg);
    if (status < 0 && optind < argc) {
        fprintf(stderr, "cuda_probe: no argument is wanted, and there is '%s'\n", argv[optind]);
        status = BAD_USAGE;
    }
    return status;
}

static bool wanted(const struct options *options, const struct probe *probe)
{
    for (size_t i = 0; i < options->only_count; i++) {
        if (options->only[i] == probe)
            return true;
    }
    return options->only_count == 0 || probe == &probes[0];
}

/* Reports an answer, and says what it makes of the exit status. */
static int take_answer(struct answer *answer, FILE *json, bool first)
{
    if (json)
        report_json(json, answer, first);
    if (first && answer->no_card) {
        fprintf(stderr, "cuda_probe: nothing measured: %s\n", answer->failure);
        return NO_CARD;
    }
    report_print(answer);
    return answer->failure ? SOME_FAILED : ALL_ANSWERED;
}

static int ask_all(const struct options *options, FILE *json)
{
    int status = ALL_ANSWERED;
    for (size_t i = 0; i < probe_count && status != NO_CARD && !run_interrupted(); i++) {
        struct answer answer;
        if (!wanted(options, &probes[i]))
            continue;
        tssa_status *failed = run_probe(&probes[i], options->limit, &answer);
        if (failed) {
            fprintf(stderr, "cuda_probe: %s: %s\n", probes[i].name, tssa_status_message(failed));
            tssa_status_free(failed);
            status = SOME_FAILED;
            continue;
        }
        int taken = take_answer(&answer, json, i == 0);
        status = taken > status ? taken : status;
        run_answer_free(&answer);
    }
    return run_interrupted() ? INTERRUPTED : status;
}

static int ask_and_report(const struct options *options)
{
    FILE *json = options->json ? fopen(options->json, "w") : NULL;
    if (options->json && !json) {
        fprintf(stderr, "cuda_probe: %s: %s\n", options->json, strerror(errno));
        return BAD_USAGE;
    }
    run_hold_interrupts();
    if (json)
        report_json_begin(json);
    int status = ask_all(options, json);
    if (json)
        report_json_end(json);
    if (json && (fflush(json) != 0 || ferror(json))) {
        fprintf(stderr, "cuda_probe: %s: %s\n", options->json, strerror(errno));
        status = SOME_FAILED;
    }
    if (json)
        fclose(json);
    return status;
}

static int compile(int architecture)
{
    static const char *const kinds[] = {[IMAGE_CUBIN] = "machine code", [IMAGE_PTX] = "PTX"};
    for (int file = 0; file < KERNELS_COUNT; file++) {
        for (int kind = IMAGE_CUBIN; kind <= IMAGE_PTX; kind++) {
            struct image image;
            tssa_status *status = kernels_compile(file, architecture, kind, &image);
            if (status) {
                fprintf(stderr, "cuda_probe: %s: %s\n", kernels_name(file),
                        tssa_status_message(status));
                int end = tssa_status_code(status) == TSSA_UNSUPPORTED ? NO_CARD : SOME_FAILED;
                tssa_status_free(status);
                return end;
            }
            printf("%s: %zu bytes of %s for %d\n", kernels_name(file), image.size, kinds[kind],
                   architecture);
            allocator_free(&allocator_default, image.data);
        }
    }
    return ALL_ANSWERED;
}

int main(int argc, char **argv)
{
    struct options options = {.limit = 60};
    int status = parse_options(argc, argv, &options);
    if (status >= 0)
        return status;
    return options.compile_for ? compile(options.compile_for) : ask_and_report(&options);
}
