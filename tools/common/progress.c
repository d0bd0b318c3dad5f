/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread sleeps until the current activity has lasted a second, or many short ones have
 * together: of those one is announced after a second, another after two more, after four, ... The
 * state is the process's own.
 */
#include "tools/common/progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define PATIENCE_SECONDS 1
#define MAX_SILENCE_SECONDS 64

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool running, stopping;
    bool said;              /* the current activity was announced */
    struct timespec since;  /* when it began */
    struct timespec silent; /* when the last announcement was made, or the tool started */
    time_t silence;         /* how long there may be none while activities change */
    char what[200];
    const char *tool;
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct timespec now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t;
}

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* When the current activity is to be announced. */
static struct timespec due(void)
{
    struct timespec alone = watch.since, together = watch.silent;
    alone.tv_sec += PATIENCE_SECONDS;
    together.tv_sec += watch.silence;
    return is_before(alone, together) ? alone : together;
}

static void announce(void)
{
    fprintf(stderr, "%s: %s ...\n", watch.tool, watch.what);
    watch.said = true;
    watch.silent = now();
    if (watch.silence < MAX_SILENCE_SECONDS)
        watch.silence *= 2;
}

static void *watcher(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&watch.mutex);
    while (!watch.stopping) {
        const struct timespec until = due();
        if (!watch.what[0] || watch.said)
            pthread_cond_wait(&watch.changed, &watch.mutex);
        else if (is_before(until, now()))
            announce();
        else
            pthread_cond_timedwait(&watch.changed, &watch.mutex, &until);
    }
    pthread_mutex_unlock(&watch.mutex);
    return NULL;
}

void progress_start(const char *tool)
{
    pthread_condattr_t attributes;
    watch.tool = tool;
    watch.stopping = false;
    watch.silent = now();
    watch.silence = PATIENCE_SECONDS;
    if (pthread_condattr_init(&attributes) != 0)
        return;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    watch.running = pthread_create(&watch.thread, NULL, watcher, NULL) == 0;
}

static void change(const char *what)
{
    pthread_mutex_lock(&watch.mutex);
    snprintf(watch.what, sizeof watch.what, "%s", what);
    watch.since = now();
    watch.said = false;
    if (watch.running)
        pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.mutex);
}

void progress(const char *format, ...)
{
    char what[sizeof watch.what];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    change(what);
}

void progress_done(void)
{
    change("");
}

void progress_stop(void)
{
    if (!watch.running)
        return;
    pthread_mutex_lock(&watch.mutex);
    watch.stopping = true;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.mutex);
    pthread_join(watch.thread, NULL);
    pthread_cond_destroy(&watch.changed);
    watch.running = false;
}
