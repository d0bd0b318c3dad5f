/* SPDX-License-Identifier: Apache-2.0 */
/* One thread sleeps until the current activity has lasted a second. The state is the process's own. */
#include "tools/common/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define PATIENCE_SECONDS 1

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool running, stopping;
    bool said;              /* the current activity was announced */
    unsigned long activity; /* counts them; 0 in `what`: none */
    char what[200];
    const char *tool;
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *watcher(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&watch.mutex);
    while (!watch.stopping) {
        if (!watch.what[0] || watch.said) {
            pthread_cond_wait(&watch.changed, &watch.mutex);
            continue;
        }
        unsigned long activity = watch.activity;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += PATIENCE_SECONDS;
        int waited = 0;
        while (waited == 0 && !watch.stopping && watch.activity == activity)
            waited = pthread_cond_timedwait(&watch.changed, &watch.mutex, &until);
        if (waited == ETIMEDOUT && watch.activity == activity && !watch.stopping) {
            fprintf(stderr, "%s: %s ...\n", watch.tool, watch.what);
            watch.said = true;
        }
    }
    pthread_mutex_unlock(&watch.mutex);
    return NULL;
}

void progress_start(const char *tool)
{
    pthread_condattr_t attributes;
    watch.tool = tool;
    watch.stopping = false;
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
    watch.activity++;
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
