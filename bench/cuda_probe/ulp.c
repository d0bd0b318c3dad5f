/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/ulp.h"

#include <float.h>
#include <math.h>

double ulp_error(float value, double exact)
{
    float nearest = (float)exact;
    if (isnan(value) || isnan(nearest))
        return isnan(value) && isnan(nearest) ? 0 : INFINITY;
    if (isinf(value) || isinf(nearest))
        return value == nearest ? 0 : INFINITY;
    double size = fabs((double)nearest);
    int exponent = 0;
    frexp(size < (double)FLT_MIN ? (double)FLT_MIN : size, &exponent);
    return fabs((double)value - exact) / ldexp(1, exponent - FLT_MANT_DIG);
}
