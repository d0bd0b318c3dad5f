/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LLVM 19's C interface, as far as it is used (api.def), found in the library at run time: building
 * needs no header of LLVM. Numbers of enumerations are those of llvm-c/Core.h and
 * llvm-c/TargetMachine.h, which do not change.
 */
#ifndef TSSA_CODEGEN_LLVM_API_H
#define TSSA_CODEGEN_LLVM_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LLVMOpaqueContext *LLVMContext;
typedef struct LLVMOpaqueModule *LLVMModule;
typedef struct LLVMOpaqueType *LLVMType;
typedef struct LLVMOpaqueValue *LLVMValue;
typedef struct LLVMOpaqueBasicBlock *LLVMBlock;
typedef struct LLVMOpaqueBuilder *LLVMBuilder;
typedef struct LLVMOpaqueMemoryBuffer *LLVMBuffer;
typedef struct LLVMOpaqueAttributeRef *LLVMAttribute;
typedef struct LLVMTarget *LLVMTarget;
typedef struct LLVMOpaqueTargetMachine *LLVMMachine;
typedef struct LLVMOpaqueTargetData *LLVMLayout;

enum llvm_opcode {
    LLVM_ADD = 8,
    LLVM_FADD = 9,
    LLVM_SUB = 10,
    LLVM_FSUB = 11,
    LLVM_MUL = 12,
    LLVM_FMUL = 13,
    LLVM_UDIV = 14,
    LLVM_SDIV = 15,
    LLVM_FDIV = 16,
    LLVM_UREM = 17,
    LLVM_SREM = 18,
    LLVM_SHL = 20,
    LLVM_LSHR = 21,
    LLVM_ASHR = 22,
    LLVM_AND = 23,
    LLVM_OR = 24,
    LLVM_XOR = 25,
    LLVM_TRUNC = 30,
    LLVM_ZEXT = 31,
    LLVM_SEXT = 32,
    LLVM_FP_TO_SI = 34,
    LLVM_UI_TO_FP = 35,
    LLVM_SI_TO_FP = 36,
    LLVM_FP_TRUNC = 37,
    LLVM_FP_EXT = 38,
    LLVM_PTR_TO_INT = 39,
    LLVM_BITCAST = 41
};

enum llvm_predicate {
    LLVM_IEQ = 32,
    LLVM_INE,
    LLVM_UGT,
    LLVM_UGE,
    LLVM_ULT,
    LLVM_ULE,
    LLVM_SGT,
    LLVM_SGE,
    LLVM_SLT,
    LLVM_SLE,
    LLVM_OEQ = 1,
    LLVM_OGT = 2,
    LLVM_OGE = 3,
    LLVM_OLT = 4,
    LLVM_OLE = 5,
    LLVM_ONE = 6,
    LLVM_UNO = 8,
    LLVM_UNE = 14
};

enum {
    LLVM_LEVEL_DEFAULT = 2,
    LLVM_RELOC_PIC = 2,
    LLVM_MODEL_SMALL = 3,
    LLVM_OBJECT_FILE = 1,
    LLVM_RETURN_STATUS = 2
};
#define LLVM_OF_FUNCTION UINT32_MAX /* the index of a function's own attributes */

struct llvm_api {
#define API(result, name, params) result(*name) params;
#include "codegen/llvm/api.def"
#undef API
};

/* Opens the library. False: it is not here, or not as it should be, and the message says so. */
bool llvm_api_open(struct llvm_api *api, char *message, size_t size);

#endif
