/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/cublaslt.h"

static const struct shared_names names = {
    "cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, NULL};

tssa_status *cublaslt_open(struct cublaslt *cublaslt)
{
    void *library;
    TRY(shared_open(&names, &library));
#define LOAD(result, name, parameters) shared_function(library, #name, &cublaslt->name);
    CUBLASLT_FUNCTIONS(LOAD)
#undef LOAD
    return NULL;
}

tssa_status *cublaslt_status(const struct cublaslt *cublaslt, cublaslt_result result,
                             const char *function)
{
    if (result == 0)
        return NULL;
    return ERROR(TSSA_RUNTIME, "%s: %s", function,
                 cublaslt->cublasLtGetStatusName ? cublaslt->cublasLtGetStatusName(result)
                                                 : "failed");
}
