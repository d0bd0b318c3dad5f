/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* A signal handler has no argument to find the session by. */
static _Atomic(tssa_session *) running;

static void stop(int number)
{
    (void)number;
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
    atomic_store(&running, session);
    handle(SIGINT, stop);
    handle(SIGALRM, stop);
    alarm(seconds);
}

void interrupt_disarm(void)
{
    alarm(0);
    handle(SIGINT, SIG_DFL);
    handle(SIGALRM, SIG_DFL);
    atomic_store(&running, NULL);
}
