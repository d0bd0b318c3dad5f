/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bool programs_seed(uint64_t *seed)
{
    const char *text = getenv("TSSA_SEED");
    if (text)
        *seed = strtoull(text, NULL, 10);
    return text != NULL;
}

/* 0: it is not said; *share tells whether it is in hundredths. */
static unsigned long asked(bool *share)
{
    char *end;
    const char *text = getenv("TSSA_PROGRAMS");
    *share = false;
    if (!text)
        return 0;
    unsigned long number = strtoul(text, &end, 10);
    *share = strcmp(end, "%") == 0;
    if (number == 0 || (*end && !*share))
        fail_msg("TSSA_PROGRAMS=%s is neither a number of programs nor a share, as in 25%%", text);
    return number;
}

unsigned long programs_count(unsigned long usual)
{
    bool share;
    unsigned long number = asked(&share);
    if (!number)
        return usual;
    if (!share)
        return number;
    return usual * number < 100 ? 1 : usual * number / 100;
}

long programs_stride(void)
{
    bool share;
    unsigned long number = asked(&share);
    return share && number < 100 ? (long)(100 / number) : 1;
}
