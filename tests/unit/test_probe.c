/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured of the machine: it is there and finite, compares with what it is compared with,
 * and is kept where kernels are. How long anything takes is not tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/cache.h"
#include "common/process.h"
#include "device/cpu/compile.h"
#include "device/cpu/probe.h"
#include "device/cpu/rates.h"
#include "device/devices.h"

static bool is_time(double ns)
{
    return ns > 0 && ns < 1e6;
}

static void all_is_measured(void **state)
{
    (void)state;
    struct cpu_probe probe;
    assert_true(cpu_probe(&allocator_default, &probe));
    assert_true(is_time(probe.pace) && is_time(probe.operation) && is_time(probe.division));
    for (int i = 0; i < GIR_LEVELS; i++)
        assert_true(is_time(probe.read[i]) && is_time(probe.written[i]));
    print_message("{.bytes = {%.0f, %.0f}, .pace = %.3f, .operation = %.4f, .division = %.4f,\n"
                  " .read = {%.4f, %.4f, %.4f, %.4f}, .written = {%.4f, %.4f, %.4f, %.4f}}\n",
                  probe.bytes[0], probe.bytes[1], probe.pace, probe.operation, probe.division,
                  probe.read[0], probe.read[1], probe.read[2], probe.read[3], probe.written[0],
                  probe.written[1], probe.written[2], probe.written[3]);
}

static const struct cpu_probe some = {.bytes = {32768, 1 << 20},
                                      .pace = 1,
                                      .operation = 0.1,
                                      .division = 0.8,
                                      .read = {0.01, 0.02, 0.03, 0.08},
                                      .written = {0.02, 0.04, 0.06, 0.1}};

/* The same machine has the same rates; what takes twice as long there does here; what cannot be is
 * no measurement. */
static void rates_follow(void **state)
{
    (void)state;
    struct gir_rates rates = gir_rates_v4;
    struct cpu_probe other = some;
    cpu_probe_scale(&some, &some, &rates);
    assert_memory_equal(&rates, &gir_rates_v4, sizeof rates);
    other.operation *= 2;
    other.read[3] /= 2;
    other.bytes[1] *= 2;
    other.division *= 1000;
    other.pace = 0;
    cpu_probe_scale(&some, &other, &rates);
    assert_true(rates.operation == 2 * gir_rates_v4.operation);
    assert_true(rates.levels[3].read == gir_rates_v4.levels[3].read / 2);
    assert_true(rates.levels[1].bytes == gir_rates_v4.levels[1].bytes * 2);
    assert_true(rates.division == 8 * gir_rates_v4.division);
    assert_true(rates.launch == gir_rates_v4.launch);
    assert_true(rates.levels[0].read == gir_rates_v4.levels[0].read);
}

/* Once measured it is read: what was kept of another machine counts. */
static void it_is_measured_once(void **state)
{
    (void)state;
    char *folder = temporary_folder(), message[160];
    struct cache cache;
    struct device_context context;
    struct gir_rates none, first, second;
    size_t size;
    device_context_open(&context, &cpu_device, &allocator_default, NULL);
    cpu_rates(&context, &none); /* nothing is kept: nothing is measured */
    context.cache = folder;
    cpu_rates(&context, &first);
    cpu_rates(&context, &second);
    assert_memory_equal(&first, &second, sizeof first);
    assert_true(none.register_bytes == first.register_bytes);
    assert_true(cache_open(&cache, folder, cpu_codegen_level(), message, sizeof message));
    if (cache.folder >= 0) { /* else there is no plugin in this build, and nothing is kept */
        const struct cache_subject subject = {"probe 1", sizeof "probe 1"};
        struct cpu_probe *kept = cache_read(&cache, &allocator_default, subject, &size);
        assert_non_null(kept);
        assert_int_equal(size, sizeof *kept);
        kept->operation *= 2;
        assert_true(cache_write(&cache, &allocator_default, subject, NULL, kept, size, message,
                                sizeof message));
        cpu_rates(&context, &second);
        assert_true(second.operation > 1.1 * first.operation ||
                    first.operation > 7 * none.operation);
        allocator_free(&allocator_default, kept);
    }
    cache_close(&cache);
    context.cache = NULL;
    device_context_close(&context);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_measured),
        cmocka_unit_test(rates_follow),
        cmocka_unit_test(it_is_measured_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
