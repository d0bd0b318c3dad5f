/* SPDX-License-Identifier: Apache-2.0 */
/* One cmocka test per committed model: models/NAME/model.onnx. */
#ifndef TSSA_TESTS_COMMITTED_MODELS_H
#define TSSA_TESTS_COMMITTED_MODELS_H

/* *state is the model's path. Returns what main should; having no models is a failure. */
int committed_models_test(void (*test)(void **state));

#endif
