/* SPDX-License-Identifier: Apache-2.0 */
/* The op table against what the standard says of operators (onnx/schema.def). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "onnx/schema.h"

/* Has the version of the operator an axis that need not be said? */
static bool standard_axis(const char *op, int version, int *axis)
{
    const struct schema *schema = schema_find(op, version);
    const char *at = schema ? strstr(schema->attributes, " axis=") : NULL;
    if (at)
        *axis = atoi(at + strlen(" axis="));
    return at != NULL;
}

static int newest_version(const struct ir_op_info *info)
{
    int newest = 0;
    for (const uint8_t *version = info->versions; *version; version++)
        newest = *version;
    return newest;
}

static void axes_are_the_standards(void **state)
{
    size_t compared = 0;
    (void)state;
    for (int id = 0; id < IR_OP_COUNT; id++) {
        const struct ir_op_info *info = ir_op_info((enum ir_op_id)id);
        int expected, axis, newest = newest_version(info);
        if (info->domain[0])
            continue;
        bool said = ir_op_default_axis(info, 0, &axis);
        if (standard_axis(info->name, newest, &expected)) {
            if (!said || axis != expected)
                fail_msg("%s: the axis is %d", info->name, expected);
        } else if (said && !schema_has_attribute(schema_find(info->name, newest), "axis")) {
            fail_msg("%s: it has no axis", info->name);
        }
        for (const uint8_t *version = info->versions; said && *version; version++)
            if (standard_axis(info->name, *version, &expected)) {
                ir_op_default_axis(info, *version, &axis);
                if (axis != expected)
                    fail_msg("%s-%d: the axis is %d, not %d", info->name, *version, expected, axis);
                compared++;
            }
    }
    assert_in_range(compared, 60, 200); /* else nothing was found to compare */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(axes_are_the_standards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
