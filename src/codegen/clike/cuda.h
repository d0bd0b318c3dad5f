/* SPDX-License-Identifier: Apache-2.0 */
/* The prelude of CUDA C, for NVRTC, which has no headers. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807ll
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ull
#define INFINITY __uint_as_float(0x7f800000u)
#define NAN __uint_as_float(0x7fc00000u)

/* What the functions of ir/scalar are made of. */
#define SCALAR_FN static __device__ __forceinline__
#define SCALAR_TABLE static __device__ const

SCALAR_FN uint32_t f32_bits(float x)
{
    return __float_as_uint(x);
}

SCALAR_FN float f32_of(uint32_t bits)
{
    return __uint_as_float(bits);
}

SCALAR_FN uint64_t f64_bits(double x)
{
    return (uint64_t)__double_as_longlong(x);
}

SCALAR_FN double f64_of(uint64_t bits)
{
    return __longlong_as_double((int64_t)bits);
}

SCALAR_FN float f32_fma(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}

SCALAR_FN double f64_fma(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}

/* Functions, and memory that they are given. */
#define KERNEL extern "C" __global__ void
/* One whose blocks have so many threads, of which so many blocks should run side by side. */
#define KERNEL_FOR(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
/* A launch that combines. The compiler, if it is not told that few blocks (of 8 warps, see
 * launcher.c) will do, saves registers: it waits for each load before the next. */
#define KERNEL_THAT_COMBINES KERNEL_FOR(256, 1)
/* One that turns what it looks up. Four such blocks side by side leave a thread registers for all
 * of a patch that it reads; untold, the compiler has it wait for the half. */
#define KERNEL_THAT_TURNS KERNEL_FOR(256, 4)
#define OPERAND const char *__restrict__
#define RESULT char *__restrict__
#define OPERAND_IN_PLACE const char *
#define RESULT_IN_PLACE char *
#define LOAD(type, memory, offset) (*(const type *)((memory) + (offset)))
/* Of what is no memory, how many elements it is behind GIR_POSITIONS_AT. */
#define PLACE(type, memory, offset)                                                                \
    ((type)(((int64_t)(memory) + (offset) - ((int64_t)1 << 46)) / (int64_t)sizeof(type)))
#define MUST_BE(holds) ((void)0)
#define STORE(type, memory, offset, value) (*(type *)((memory) + (offset)) = (value))

/* What a thread does of a kernel. */
#define EACH_ROW(r, rows)                                                                          \
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < (rows);                   \
         r += (int64_t)gridDim.y * blockDim.y)
#define EACH_ELEMENT(i, n)                                                                         \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                      \
         i += (int64_t)gridDim.x * blockDim.x)
#define EACH_COLUMN(i, n) EACH_ELEMENT(i, n)
#define EACH_WARP(r, rows)                                                                         \
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < (rows);                   \
         r += (int64_t)gridDim.x * blockDim.y)

/* A kernel begins while the one before it in its stream ends, where the card can do that (see
 * launcher.c), and reads and writes nothing before this. The next one may begin then. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define AFTER_OTHERS                                                                               \
    asm volatile("griddepcontrol.wait;" ::: "memory");                                             \
    asm volatile("griddepcontrol.launch_dependents;")
#else
#define AFTER_OTHERS
#endif

/* What a launch is given: memory, and where in it the part's begins. */
#define GIVEN(kind, name) kind name
#define PLACE_OF(name) name
#define BEGIN_LAUNCH(reductions) AFTER_OTHERS;
/* Parts of a launch: some of its blocks. */
#define PART_PARAMS index_t block, index_t blocks
#define PART static __device__ __forceinline__ void
#define IN_PART(begin, end) ((int64_t)blockIdx.x >= (begin) && (int64_t)blockIdx.x < (end))
#define OF_PART(begin, end) (int64_t) blockIdx.x - (begin), (end) - (begin)
/* Or stages of a launch, one after the other for each group of a block, in each iteration: what a
 * stage wrote into memory its threads see behind it. */
#define EACH_GROUP(group, groups)                                                                  \
    for (int64_t group = blockIdx.x; group < (groups); group += gridDim.x)
#define EACH_TRIP(trip, trips) for (int64_t trip = 0; trip < (trips); trip++)
#define IN_STAGE(stage)
#define END_STAGE __syncthreads()
#define OF_GROUP 0, 1
#define PART_THREAD (index_t)((block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)
#define PART_THREADS (index_t)(blocks * blockDim.y * blockDim.x)
#define EACH_WARP_OF_PART(r, rows)                                                                 \
    for (index_t r = (index_t)(block * blockDim.y + threadIdx.y); r < (rows);                      \
         r += (index_t)(blocks * blockDim.y))

/* Tiles of rows: a thread is of one of them, and of one of the groups that share what is along it.
 * There may be no such row, then all threads go on to where they meet. */
#define TILE_THREAD ((int)(threadIdx.y * LANE_COUNT + threadIdx.x))
#define GROUP(shift) (TILE_THREAD >> (int)(shift))
#define GROUPS(shift) ((int)(blockDim.y * LANE_COUNT) >> (int)(shift))
#define OF_TILE(shift) (TILE_THREAD & ((1 << (int)(shift)) - 1))
#define EACH_ROW_OF_TILE(r, rows, shift)                                                           \
    for (index_t first_of_tile = block << (shift), r = first_of_tile + OF_TILE(shift);             \
         first_of_tile < (rows);                                                                   \
         first_of_tile += blocks << (shift), r += blocks << (shift), __syncthreads())
#define FIRST_GROUP(r, rows, shift) if (GROUP(shift) == 0 && r < (rows))
/* What groups of a warp have comes to the first of them, which shares it in memory of the block;
 * once they have met, each thread joins what warps have. */
#define MOST_WARPS 8
#define SHARE_GROUPS(type, combine, sums, number, shift)                                           \
    UNROLL for (int others = LANE_COUNT / 2; others > 0; others /= 2)                              \
    {                                                                                              \
        const type other = __shfl_down_sync(0xffffffffu, sums, others);                            \
        if (others >> (int)(shift))                                                                \
            sums = combine(sums, other);                                                           \
    }                                                                                              \
    __shared__ type all_of_##sums[MOST_WARPS * LANE_COUNT];                                        \
    if (threadIdx.x >> (int)(shift) == 0)                                                          \
    all_of_##sums[threadIdx.y * LANE_COUNT + threadIdx.x] = sums
#define MEET_GROUPS __syncthreads()
#define JOIN_GROUPS(type, name, combine, sums, number, shift)                                      \
    sums = all_of_##sums[OF_TILE(shift)];                                                          \
    UNROLL for (int warp = 1; warp < MOST_WARPS; warp++)                                           \
    {                                                                                              \
        const type other = all_of_##sums[warp * LANE_COUNT + OF_TILE(shift)];                      \
        if (warp < (int)blockDim.y)                                                                \
            sums = combine(sums, other);                                                           \
    }                                                                                              \
    const type name = sums

/* Rows of blocks: what the first warp's lanes have comes to what all threads know. Before it is
 * told the next time they have met. */
#define EACH_ROW_OF_BLOCK(r, rows) for (index_t r = block; r < (rows); r += blocks)
#define TELL_BLOCK(type, name, combine, lanes)                                                     \
    __shared__ type all_of_##lanes;                                                                \
    if (WARP == 0) {                                                                               \
        REDUCE_LANES(type, of_warp, combine, lanes);                                               \
        if (LANE == 0)                                                                             \
            all_of_##lanes = of_warp;                                                              \
    }                                                                                              \
    MEET;                                                                                          \
    const type name = all_of_##lanes

/* Of texts that are kernels (kernels/grids): which block and warp it is, memory of the block, and
 * where its threads meet: to see what they wrote in that, or in what the launch is given, too. */
#define BLOCK ((int64_t)blockIdx.x)
#define BLOCKS ((int64_t)gridDim.x)
#define WARP ((int)threadIdx.y)
#define SHARED(type, name) __shared__ type name
#define SHARED_PLACE(type) type *
#define MEET __syncthreads()
#define MEET_IN_MEMORY __syncthreads()

/* What threads of a block do of a patch, or of a row. Blocks are of 8 warps: see launcher.c. */
#define FIRST_PATCH block
#define PATCHES_AT_ONCE blocks
#define BLOCK_THREAD TILE_THREAD
#define BLOCK_THREADS (MOST_WARPS * LANE_COUNT)

/* The lanes of a warp: what each of them has, what each of them does, and what all come to. */
#define LANE ((int)threadIdx.x)
#define LANES(type, name) type name
#define OF_LANE(name) name
#define EACH_LANE
#define FIRST_LANE if (LANE == 0)
#define UNROLL _Pragma("unroll")
#define PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(n) PRAGMA(unroll n)
#define REDUCE_LANES(type, name, combine, lanes)                                                   \
    UNROLL for (int others = LANE_COUNT / 2; others > 0; others /= 2)                              \
    {                                                                                              \
        lanes = combine(lanes, __shfl_down_sync(0xffffffffu, lanes, others));                      \
    }                                                                                              \
    const type name = __shfl_sync(0xffffffffu, lanes, 0)
