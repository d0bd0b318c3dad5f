/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: a kernel as an object file, by LLVM. No pass is run: what is emitted is vectors
 * already. */
#include "codegen/codegen.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/llvm/kernel.h"
#include "gir/form.h"

__attribute__((visibility("default"))) const struct codegen *tssa_plugin_codegen_7(char *message,
                                                                                   size_t size);

static struct llvm_api llvm;

/* ---- The machine ----------------------------------------------------------------------------- */

static unsigned register_bytes(enum codegen_level level)
{
    return level == CODEGEN_V4 ? 64 : level == CODEGEN_V3 ? 32 : 16;
}

static LLVMMachine make_machine(enum codegen_level level, char *message, size_t size)
{
    const char *lower = level == CODEGEN_V3 ? "x86-64-v3" : "x86-64-v2";
    char *triple = llvm.LLVMGetDefaultTargetTriple(), *error = NULL;
    char *cpu = level == CODEGEN_V4 ? llvm.LLVMGetHostCPUName() : NULL;
    char *features = level == CODEGEN_V4 ? llvm.LLVMGetHostCPUFeatures() : NULL;
    LLVMTarget target;
    LLVMMachine machine = NULL;
    if (llvm.LLVMGetTargetFromTriple(triple, &target, &error))
        snprintf(message, size, "%s", error ? error : "LLVM does not know this machine");
    else
        machine = llvm.LLVMCreateTargetMachine(target, triple, cpu ? cpu : lower,
                                               features ? features : "", LLVM_LEVEL_DEFAULT,
                                               LLVM_RELOC_PIC, LLVM_MODEL_SMALL);
    if (error)
        llvm.LLVMDisposeMessage(error);
    if (cpu)
        llvm.LLVMDisposeMessage(cpu);
    if (features)
        llvm.LLVMDisposeMessage(features);
    llvm.LLVMDisposeMessage(triple);
    return machine;
}

/* ---- Compiling ------------------------------------------------------------------------------- */

static bool emit_object(const struct emitter *e, LLVMMachine machine, struct codegen_object *object,
                        char *message, size_t size)
{
    char *error = NULL;
    LLVMBuffer buffer = NULL;
    bool bad = e->failed || llvm.LLVMVerifyModule(e->module, LLVM_RETURN_STATUS, &error);
    if (!bad) {
        if (error)
            llvm.LLVMDisposeMessage(error);
        error = NULL;
        bad = llvm.LLVMTargetMachineEmitToMemoryBuffer(machine, e->module, LLVM_OBJECT_FILE, &error,
                                                       &buffer);
    }
    if (bad)
        snprintf(message, size, "%s", error ? error : "LLVM lacks an operation");
    if (error)
        llvm.LLVMDisposeMessage(error);
    if (!bad)
        *object = (struct codegen_object){.bytes = llvm.LLVMGetBufferStart(buffer),
                                          .size = llvm.LLVMGetBufferSize(buffer),
                                          .handle = buffer};
    return !bad;
}

static bool compile_in(struct emitter *e, enum codegen_level level, LLVMMachine machine,
                       struct codegen_object *object, char *message, size_t size)
{
    char *triple = llvm.LLVMGetDefaultTargetTriple();
    LLVMLayout layout = llvm.LLVMCreateTargetDataLayout(machine);
    e->module = llvm.LLVMModuleCreateWithNameInContext("kernel", e->context);
    e->builder = llvm.LLVMCreateBuilderInContext(e->context);
    llvm.LLVMSetTarget(e->module, triple);
    llvm.LLVMSetModuleDataLayout(e->module, layout);
    emit_kernel(e, gir_lanes_of(e->kernel, e->register_bytes), level == CODEGEN_V4);
    bool good = emit_object(e, machine, object, message, size);
    llvm.LLVMDisposeBuilder(e->builder);
    llvm.LLVMDisposeModule(e->module);
    llvm.LLVMDisposeTargetData(layout);
    llvm.LLVMDisposeMessage(triple);
    return good;
}

static bool compile(const struct gir_kernel *kernel, enum codegen_level level,
                    struct codegen_object *object, char *message, size_t size)
{
    struct emitter *e = kernel->grid ? NULL : calloc(1, sizeof *e);
    if (!e) {
        snprintf(message, size, "%s", kernel->grid ? "grids are other devices'" : "memory ran out");
        return false;
    }
    LLVMMachine machine = make_machine(level, message, size);
    bool good = false;
    if (machine) {
        e->llvm = &llvm;
        e->register_bytes = register_bytes(level);
        e->has_fma = level >= CODEGEN_V3;
        e->kernel = kernel;
        e->context = llvm.LLVMContextCreate();
        good = compile_in(e, level, machine, object, message, size);
        llvm.LLVMContextDispose(e->context);
        llvm.LLVMDisposeTargetMachine(machine);
    }
    free(e);
    return good;
}

static void release(struct codegen_object *object)
{
    llvm.LLVMDisposeMemoryBuffer(object->handle);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_open;
static char problem[256], version[48], library[PATH_MAX];

static void find_version(void)
{
    unsigned major, minor, patch;
    void *function;
    Dl_info info = {0};
    llvm.LLVMGetVersion(&major, &minor, &patch);
    snprintf(version, sizeof version, "LLVM %u.%u.%u", major, minor, patch);
    memcpy(&function, &llvm.LLVMGetVersion, sizeof function);
    if (dladdr(function, &info) && info.dli_fname)
        snprintf(library, sizeof library, "%s", info.dli_fname);
}

static void open_once(void)
{
    is_open = llvm_api_open(&llvm, problem, sizeof problem);
    if (!is_open)
        return;
    find_version();
    llvm.LLVMInitializeX86TargetInfo();
    llvm.LLVMInitializeX86Target();
    llvm.LLVMInitializeX86TargetMC();
    llvm.LLVMInitializeX86AsmPrinter();
}

const struct codegen *tssa_plugin_codegen_7(char *message, size_t size)
{
    static const struct codegen codegen = {
        .compile = compile, .release = release, .version = version, .library = library};
    pthread_once(&once, open_once);
    if (!is_open)
        snprintf(message, size, "%s", problem);
    return is_open ? &codegen : NULL;
}
