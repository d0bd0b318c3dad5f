/* SPDX-License-Identifier: Apache-2.0 */
/* The prelude of OpenCL C 1.2, of grids. It has no variadic macros. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT8_MIN CHAR_MIN
#define INT16_MIN SHRT_MIN
#define INT32_MIN INT_MIN
#define INT64_MIN LONG_MIN
#define INT8_MAX CHAR_MAX
#define INT16_MAX SHRT_MAX
#define INT32_MAX INT_MAX
#define INT64_MAX LONG_MAX
#define UINT8_MAX UCHAR_MAX
#define UINT16_MAX USHRT_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULONG_MAX

/* What the functions of ir/scalar are made of. */
#define SCALAR_FN static inline
#define SCALAR_TABLE __constant
#define sqrtf(x) sqrt((float)(x))
#define fabsf(x) fabs((float)(x))
#define copysignf(x, y) copysign((float)(x), (float)(y))

SCALAR_FN uint32_t f32_bits(float x)
{
    return as_uint(x);
}

SCALAR_FN float f32_of(uint32_t bits)
{
    return as_float(bits);
}

SCALAR_FN uint64_t f64_bits(double x)
{
    return as_ulong(x);
}

SCALAR_FN double f64_of(uint64_t bits)
{
    return as_double(bits);
}

SCALAR_FN float f32_fma(float a, float b, float c)
{
    return fma(a, b, c);
}

SCALAR_FN double f64_fma(double a, double b, double c)
{
    return fma(a, b, c);
}

/* Functions, and memory that they are given. */
#define KERNEL __kernel void
#define KERNEL_FOR(threads, blocks) __kernel void
#define KERNEL_THAT_COMBINES KERNEL
#define KERNEL_THAT_TURNS KERNEL
#define OPERAND __global const char *restrict
#define RESULT __global char *restrict
#define OPERAND_IN_PLACE __global const char *
#define RESULT_IN_PLACE __global char *
#define LOAD(type, memory, offset) (*(__global const type *)((memory) + (offset)))
#define MUST_BE(holds) ((void)0)
#define STORE(type, memory, offset, value) (*(__global type *)((memory) + (offset)) = (value))

/* What a launch is given: memory, and where in it the part's begins. What lanes come to is in
 * memory of the block's own. */
#define GIVEN(kind, name) kind name, int64_t name##_at
#define PLACE_OF(name) name + name##_at
#define AFTER_OTHERS
#define BEGIN_LAUNCH(reductions) __local uint64_t memory_of_lanes[reductions * LANE_COUNT];

/* Parts of a launch: some of its blocks. */
#define PART_PARAMS index_t block, index_t blocks, __local uint64_t *memory_of_lanes
#define PART static inline void
#define IN_PART(begin, end)                                                                        \
    ((int64_t)get_group_id(0) >= (begin) && (int64_t)get_group_id(0) < (end))
#define OF_PART(begin, end) (int64_t) get_group_id(0) - (begin), (end) - (begin), memory_of_lanes
#define LANE ((int)get_local_id(0))
#define WARPS ((index_t)get_local_size(1))
#define EACH_GROUP(group, groups)                                                                  \
    for (int64_t group = get_group_id(0); group < (groups); group += get_num_groups(0))
#define EACH_TRIP(trip, trips) for (int64_t trip = 0; trip < (trips); trip++)
#define IN_STAGE(stage)
#define END_STAGE barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define OF_GROUP 0, 1, memory_of_lanes
#define PART_THREAD ((block * WARPS + (index_t)get_local_id(1)) * LANE_COUNT + LANE)
#define PART_THREADS (blocks * WARPS * LANE_COUNT)
#define EACH_WARP_OF_PART(r, rows) for (index_t r = block; r < (rows); r += blocks)

/* Tiles of rows: a thread is of one of them, and of one of the groups that share what is along it.
 * There may be no such row, then all threads go on to where they meet. A block is one warp. */
#define GROUP(shift) (LANE >> (int)(shift))
#define GROUPS(shift) (LANE_COUNT >> (int)(shift))
#define OF_TILE(shift) (LANE & ((1 << (int)(shift)) - 1))
#define EACH_ROW_OF_TILE(r, rows, shift)                                                           \
    for (index_t first_of_tile = block << (shift), r = first_of_tile + OF_TILE(shift);             \
         first_of_tile < (rows);                                                                   \
         first_of_tile += blocks << (shift), r += blocks << (shift), barrier(CLK_LOCAL_MEM_FENCE))
#define FIRST_GROUP(r, rows, shift) if (GROUP(shift) == 0 && r < (rows))
/* Each shares what it has in memory of the block; once all have met, each joins what groups have.
 */
#define SHARE_GROUPS(type, combine, sums, number, shift)                                           \
    ((__local type *)&memory_of_lanes[number * LANE_COUNT])[LANE] = sums
#define MEET_GROUPS barrier(CLK_LOCAL_MEM_FENCE)
#define JOIN_GROUPS(type, name, combine, sums, number, shift)                                      \
    __local const type *all_of_##name =                                                            \
        (__local const type *)&memory_of_lanes[number * LANE_COUNT];                               \
    sums = all_of_##name[OF_TILE(shift)];                                                          \
    for (int group = 1; group < GROUPS(shift); group++)                                            \
        sums = combine(sums, all_of_##name[(group << (int)(shift)) + OF_TILE(shift)]);             \
    const type name = sums

/* Of texts that are kernels (kernels/grids): which block and warp it is, memory of the block, and
 * where its threads meet: to see what they wrote in that, or in what the launch is given, too. */
#define BLOCK ((int64_t)get_group_id(0))
#define BLOCKS ((int64_t)get_num_groups(0))
#define WARP ((int)get_local_id(1))
#define SHARED(type, name) __local type name
#define SHARED_PLACE(type) __local type *
#define MEET barrier(CLK_LOCAL_MEM_FENCE)
#define MEET_IN_MEMORY barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* What threads of a block do of a patch. */
#define FIRST_PATCH block
#define PATCHES_AT_ONCE blocks
#define BLOCK_THREAD (WARP * LANE_COUNT + LANE)
#define BLOCK_THREADS ((int)get_local_size(1) * LANE_COUNT)

/* The lanes of a warp, which is the whole block: what each of them has, what each of them does, and
 * what all come to. */
#define LANES(type, name) type name
#define OF_LANE(name) name
#define EACH_LANE
#define FIRST_LANE if (LANE == 0)
#define UNROLL
#define UNROLL_BY(n)
#define REDUCE_LANES(type, name, combine, lanes)                                                   \
    __local type *all_of_##name = (__local type *)memory_of_lanes;                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    all_of_##name[LANE] = lanes;                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    for (int others = LANE_COUNT / 2; others > 0; others /= 2) {                                   \
        if (LANE < others)                                                                         \
            all_of_##name[LANE] = combine(all_of_##name[LANE], all_of_##name[LANE + others]);      \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
    }                                                                                              \
    const type name = all_of_##name[0]
