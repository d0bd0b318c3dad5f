/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference of the data movement, gather, generator, selection and sequence operators: types with
 * symbolic dims, and the elements of small integer tensors. A case is the ops of a program over the
 * inputs below, and the type of %y.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/infer_text.h"

#define INPUTS                                                                                     \
    "%x: f32[N, 4], %img: f32[B, 8, H, W], %v: i64[N], %list: i64[3], %any: f32[*], %unknown: ?, " \
    "%n: i64[], %m: i64[1], %b: bool[*], %s: seq(f32[N, 4]), %idx: i64[K], %idx2: i64[K, 2], %z: " \
    "f32[0, 3]"

struct infer_case {
    const char *ops, *result;
};

static void check(const struct infer_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        infer_gives(INPUTS, cases[i].ops, cases[i].result);
}

/* `result` is part of the message. */
static void check_errors(const struct infer_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        infer_refuses(INPUTS, cases[i].ops, TSSA_MALFORMED, cases[i].result);
}

#define CHECK(...)                                                                                 \
    check((const struct infer_case[]){__VA_ARGS__},                                                \
          sizeof((const struct infer_case[]){__VA_ARGS__}) / sizeof(struct infer_case))
#define ERRORS(...)                                                                                \
    check_errors((const struct infer_case[]){__VA_ARGS__},                                         \
                 sizeof((const struct infer_case[]){__VA_ARGS__}) / sizeof(struct infer_case))

/* A constant list %name. */
#define INTS(name, n, ...) "%" #name " = Constant() {value = i64[" #n "] [" #__VA_ARGS__ "]}\n"
#define INT(name, value_) "%" #name " = Constant() {value = i64[] " #value_ "}\n"

static void test_reshape(void **state)
{
    (void)state;
    CHECK(
        {INTS(t, 2, 0, -1) "%y = Reshape(%x, %t)", "f32[N, 4]"},
        {INTS(t, 1, -1) "%y = Reshape(%x, %t)", "f32[4*N]"},
        {INTS(t, 3, -1, 2, 2) "%y = Reshape(%x, %t)", "f32[N, 2, 2]"},
        {INTS(t, 2, -1, 8) "%y = Reshape(%x, %t)", "f32[floordiv(N, 2), 8]"},
        {INTS(t, 3, 0, 8, -1) "%y = Reshape(%img, %t)", "f32[B, 8, H*W]"},
        {INTS(t, 4, 0, 2, 4, -1) "%y = Reshape(%img, %t)", "f32[B, 2, 4, H*W]"},
        {INTS(p, 8, 0, 0, 1, 1, 0, 0, 0, 0) "%c = Pad(%img, %p)\n%d = Shape(%c) {start = 2, end = "
                                            "3}\n" INTS(rest, 1, -1) "%t = Concat(%d, %rest) {axis "
                                                                     "= 0}\n%y = Reshape(%c, %t)",
         "f32[H + 1, 8*B*W + 8*B]"},
        {INTS(t, 2, 0, -1) "%y = Reshape(%z, %t)", "f32[0, 3]"},
        {INTS(t, 2, 7, 0) "%y = Reshape(%z, %t) {allowzero = 1}", "f32[7, 0]"},
        {INTS(t, 2, 0, 0) "%y = Reshape(%any, %t)", "f32[#1, #2]"},
        {"%y = Reshape(%x, %list)", "f32[#1, #2, #3]"}, {"%y = Reshape(%x, %idx)", "f32[*]"},
        {INTS(t, 1, -1) "%y = Reshape(%unknown, %t)", "undefined[#1]"},
        {INTS(t, 2, 1, 3) "%y = Reshape(%list, %t)", "i64[1, 3]"},
        {INTS(l, 2, 7, 9) INTS(t, 1, 2) "%y = Reshape(%l, %t)", "i64[2] [7, 9]"},
        {INTS(l, 1, 7) "%t = Constant() {value = i64[0] []}\n%y = Reshape(%l, %t)", "i64[] [7]"});
    /* The exporters' way of flattening everything but the batch. */
    CHECK({"%shape = Shape(%img)\n" INT(zero, 0) "%batch = Gather(%shape, %zero)\n" INTS(
               zeros, 1,
               0) "%one = Unsqueeze(%batch, %zeros)\n" INTS(rest, 1,
                                                            -1) "%t = Concat(%one, %rest) {axis = "
                                                                "0}\n%y = Reshape(%img, %t)",
           "f32[B, 8*H*W]"});
    ERRORS({INTS(t, 2, -1, -1) "%y = Reshape(%x, %t)", "more than one -1"},
           {INTS(t, 3, 0, 0, 0) "%y = Reshape(%x, %t)", "target dim 2 copies"},
           {INTS(t, 1, -2) "%y = Reshape(%x, %t)", "the dim -2"},
           {INTS(t, 2, 3, 0) "%y = Reshape(%z, %t)", "0 elements cannot be reshaped to 9"},
           {INTS(t, 1, 4) "%y = Reshape(%list, %t)", "3 elements cannot be reshaped to 4"},
           {INTS(t, 2, 2, -1) "%y = Reshape(%list, %t)", "no size fits the -1"});
}

static void test_flatten_squeeze_unsqueeze(void **state)
{
    (void)state;
    CHECK(
        {"%y = Flatten(%img)", "f32[B, 8*H*W]"},
        {"%y = Flatten(%img) {axis = 0}", "f32[1, 8*B*H*W]"},
        {"%y = Flatten(%img) {axis = -1}", "f32[8*B*H, W]"}, {"%y = Flatten(%any)", "f32[#1, #2]"},
        {INTS(a, 2, 0, -1) "%y = Unsqueeze(%x, %a)", "f32[1, N, 4, 1]"},
        {"%y = Unsqueeze(%x, %m)", "f32[#1, #2, #3]"}, {"%y = Unsqueeze(%x, %idx)", "f32[*]"},
        {"%y = Unsqueeze(%any, %m)", "f32[*]"},
        {INTS(a, 1, 0) "%d = Constant() {value = i64[] 5}\n%y = Unsqueeze(%d, %a)", "i64[1] [5]"},
        {INTS(a, 1, 0) "%u = Unsqueeze(%x, %a)\n%y = Squeeze(%u, %a)", "f32[N, 4]"},
        {INTS(a, 1, 0) "%u = Unsqueeze(%list, %a)\n%y = Squeeze(%u)", "i64[3]"},
        {"%y = Squeeze(%x)", "f32[*]"}, {"%y = Squeeze(%img, %m)", "f32[#1, #2, #3]"},
        {INTS(a, 1, 0) "%d = Constant() {value = i64[1] [5]}\n%y = Squeeze(%d, %a)", "i64[] [5]"});
    ERRORS({INTS(a, 1, 1) "%y = Squeeze(%x, %a)", "axis 1 has the size 4"},
           {INTS(a, 2, 0, 0) "%y = Unsqueeze(%x, %a)", "axis 0 is given twice"},
           {INTS(a, 1, 3) "%y = Unsqueeze(%x, %a)", "axis 3 is out of range"},
           {"%y = Flatten(%x) {axis = 3}", "axis 3 is out of range"});
}

static void test_shape_and_size(void **state)
{
    (void)state;
    CHECK({"%y = Shape(%img)", "i64[4] [B, 8, H, W]"},
          {"%y = Shape(%img) {start = 1, end = -1}", "i64[2] [8, H]"},
          {"%y = Shape(%img) {start = 3, end = 1}", "i64[0] []"}, {"%y = Shape(%any)", "i64[#1]"},
          {"%y = Size(%img)", "i64[] [8*B*H*W]"}, {"%y = Size(%any)", "i64[]"});
}

static void test_permutations(void **state)
{
    (void)state;
    CHECK({"%y = Transpose(%img)", "f32[W, H, 8, B]"},
          {"%y = Transpose(%img) {perm = [0, 2, 3, 1]}", "f32[B, H, W, 8]"},
          {"%y = Transpose(%any) {perm = [1, 0]}", "f32[#1, #2]"},
          {"%y = Transpose(%any)", "f32[*]"},
          {"%y = DepthToSpace(%img) {blocksize = 2}", "f32[B, 2, 2*H, 2*W]"},
          {"%y = SpaceToDepth(%img) {blocksize = 2}", "f32[B, 32, floordiv(H, 2), floordiv(W, 2)]"},
          {"%y = SpaceToDepth(%any) {blocksize = 2}", "f32[#1, #2, #3, #4]"});
    ERRORS({"%y = Transpose(%x) {perm = [0]}", "perm has 1 axes"},
           {"%y = Transpose(%x) {perm = [0, 0]}", "axis 0 twice"},
           {"%y = DepthToSpace(%x) {blocksize = 2}", "rank 2, not 4"},
           {"%y = DepthToSpace(%img) {blocksize = 0}", "blocksize is 0"});
}

static void test_concat_and_split(void **state)
{
    (void)state;
    CHECK({"%y = Concat(%x, %x) {axis = 0}", "f32[2*N, 4]"},
          {"%y = Concat(%x, %x, %x) {axis = -1}", "f32[N, 12]"},
          {"%y = Concat(%x, %any) {axis = 0}", "f32[#1, 4]"},
          {"%y = Concat(%any) {axis = 0}", "f32[*]"},
          {"%y = Concat(%list, %v) {axis = 0}", "i64[N + 3]"},
          {"%d = Shape(%x)\n%y = Concat(%d, %m) {axis = 0}", "i64[3] [N, 4, ?]"},
          {"%e = Constant() {value = f32[0] []}\n%y = Concat(%e, %x) {axis = 0}", "f32[N, 4]"},
          {"%a, %y = Split(%x) {axis = 1, num_outputs = 2}", "f32[N, 2]"},
          {"%a, %y = Split(%x) {axis = 0, num_outputs = 2}", "f32[N - ceildiv(N, 2), 4]"},
          {"%dbl = Concat(%x, %x) {axis = 0}\n%a, %y = Split(%dbl) {num_outputs = 2}", "f32[N, 4]"},
          {INTS(p, 2, 1, 3) "%a, %y = Split(%x, %p) {axis = 1}", "f32[N, 3]"},
          {INTS(p, 2, 1, 2) INTS(l, 3, 7, 8, 9) "%a, %y = Split(%l, %p)", "i64[2] [8, 9]"},
          {"%a, %y = Split(%x, %idx)", "f32[#1, 4]"}, {"%a, %y = Split(%any)", "f32[*]"});
    ERRORS({"%y = Concat(%x, %img) {axis = 0}", "operand 1 has rank 4, another has rank 2"},
           {"%y = Concat(%x, %z) {axis = 0}", "dims 1 are 4 and 3"},
           {"%y = Concat(%x) {axis = 2}", "axis 2 is out of range"},
           {INTS(p, 3, 1, 1, 2) "%a, %y = Split(%x, %p) {axis = 1}", "3 sizes for 2 outputs"},
           {INTS(p, 2, 5, -1) "%a, %y = Split(%x, %p) {axis = 1}", "negative"});
}

static void test_slice(void **state)
{
    (void)state;
#define CUT(starts, ends, axes) INTS(s0, 1, starts) INTS(e, 1, ends) INTS(a, 1, axes)
    CHECK({CUT(1, 9223372036854775807, 0) "%y = Slice(%x, %s0, %e, %a)", "f32[max(0, N - 1), 4]"},
          {CUT(0, 9223372036854775807, 0) "%y = Slice(%x, %s0, %e, %a)", "f32[N, 4]"},
          {CUT(0, 2147483647, 0) "%y = Slice(%x, %s0, %e, %a)", "f32[N, 4]"},
          {CUT(0, -1, 0) "%y = Slice(%x, %s0, %e, %a)", "f32[max(0, N - 1), 4]"},
          {CUT(0, 100, 0) "%y = Slice(%x, %s0, %e, %a)", "f32[min(100, N), 4]"},
          {CUT(1, 3, 1) "%y = Slice(%x, %s0, %e, %a)", "f32[N, 2]"},
          {CUT(-3, -1, -1) "%y = Slice(%x, %s0, %e, %a)", "f32[N, 2]"},
          {CUT(-1, -9223372036854775807, 0) INTS(st, 1, -1) "%y = Slice(%x, %s0, %e, %a, %st)",
           "f32[N, 4]"},
          {CUT(0, 9223372036854775807, 0) INTS(st, 1, 2) "%y = Slice(%x, %s0, %e, %a, %st)",
           "f32[ceildiv(N, 2), 4]"},
          {CUT(3, -9, 1) INTS(st, 1, -2) "%y = Slice(%x, %s0, %e, %a, %st)", "f32[N, 2]"},
          {CUT(0, 1, 0) "%y = Slice(%x, %s0, %m, %a)", "f32[#1, 4]"},
          {CUT(0, 1, 0) "%y = Slice(%x, %s0, %e, %m)", "f32[#1, #2]"},
          {CUT(0, 1, 0) "%y = Slice(%any, %s0, %e, %a)", "f32[*]"},
          {"%d = Shape(%img)\n" CUT(2, 4, 0) "%y = Slice(%d, %s0, %e, %a)", "i64[2] [H, W]"},
          {"%d = Shape(%img)\n" CUT(-1, -9, 0) INTS(st, 1, -2) "%y = Slice(%d, %s0, %e, %a, %st)",
           "i64[2] [W, 8]"},
          /* x[:B] of another dim, and of its own. */
          {"%d = Shape(%img) {end = 1}\n" CUT(0, 0, 0) "%y = Slice(%x, %s0, %d, %a)",
           "f32[min(B, N), 4]"},
          {"%d = Shape(%x) {end = 1}\n" CUT(0, 0, 0) "%y = Slice(%x, %s0, %d, %a)", "f32[N, 4]"});
    ERRORS({INTS(s0, 2, 0, 0) INTS(a, 2, 0, -2) "%y = Slice(%x, %s0, %s0, %a)",
            "axis 0 is sliced twice"},
           {CUT(0, 1, 2) "%y = Slice(%x, %s0, %e, %a)", "axis 2 is out of range"},
           {CUT(0, 1, 0) "%y = Slice(%x, %s0, %e, %a, %s0)", "step of axis 0 is 0"});
}

static void test_expand_tile_pad(void **state)
{
    (void)state;
    CHECK({INTS(t, 3, 2, 1, 4) "%y = Expand(%x, %t)", "f32[2, N, 4]"},
          {"%t = Shape(%img)\n%o = Constant() {value = f32[] 1}\n%y = Expand(%o, %t)",
           "f32[B, 8, H, W]"},
          {INTS(t, 1, 3) INT(o, 7) "%y = Expand(%o, %t)", "i64[3] [7, 7, 7]"},
          {"%y = Expand(%x, %list)", "f32[#1, #2, #3]"}, {"%y = Expand(%x, %idx)", "f32[*]"},
          {INTS(t, 2, 2, 3) "%y = Tile(%x, %t)", "f32[2*N, 12]"},
          {"%y = Tile(%x, %idx)", "f32[#1, #2]"},
          {INTS(t, 1, 2) INTS(l, 2, 5, 6) "%y = Tile(%l, %t)", "i64[4] [5, 6, 5, 6]"},
          {INTS(p, 4, 1, 0, 2, -1) "%y = Pad(%x, %p)", "f32[N + 3, 3]"},
          {INTS(p, 2, 1, 2) INTS(a, 1, -1) "%y = Pad(%x, %p, _, %a)", "f32[N, 7]"},
          {"%y = Pad(%x, %idx)", "f32[#1, #2]"}, {"%y = Pad(%any, %idx)", "f32[*]"},
          {INTS(t, 2, 5, 6) "%y = CenterCropPad(%x, %t)", "f32[5, 6]"},
          {INTS(t, 1, 5) "%y = CenterCropPad(%x, %t) {axes = [-1]}", "f32[N, 5]"},
          {"%y = ReverseSequence(%x, %v)", "f32[N, 4]"}, {"%y = Trilu(%x)", "f32[N, 4]"},
          {"%y = Trilu(%any)", "f32[*]"});
    ERRORS({INTS(t, 2, 2, 3) "%y = Expand(%x, %t)", "dims 4 and 3 do not broadcast"},
           {INTS(t, 1, 2) "%y = Tile(%x, %t)", "repeats has 1 elements"},
           {INTS(p, 4, 0, -3, 0, -2) "%y = Pad(%x, %p)", "axis 1 would get a negative size"},
           {INTS(p, 2, 0, 0) "%y = Pad(%x, %p)", "pads has 2 elements for 2 axes"},
           {"%y = Trilu(%v)", "rank 1, at least 2"});
}

static void test_gather_and_scatter(void **state)
{
    (void)state;
    CHECK({"%y = Gather(%x, %idx)", "f32[K, 4]"}, {"%y = Gather(%x, %n) {axis = 1}", "f32[N]"},
          {"%y = Gather(%x, %idx2) {axis = 1}", "f32[N, K, 2]"},
          {"%y = Gather(%any, %idx)", "f32[*]"},
          {"%d = Shape(%img)\n" INT(i, -1) "%y = Gather(%d, %i)", "i64[] [W]"},
          {"%d = Shape(%img)\n" INTS(i, 2, 2, 0) "%y = Gather(%d, %i)", "i64[2] [H, B]"},
          {"%y = GatherElements(%x, %idx2)", "f32[K, 2]"}, {"%y = GatherND(%x, %idx2)", "f32[K]"},
          {"%y = GatherND(%img, %idx2)", "f32[K, H, W]"}, {"%y = GatherND(%x, %idx)", "f32[*]"},
          {"%y = ScatterND(%img, %idx2, %any)", "f32[B, 8, H, W]"},
          {"%y = ScatterElements(%x, %idx2, %any)", "f32[N, 4]"},
          {"%d = Shape(%img)\n%i = Constant() {value = i64[1, 1] [2]}\n" INTS(
               u, 1, 9) "%y = ScatterND(%d, %i, %u)",
           "i64[4] [B, 8, 9, W]"},
          {"%d = Shape(%img)\n" INTS(i, 1, -1) "%y = ScatterElements(%d, %i, %m)", "i64[4]"},
          {"%y = ai.onnx.ml.ArrayFeatureExtractor(%x, %idx2)", "f32[N, 2*K]"},
          {"%y = TensorScatter(%img, %img)", "f32[B, 8, H, W]"});
}

static void test_gather_and_scatter_errors(void **state)
{
    (void)state;
    ERRORS({"%d = Shape(%img)\n" INT(i, 4) "%y = Gather(%d, %i)", "index 4 is outside a dim of 4"},
           {"%y = Gather(%x, %n) {axis = 2}", "axis 2 is out of range"},
           {"%y = GatherElements(%x, %idx)", "data has rank 2, indices have rank 1"},
           {"%y = GatherND(%v, %idx2)", "indices of 2 elements do not fit data of rank 1"},
           {"%y = GatherND(%x, %idx2) {batch_dims = 2}", "batch_dims 2"},
           {"%y = ScatterND(%v, %idx2, %v)", "do not fit data of rank 1"},
           {"%y = ScatterND(%x, %idx2, %x)", "updates have rank 2, not 1"},
           {"%y = TensorScatter(%x, %x) {axis = 0}", "axis is 0"});
}

static void test_generators(void **state)
{
    (void)state;
    CHECK({"%d = Shape(%x)\n%y = ConstantOfShape(%d)", "f32[N, 4]"},
          {INTS(d, 1, 3) "%y = ConstantOfShape(%d) {value = i64[1] [7]}", "i64[3] [7, 7, 7]"},
          {"%y = ConstantOfShape(%list)", "f32[#1, #2, #3]"},
          {"%y = ConstantOfShape(%idx)", "f32[*]"}, {"%y = EyeLike(%x)", "f32[N, 4]"},
          {"%y = EyeLike(%x) {dtype = 7}", "i64[N, 4]"},
          {INT(d, 10) "%y = OneHot(%idx, %d, %list)", "i64[K, 10]"},
          {"%y = OneHot(%idx, %n, %list) {axis = 0}", "i64[#1, K]"},
          {INT(a, 0) INT(d, 1) "%l = Size(%v)\n%y = Range(%a, %l, %d)", "i64[N]"},
          {INT(a, 2) INT(d, 3) INT(l, 10) "%y = Range(%a, %l, %d)", "i64[3] [2, 5, 8]"},
          {INT(a, 5) INT(d, -2) INT(l, 0) "%y = Range(%a, %l, %d)", "i64[3] [5, 3, 1]"},
          {INT(d, 1) "%l = Size(%v)\n%y = Range(%d, %l, %d)", "i64[max(0, N - 1)]"},
          {"%a = Constant() {value = f32[] 0}\n%d = Constant() {value = f32[] 0.5}\n"
           "%l = Constant() {value = f32[] 2}\n%y = Range(%a, %l, %d)",
           "f32[4]"});
    ERRORS({INT(a, 0) "%y = Range(%n, %n, %a)", "delta is 0"},
           {INTS(d, 1, -3) "%y = ConstantOfShape(%d)", "dim 0 of the shape is negative"},
           {"%y = EyeLike(%v)", "rank 1, not 2"});
}

static void test_selection(void **state)
{
    (void)state;
    CHECK({"%y = NonZero(%img)", "i64[4, #1]"}, {"%y = NonZero(%any)", "i64[#1, #2]"},
          {"%y = Compress(%x, %b)", "f32[#1]"}, {"%y = Compress(%x, %b) {axis = 0}", "f32[#1, 4]"},
          {"%y = Unique(%x)", "f32[#1]"}, {"%y = Unique(%x) {axis = 1}", "f32[N, #1]"},
          {"%a, %i, %y = Unique(%x)", "i64[4*N]"}, {"%a, %i, %y = Unique(%x) {axis = 0}", "i64[N]"},
          {"%a, %i, %j, %y = Unique(%x) {axis = 0}", "i64[#1]"});
}

static void test_sequences(void **state)
{
    (void)state;
    CHECK({"%y = SequenceConstruct(%x, %x)", "seq(f32[N, 4])"},
          {"%y = SequenceConstruct(%x, %z)", "seq(f32[#1, #2])"},
          {"%y = SequenceConstruct(%x, %img)", "seq(f32[*])"},
          {"%y = SequenceEmpty() {dtype = 7}", "seq(i64[*])"},
          {"%e = SequenceEmpty()\n%y = SequenceInsert(%e, %x)", "seq(f32[N, 4])"},
          {"%y = SequenceInsert(%s, %x)", "seq(f32[N, 4])"},
          {"%y = SequenceErase(%s)", "seq(f32[N, 4])"},
          /* N may have been another number when the element was inserted. */
          {"%y = SequenceAt(%s, %n)", "f32[#1, 4]"}, {"%y = SequenceLength(%s)", "i64[] [#1]"},
          {"%y = SplitToSequence(%x)", "seq(f32[1, 4])"},
          {"%y = SplitToSequence(%x) {keepdims = 0}", "seq(f32[4])"},
          {INT(p, 1) "%y = SplitToSequence(%x, %p) {keepdims = 0}", "seq(f32[4])"},
          {INT(p, 2) "%y = SplitToSequence(%x, %p) {axis = 1, keepdims = 0}", "seq(f32[N, 2])"},
          {INT(p, 2) "%y = SplitToSequence(%x, %p) {axis = 1}", "seq(f32[N, 2])"},
          {INT(p, 3) "%y = SplitToSequence(%x, %p) {axis = 1}", "seq(f32[N, #1])"},
          {INTS(p, 2, 2, 2) "%y = SplitToSequence(%x, %p) {axis = 1}", "seq(f32[N, 2])"},
          {"%y = ConcatFromSequence(%s) {axis = 0}", "f32[#1, 4]"},
          {"%y = ConcatFromSequence(%s) {axis = -1, new_axis = 1}", "f32[#1, 4, #2]"},
          {"%y = Optional(%x)", "optional(f32[N, 4])"},
          {"%o = Optional(%x)\n%y = OptionalGetElement(%o)", "f32[N, 4]"},
          {"%y = OptionalGetElement(%x)", "f32[N, 4]"},
          {"%y = OptionalHasElement(%s)", "bool[] [1]"},
          {"%y = OptionalHasElement()", "bool[] [0]"},
          {"%o = Optional(%x)\n%y = OptionalHasElement(%o)", "bool[]"});
    ERRORS({"%y = SequenceInsert(%s, %v)", "cannot hold both f32 and i64"},
           {"%y = SequenceConstruct(%x, %v)", "cannot hold both f32 and i64"},
           {"%y = SequenceAt(%x, %n)", "operand 0 is not a sequence"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_flatten_squeeze_unsqueeze),
        cmocka_unit_test(test_shape_and_size),
        cmocka_unit_test(test_permutations),
        cmocka_unit_test(test_concat_and_split),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_expand_tile_pad),
        cmocka_unit_test(test_gather_and_scatter),
        cmocka_unit_test(test_gather_and_scatter_errors),
        cmocka_unit_test(test_generators),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
