/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors written out element by element, for what no operator of vectors is, as fused
 * multiply-adds: compilers make one instruction of
 *
 *     (lanes){EACH_OF_8(f)}
 *
 * where f(i) is what element i becomes. A loop over the elements would not become one where it is
 * unrolled.
 */
#ifndef TSSA_KERNELS_CPU_LIB_EACH_LANE_H
#define TSSA_KERNELS_CPU_LIB_EACH_LANE_H

#define EACH_OF_4(f) f(0), f(1), f(2), f(3)
#define EACH_OF_8(f) EACH_OF_4(f), f(4), f(5), f(6), f(7)
#define EACH_OF_16(f) EACH_OF_8(f), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)

#endif
