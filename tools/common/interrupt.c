/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/time.h>

/* A signal handler has no argument to find the session by. */
static _Atomic(tssa_session *) running;
static volatile sig_atomic_t came;

static void stop(int number)
{
    came = number;
    tssa_session_stop(atomic_load(&running));
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void interrupt_arm(tssa_session *session, unsigned seconds)
{
    came = 0;
    handle(SIGINT, stop);
    interrupt_limit(session, seconds);
}

static void set_timer(double seconds)
{
    struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    timer.it_value.tv_usec = (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}

void interrupt_limit(tssa_session *session, double seconds)
{
    atomic_store(&running, session);
    handle(SIGALRM, stop);
    set_timer(seconds);
}

void interrupt_switch(tssa_session *session)
{
    atomic_store(&running, session);
    if (came)
        tssa_session_stop(session); /* the signal found the other one */
}

int interrupt_came(void)
{
    return came;
}

void interrupt_disarm(void)
{
    set_timer(0);
    handle(SIGINT, SIG_DFL);
    handle(SIGALRM, SIG_DFL);
    atomic_store(&running, NULL);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t pending;

static void remember(int number)
{
    pending = number;
}

/* Not those that are ignored: nohup's SIGHUP, say. */
static void replace(void (*from)(int), void (*to)(int))
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct sigaction old, action = {.sa_handler = to, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        if (sigaction(endings[i], NULL, &old) == 0 && old.sa_handler == from)
            sigaction(endings[i], &action, NULL);
    }
}

void interrupt_defer(void)
{
    pending = 0;
    replace(SIG_DFL, remember);
}

bool interrupt_pending(void)
{
    return pending != 0;
}

void interrupt_resume(void)
{
    replace(remember, SIG_DFL);
    if (pending)
        raise(pending);
}
