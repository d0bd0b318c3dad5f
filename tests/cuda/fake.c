/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- One at a time --------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

struct fake_guard fake_enter(void)
{
    pthread_mutex_lock(&lock);
    return (struct fake_guard){0};
}

void fake_leave(struct fake_guard *guard)
{
    (void)guard;
    pthread_mutex_unlock(&lock);
}

/* ---- Failures on demand ---------------------------------------------------------------------- */

static unsigned long n_calls, failing_call = -1ul;
static unsigned failing_code;

unsigned long fake_calls(void)
{
    return n_calls;
}

void fake_fail_at(unsigned long call, unsigned code)
{
    failing_call = call;
    failing_code = code;
}

unsigned fake_planned(const char *function)
{
    return n_calls++ == failing_call ? failing_code : fake_told(function);
}

unsigned fake_told(const char *function)
{
    const char *plan = getenv("FAKE_CUDA_FAIL");
    const size_t length = strlen(function);
    if (!plan || strncmp(plan, function, length) != 0 || plan[length] != ':')
        return FAKE_OK;
    const char *what = plan + length + 1;
    if (strcmp(what, "crash") == 0)
        abort();
    while (strcmp(what, "hang") == 0)
        sleep(1);
    return (unsigned)strtoul(what, NULL, 10);
}

unsigned fake_number(const char *name, unsigned otherwise)
{
    const char *number = getenv(name);
    return number ? (unsigned)strtoul(number, NULL, 10) : otherwise;
}

/* ---- What is alive --------------------------------------------------------------------------- */

/* In a list, so that the leak checker sees that it is held. */
struct held {
    struct held *next;
};
static struct held *all_held;
static long alive;

void *fake_hold(size_t size)
{
    struct held *held = calloc(1, sizeof *held + 8 + size);
    if (!held)
        abort();
    held->next = all_held;
    all_held = held;
    return (char *)held + sizeof *held + 8;
}

void fake_count(int change)
{
    alive += change;
}

long fake_alive(void)
{
    return alive;
}
