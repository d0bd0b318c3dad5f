/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session says of a convolution of bytes that was a product with a matrix: its weights are
 * constants, and are that matrix as the model has it, of dims [in][out][1][1]. Nobody turns them
 * but who packs them.
 */
#ifndef TSSA_IR_WEIGHTS_TURNED_H
#define TSSA_IR_WEIGHTS_TURNED_H

#define IR_WEIGHTS_TURNED "weights_turned"

#endif
