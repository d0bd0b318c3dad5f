/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight lists (IR_FUSE_LISTS) in one launch, of which blocks, or what blocks do, up to `end` have
 * one. Who has them says as LIST(i) what a launch is given of list i, its end##i among it, and as
 * TAKE(i) where that goes. This stands before the texts that have lists (CMakeLists.txt).
 */
/* That of which `number` is, from `begin` on. */
#define TAKE_LIST_OF(number)                                                                       \
    TAKE(0)                                                                                        \
    TAKE_BEHIND(number, 1)                                                                         \
    TAKE_BEHIND(number, 2)                                                                         \
    TAKE_BEHIND(number, 3)                                                                         \
    TAKE_BEHIND(number, 4)                                                                         \
    TAKE_BEHIND(number, 5)                                                                         \
    TAKE_BEHIND(number, 6)                                                                         \
    TAKE_BEHIND(number, 7)
#define TAKE_BEHIND(number, i)                                                                     \
    if ((number) >= end) {                                                                         \
        begin = end;                                                                               \
        TAKE(i)                                                                                    \
    }
