/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/cuda_api.h"

static const struct shared_names driver = {"CUDA driver", {"libcuda.so.1"}, NULL};

tssa_status *cuda_api_open(struct cuda_api *api)
{
    void *library;
    TRY(shared_open(&driver, &library));
#define LOAD(result, name, parameters) shared_function(library, #name, &api->name);
    CUDA_FUNCTIONS(LOAD)
#undef LOAD
    return NULL;
}

tssa_status *cuda_status(const struct cuda_api *api, cuda_result result, const char *function)
{
    if (result == 0)
        return NULL;
    tssa_code code = result == CUDA_OUT_OF_MEMORY ? TSSA_OUT_OF_MEMORY : TSSA_RUNTIME;
    const char *name = NULL, *text = NULL;
    if (api->cuGetErrorName && api->cuGetErrorName(result, &name) != 0)
        name = NULL;
    if (api->cuGetErrorString && api->cuGetErrorString(result, &text) != 0)
        text = NULL;
    return ERROR(code, "%s: %s, error %u (%s)", function, name ? name : "unknown", result,
                 text ? text : "the driver has no text for it");
}
