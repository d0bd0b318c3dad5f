/* SPDX-License-Identifier: Apache-2.0 */
/* With TSSA_TEST_CARD in the environment, tests of CUDA are of this machine's card, with no fakes.
 */
#ifndef TSSA_TESTS_COMMON_TEST_CARD_H
#define TSSA_TESTS_COMMON_TEST_CARD_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool test_card(void)
{
    return getenv("TSSA_TEST_CARD") != NULL;
}

#endif
