/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How the process ended, when it could be told at all. */
enum { ENDED_WELL, ENDED_FAILED, ENDED_NO_CARD };

static sigset_t interrupts(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

/* Blocked, and looked for: no handler, so no variable for it to write. */
void run_hold_interrupts(void)
{
    sigset_t set = interrupts();
    sigprocmask(SIG_BLOCK, &set, NULL);
}

bool run_interrupted(void)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1;
}

static int ask(const struct probe *probe, FILE *records)
{
    struct card card;
    sigset_t set = interrupts();
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    tssa_status *status = card_open(&card);
    int end = status ? ENDED_NO_CARD : ENDED_WELL;
    if (!status) {
        status = probe->ask(&card, records);
        end = status ? ENDED_FAILED : ENDED_WELL;
    }
    if (status)
        record_error(records, status);
    else
        record_done(records);
    tssa_status_free(status);
    card_close(&card);
    return end;
}

/* Waits for the process and kills it at the deadline, or when the user wants to stop; true when it
 * had to be killed. */
static bool wait_until(pid_t process, double deadline, int *state)
{
    static const struct timespec nap = {.tv_nsec = 5000000};
    while (waitpid(process, state, WNOHANG) == 0) {
        if (stopwatch_now() > deadline || run_interrupted()) {
            kill(process, SIGKILL);
            waitpid(process, state, 0);
            return true;
        }
        nanosleep(&nap, NULL);
    }
    return false;
}

/* The last error in the records, as a text to keep; NULL when there is none. */
static char *error_of(FILE *in)
{
    struct record_reader reader = {.in = in};
    struct record record;
    char *text = NULL;
    rewind(in);
    while (record_next(&reader, &record)) {
        if (record.kind != RECORD_ERROR)
            continue;
        free(text);
        text = strdup(record.text);
    }
    free(reader.line);
    rewind(in);
    return text;
}

static char *failure_of(int state, bool late, double limit, FILE *records)
{
    char *text = NULL;
    int size;
    if (run_interrupted())
        size = asprintf(&text, "interrupted");
    else if (late)
        size = asprintf(&text, "stopped after its limit of %g s", limit);
    else if (WIFSIGNALED(state))
        size =
            asprintf(&text, "ended by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
    else if (WEXITSTATUS(state) == ENDED_WELL)
        return NULL;
    else if ((text = error_of(records)))
        return text;
    else
        size = asprintf(&text, "ended with status %d", WEXITSTATUS(state));
    return size < 0 ? NULL : text;
}

tssa_status *run_probe(const struct probe *probe, double limit, struct answer *answer)
{
    FILE *records = tmpfile();
    if (!records)
        return ERROR(TSSA_IO, "no temporary file: %s", strerror(errno));
    fflush(NULL); /* or the process would print it once more */
    double start = stopwatch_now();
    pid_t process = fork();
    if (process < 0) {
        fclose(records);
        return ERROR(TSSA_RUNTIME, "no process: %s", strerror(errno));
    }
    if (process == 0)
        exit(ask(probe, records));
    int state = 0;
    bool late = wait_until(process, start + limit, &state);
    *answer = (struct answer){.probe = probe,
                              .records = records,
                              .seconds = stopwatch_now() - start,
                              .failure = failure_of(state, late, limit, records)};
    answer->no_card = !late && WIFEXITED(state) && WEXITSTATUS(state) == ENDED_NO_CARD;
    rewind(records);
    return NULL;
}

void run_answer_free(struct answer *answer)
{
    if (answer->records)
        fclose(answer->records);
    free(answer->failure);
    *answer = (struct answer){0};
}
