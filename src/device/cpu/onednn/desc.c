/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/onednn.h"

#if DNNL_VERSION_MAJOR >= 3

bool desc_make(dnnl_memory_desc_t *desc, int n, const dnnl_dims_t dims, dnnl_data_type_t type,
               dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(desc, n, dims, type, tag) == dnnl_success;
}

bool desc_copy(dnnl_memory_desc_t *desc, desc_view from)
{
    return dnnl_memory_desc_clone(desc, from) == dnnl_success;
}

void desc_drop(dnnl_memory_desc_t *desc)
{
    dnnl_memory_desc_destroy(*desc);
}

#else

bool desc_make(dnnl_memory_desc_t *desc, int n, const dnnl_dims_t dims, dnnl_data_type_t type,
               dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(desc, n, dims, type, tag) == dnnl_success;
}

bool desc_copy(dnnl_memory_desc_t *desc, desc_view from)
{
    *desc = *from;
    return true;
}

void desc_drop(dnnl_memory_desc_t *desc)
{
    (void)desc;
}

#endif
