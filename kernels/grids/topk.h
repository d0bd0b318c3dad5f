/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k first elements of each line, in order. NaN counts as larger than everything, and of equal
 * elements the one with the lower number is first. An element's place is how many are before it.
 * k0 compares all elements with each other for that (ranks.h); keys of the others are in the
 * block's memory, as many as it has threads at a time. k1, of long lines of which few are wanted,
 * goes through the line some times to find what divides these from the others, and sorts only
 * these; a line is a block's. k2 does both, of several lists; of lists of which most elements are
 * the last possible ones, as -inf where the highest are wanted, k3 finds the others before.
 */
struct line {
    OPERAND_IN_PLACE first;
    int64_t step, largest;
    int n;
};

SCALAR_FN T_BITS key_at(struct line line, int i)
{
    return key_of(LOAD(T, line.first, i * line.step), line.largest);
}

/* Where the elements of a line go: from `first` on, so many apart. */
struct places {
    RESULT_IN_PLACE values;
    RESULT_IN_PLACE indices;
    int64_t first, step, with_values, with_indices;
};

SCALAR_FN void put(struct line line, struct places to, int64_t place, int i)
{
    const int64_t at = to.first + place * to.step;
    if (to.with_values)
        STORE(T, to.values, at * (int64_t)sizeof(T), LOAD(T, line.first, i * line.step));
    if (to.with_indices)
        STORE(int64_t, to.indices, at * (int64_t)sizeof(int64_t), i);
}

/* Of as many elements as a warp has lanes, from one on. */
PART compare(struct line line, int first_own, int64_t k, struct places to,
             SHARED_PLACE(T_BITS) keys, SHARED_PLACE(int) counts)
{
    const int i = first_own + LANE;
    const T_BITS key = i < line.n ? key_at(line, i) : 0;
    int before = 0;
    for (int first = 0; first < line.n; first += THREADS) {
        MEET;
        keys[OWN] =
            first + OWN < line.n ? key_at(line, first + OWN) : (T_BITS)-1; /* is not before */
        MEET;
        before += count_before(keys, first, key, i);
    }
    before = add_warps(counts, before);
    if (WARP == 0 && i < line.n && before < k)
        put(line, to, before, i);
}

/* Of the lines along an axis of `n` elements, behind which are axes of `inner` elements. */
SCALAR_FN struct line line_of(OPERAND_IN_PLACE x, int64_t number, int64_t n, int64_t inner,
                              int64_t largest)
{
    struct line line;
    line.first = x + (number / inner * n * inner + number % inner) * (int64_t)sizeof(T);
    line.step = inner * (int64_t)sizeof(T);
    line.largest = largest;
    line.n = (int)n;
    return line;
}

SCALAR_FN struct places places_of(RESULT_IN_PLACE values, RESULT_IN_PLACE indices, int64_t number,
                                  int64_t k, int64_t inner, int64_t with_values,
                                  int64_t with_indices)
{
    struct places to;
    to.values = values;
    to.indices = indices;
    to.first = number / inner * k * inner + number % inner;
    to.step = inner;
    to.with_values = with_values;
    to.with_indices = with_indices;
    return to;
}

KERNEL k0(GIVEN(OPERAND, x), GIVEN(RESULT, values), GIVEN(RESULT, indices), int64_t lines,
          int64_t n, int64_t inner, int64_t k, int64_t largest, int64_t with_values,
          int64_t with_indices)
{
    AFTER_OTHERS;
    SHARED(T_BITS, keys[THREADS]);
    SHARED(int, counts[THREADS]);
    const int64_t groups = (n + LANE_COUNT - 1) / LANE_COUNT;
    for (int64_t job = BLOCK; job < lines * groups; job += BLOCKS) {
        const int64_t line = job / groups;
        compare(line_of(PLACE_OF(x), line, n, inner, largest), (int)(job % groups) * LANE_COUNT, k,
                places_of(PLACE_OF(values), PLACE_OF(indices), line, k, inner, with_values,
                          with_indices),
                keys, counts);
    }
}

/* ---- k1 -------------------------------------------------------------------------------------- */

#define MOST_CHOSEN 1024 /* as topk.c has it */
/* Loads of a thread that are under way together. */
#define EACH 8
/* Counts of a step, in one number. */
#define COUNTS 3
#define COUNT_BITS 21

/* Chosen are keys less than this one, and of equal ones the elements with numbers less than this.
 */
struct limit {
    T_BITS key;
    int number;
};

SCALAR_FN int is_chosen(T_BITS key, int i, struct limit limit)
{
    return key < limit.key || (key == limit.key && i < limit.number);
}

SCALAR_FN uint64_t join_counts(const int *counts)
{
    return (uint64_t)counts[0] | (uint64_t)counts[1] << COUNT_BITS |
           (uint64_t)counts[2] << 2 * COUNT_BITS;
}

SCALAR_FN int count_of(uint64_t counts, int which)
{
    return (int)(counts >> which * COUNT_BITS & (((uint64_t)1 << COUNT_BITS) - 1));
}

/* How many of the thread's keys are before the second, third and fourth of the four parts that the
 * keys from `low` on are in, as large as a bit. */
SCALAR_FN uint64_t count_keys(struct line line, T_BITS low, int bit)
{
    const T_BITS second = (T_BITS)(low + ((T_BITS)1 << bit)),
                 third = (T_BITS)(low + ((T_BITS)2 << bit)),
                 fourth = (T_BITS)(low + ((T_BITS)3 << bit));
    int counts[COUNTS] = {0, 0, 0};
    for (int first = OWN; first < line.n; first += EACH * THREADS) {
        T_BITS keys[EACH];
        UNROLL for (int e = 0; e < EACH; e++)
        {
            const int i = first + e * THREADS;
            keys[e] = i < line.n ? key_at(line, i) : (T_BITS)-1; /* the last one: not counted */
        }
        UNROLL for (int e = 0; e < EACH; e++)
        {
            counts[0] += keys[e] < second;
            counts[1] += keys[e] < third;
            counts[2] += keys[e] < fourth;
        }
    }
    return join_counts(counts);
}

/* The same of elements, which have numbers, too, of which `low.number` is the first one. */
SCALAR_FN uint64_t count_numbers(struct line line, struct limit low, int bit)
{
    struct limit second = low, third = low, fourth = low;
    int counts[COUNTS] = {0, 0, 0};
    second.number += 1 << bit;
    third.number += 2 << bit;
    fourth.number += 3 << bit;
    for (int i = OWN; i < line.n; i += THREADS) {
        const T_BITS key = key_at(line, i);
        counts[0] += is_chosen(key, i, second);
        counts[1] += is_chosen(key, i, third);
        counts[2] += is_chosen(key, i, fourth);
    }
    return join_counts(counts);
}

/* What all threads have together; `sums` has room for a warp more. What is read last here is
 * written only after the first meeting of the next sum. */
SCALAR_FN uint64_t sum_of(SHARED_PLACE(uint64_t) sums, uint64_t own)
{
    uint64_t sum = 0;
    sums[OWN] = own;
    MEET;
    if (WARP == 0) {
        for (int warp = 1; warp < WARP_COUNT; warp++)
            own += sums[warp * LANE_COUNT + LANE];
        sums[THREADS + LANE] = own;
    }
    MEET;
    for (int lane = 0; lane < LANE_COUNT; lane++)
        sum += sums[THREADS + lane];
    return sum;
}

/* The limit of k elements; of all, if there are no more. Each step finds two bits more: in which of
 * four parts the k-th one is, until a part ends with it. First those of its key; those of its
 * number only if the next one has that key, too. */
SCALAR_FN struct limit limit_of(struct line line, int k, SHARED_PLACE(uint64_t) sums)
{
    struct limit limit = {0, 0};
    int number_bits = 2, is_found = k >= line.n;
    if (is_found) {
        limit.key = (T_BITS)-1;
        limit.number = INT32_MAX;
    }
    while (1 << number_bits < line.n)
        number_bits += 2;
    for (int bit = number_bits + 8 * (int)sizeof(T) - 2; !is_found; bit -= 2) {
        const int of_key = bit - number_bits;
        const uint64_t counts = sum_of(sums, of_key >= 0 ? count_keys(line, limit.key, of_key)
                                                         : count_numbers(line, limit, bit));
        int part = 0;
        for (int i = 0; i < COUNTS; i++) {
            part += count_of(counts, i) < k;
            is_found |= count_of(counts, i) == k;
        }
        if (of_key >= 0)
            limit.key = (T_BITS)(limit.key + ((T_BITS)(part + is_found) << of_key));
        else
            limit.number += (part + is_found) << bit;
    }
    return limit;
}

/* Those that are chosen, a thread's after those of the threads before it, and, up to `room`, what
 * comes after all. */
PART gather(struct line line, struct limit limit, int k, int room, SHARED_PLACE(uint64_t) sums,
            SHARED_PLACE(T_BITS) keys, SHARED_PLACE(int) numbers)
{
    int own = 0, at = 0;
    for (int i = OWN; i < line.n; i += THREADS)
        own += is_chosen(key_at(line, i), i, limit);
    sums[OWN] = (uint64_t)own;
    MEET;
    for (int other = 0; other < OWN; other++)
        at += (int)sums[other];
    for (int i = OWN; i < line.n; i += THREADS) {
        const T_BITS key = key_at(line, i);
        if (is_chosen(key, i, limit)) {
            keys[at] = key;
            numbers[at] = i;
            at++;
        }
    }
    for (int i = k + OWN; i < room; i += THREADS) {
        keys[i] = (T_BITS)-1;
        numbers[i] = INT32_MAX;
    }
}

/* Bitonic: of `room` elements, a power of 2. */
PART sort(int room, SHARED_PLACE(T_BITS) keys, SHARED_PLACE(int) numbers)
{
    for (int size = 2; size <= room; size *= 2)
        for (int apart = size / 2; apart > 0; apart /= 2) {
            MEET;
            for (int pair = OWN; pair < room / 2; pair += THREADS) {
                const int in_half = pair & (apart - 1), a = 2 * (pair - in_half) + in_half,
                          b = a + apart;
                struct limit first, second;
                first.key = keys[a];
                first.number = numbers[a];
                second.key = keys[b];
                second.number = numbers[b];
                if (is_chosen(second.key, second.number, first) == !(a & size)) {
                    keys[a] = second.key;
                    numbers[a] = second.number;
                    keys[b] = first.key;
                    numbers[b] = first.number;
                }
            }
        }
    MEET;
}

/* No more than MOST_CHOSEN of a line, whose elements COUNT_BITS can count. */
PART choose_numbers(struct line line, int k, SHARED_PLACE(uint64_t) sums, SHARED_PLACE(T_BITS) keys,
                    SHARED_PLACE(int) numbers)
{
    int room = 1;
    while (room < k)
        room *= 2;
    gather(line, limit_of(line, k, sums), k, room, sums, keys, numbers);
    sort(room, keys, numbers);
}

PART choose(struct line line, int k, struct places to, SHARED_PLACE(uint64_t) sums,
            SHARED_PLACE(T_BITS) keys, SHARED_PLACE(int) numbers)
{
    choose_numbers(line, k, sums, keys, numbers);
    for (int i = OWN; i < k; i += THREADS)
        put(line, to, i, numbers[i]);
}

KERNEL k1(GIVEN(OPERAND, x), GIVEN(RESULT, values), GIVEN(RESULT, indices), int64_t lines,
          int64_t n, int64_t inner, int64_t k, int64_t largest, int64_t with_values,
          int64_t with_indices)
{
    AFTER_OTHERS;
    SHARED(uint64_t, sums[THREADS + LANE_COUNT]);
    SHARED(T_BITS, keys[MOST_CHOSEN]);
    SHARED(int, numbers[MOST_CHOSEN]);
    for (int64_t job = BLOCK; job < lines; job += BLOCKS)
        choose(line_of(PLACE_OF(x), job, n, inner, largest), (int)k,
               places_of(PLACE_OF(values), PLACE_OF(indices), job, k, inner, with_values,
                         with_indices),
               sums, keys, numbers);
}

/* ---- k2 -------------------------------------------------------------------------------------- */

/*
 * Several lists, each by itself, of which blocks up to `end` have one: each of them compares some
 * of its elements with all of them, or the one that it has chooses. `how` is as topk.h has it.
 */
#define LIST(i)                                                                                    \
    GIVEN(OPERAND, x##i), GIVEN(RESULT, values##i), GIVEN(RESULT, indices##i), int64_t end##i,     \
        int64_t n##i, int64_t k##i, int64_t how##i
#define TAKE(i)                                                                                    \
    {                                                                                              \
        x = PLACE_OF(x##i);                                                                        \
        values = PLACE_OF(values##i);                                                              \
        indices = PLACE_OF(indices##i);                                                            \
        end = end##i;                                                                              \
        n = n##i;                                                                                  \
        k = k##i;                                                                                  \
        how = how##i;                                                                              \
    }

KERNEL k2(LIST(0), LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6), LIST(7), int64_t jobs)
{
    AFTER_OTHERS;
    SHARED(uint64_t, sums[THREADS + LANE_COUNT]);
    SHARED(T_BITS, keys[MOST_CHOSEN]);
    SHARED(int, numbers[MOST_CHOSEN]);
    for (int64_t job = BLOCK; job < jobs; job += BLOCKS) {
        OPERAND_IN_PLACE x;
        RESULT_IN_PLACE values;
        RESULT_IN_PLACE indices;
        int64_t begin = 0, end, n, k, how;
        TAKE_LIST_OF(job)
        /* Threads meet in both, whatever is done: PoCL does not take it otherwise. */
        const struct places to =
            places_of(values, indices, 0, k, 1, how & WITH_VALUES, how & WITH_INDICES);
        const int chooses = (how & CHOOSES) != 0;
        compare(line_of(x, 0, chooses ? 0 : n, 1, how & LARGEST), (int)(job - begin) * LANE_COUNT,
                k, to, keys, numbers);
        choose(line_of(x, 0, chooses ? n : 0, 1, how & LARGEST), chooses ? (int)k : 0, to, sums,
               keys, numbers);
    }
}

/* ---- What is sifted -------------------------------------------------------------------------- */

/*
 * A chunk of a list has the places of those of its elements that are not -inf, in their order, in
 * memory that has room for all: of `chunks` of all lists first how many there are of each, then
 * their places, then, of each list, the places of all of them, and the elements there.
 */
#define EACH_SIFTED 8 /* of a thread: as lists.c has it */
#define CHUNK (EACH_SIFTED * THREADS)
#define MOST_CHUNKS 1024 /* of a list: as lists.c has it */
#define COUNT_AT(chunk) ((chunk) * (int64_t)sizeof(int64_t))
#define SIFTED_AT(chunks, chunk)                                                                   \
    ((chunks) * (int64_t)sizeof(int64_t) + (chunk)*CHUNK * (int64_t)sizeof(int32_t))
#define JOINED_AT(chunks, chunk) SIFTED_AT(chunks, (chunks) + (chunk))
#define VALUES_AT(chunks, chunk)                                                                   \
    (SIFTED_AT(chunks, 2 * (chunks)) + (chunk)*CHUNK * (int64_t)sizeof(T))

/* Of -inf, where the highest are wanted. */
SCALAR_FN T_BITS key_of_last(void)
{
    const T_BITS sign = (T_BITS)((T_BITS)1 << (8 * sizeof(T) - 1));
#ifdef T_IS_FLOAT
    return (T_BITS)(sign | (T_BITS)((T_BITS)~sign >> (sizeof(T) == 8 ? 52 : 23)
                                                         << (sizeof(T) == 8 ? 52 : 23)));
#else
    return sign;
#endif
}

struct sum {
    int before, all;
};

/* What the threads before this one have, and all of them. */
SCALAR_FN struct sum sum_up(SHARED_PLACE(int) sums, int own)
{
    struct sum sum = {0, 0};
    MEET;
    sums[OWN] = own;
    MEET;
    for (int other = 0; other < THREADS; other++) {
        sum.before += other < OWN ? sums[other] : 0;
        sum.all += sums[other];
    }
    return sum;
}

#undef LIST
#undef TAKE
#define LIST(i) GIVEN(OPERAND, x##i), int64_t end##i, int64_t n##i
#define TAKE(i)                                                                                    \
    {                                                                                              \
        x = PLACE_OF(x##i);                                                                        \
        end = end##i;                                                                              \
        n = n##i;                                                                                  \
    }

/* A chunk for a block. */
KERNEL k3(LIST(0), LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6), LIST(7),
          GIVEN(RESULT, sifted), int64_t chunks)
{
    AFTER_OTHERS;
    SHARED(int, counts[THREADS]);
    for (int64_t chunk = BLOCK; chunk < chunks; chunk += BLOCKS) {
        OPERAND_IN_PLACE x;
        int64_t begin = 0, end, n;
        TAKE_LIST_OF(chunk)
        const struct line line = line_of(x, 0, n, 1, 1);
        const int first = (int)(chunk - begin) * CHUNK + OWN * EACH_SIFTED;
        int found = 0, own = 0;
        for (int e = 0; e < EACH_SIFTED && first + e < line.n; e++)
            if (key_at(line, first + e) != key_of_last()) {
                found |= 1 << e;
                own++;
            }
        const struct sum sum = sum_up(counts, own);
        int at = sum.before;
        if (OWN == 0)
            STORE(int64_t, PLACE_OF(sifted), COUNT_AT(chunk), (int64_t)sum.all);
        for (int e = 0; e < EACH_SIFTED; e++)
            if (found >> e & 1) {
                STORE(int32_t, PLACE_OF(sifted),
                      SIFTED_AT(chunks, chunk) + at * (int64_t)sizeof(int32_t), first + e);
                at++;
            }
    }
}

/* Where the elements of a list are, one behind the other, and the elements. How many there are. */
SCALAR_FN int join_sifted(struct line line, RESULT_IN_PLACE sifted, int64_t chunks, int64_t first,
                          SHARED_PLACE(int) counts, SHARED_PLACE(int) starts)
{
    const int own_chunks = (line.n + CHUNK - 1) / CHUNK,
              each = (own_chunks + THREADS - 1) / THREADS;
    int own = 0;
    for (int c = OWN * each; c < (OWN + 1) * each && c < own_chunks; c++) {
        starts[c] = own;
        own += (int)LOAD(int64_t, sifted, COUNT_AT(first + c));
    }
    const struct sum sum = sum_up(counts, own);
    for (int c = OWN * each; c < (OWN + 1) * each && c < own_chunks; c++)
        starts[c] += sum.before;
    MEET;
    for (int i = OWN; i < sum.all; i += THREADS) {
        int low = 0, high = own_chunks;
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (starts[middle] <= i)
                low = middle;
            else
                high = middle;
        }
        const int place =
            LOAD(int32_t, sifted,
                 SIFTED_AT(chunks, first + low) + (i - starts[low]) * (int64_t)sizeof(int32_t));
        STORE(int32_t, sifted, JOINED_AT(chunks, first) + i * (int64_t)sizeof(int32_t), place);
        STORE(T, sifted, VALUES_AT(chunks, first) + i * (int64_t)sizeof(T),
              LOAD(T, line.first, place * line.step));
    }
    MEET_IN_MEMORY;
    return sum.all;
}

/* Behind those that are there the first others, until there are k. */
PART fill_up(struct line line, int from, int k, struct places to, SHARED_PLACE(int) counts)
{
    for (int first = 0; from < k; first += THREADS) {
        const int i = first + OWN, is_last = i < line.n && key_at(line, i) == key_of_last();
        const struct sum sum = sum_up(counts, is_last);
        if (is_last && from + sum.before < k)
            put(line, to, from + sum.before, i);
        from += sum.all;
    }
}

#undef LIST
#undef TAKE
#define LIST(i)                                                                                    \
    GIVEN(OPERAND, x##i), GIVEN(RESULT, values##i), GIVEN(RESULT, indices##i), int64_t end##i,     \
        int64_t n##i, int64_t k##i, int64_t how##i, int64_t chunk##i
#define TAKE(i)                                                                                    \
    {                                                                                              \
        x = PLACE_OF(x##i);                                                                        \
        values = PLACE_OF(values##i);                                                              \
        indices = PLACE_OF(indices##i);                                                            \
        end = end##i;                                                                              \
        n = n##i;                                                                                  \
        k = k##i;                                                                                  \
        how = how##i;                                                                              \
        chunk = chunk##i;                                                                          \
    }

/* A list for a block; `chunk` is its first one. No list has fewer elements than are wanted. */
KERNEL k4(LIST(0), LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6), LIST(7),
          GIVEN(RESULT, sifted), int64_t jobs, int64_t chunks)
{
    AFTER_OTHERS;
    SHARED(uint64_t, sums[THREADS + LANE_COUNT]);
    SHARED(T_BITS, keys[MOST_CHOSEN]);
    SHARED(int, numbers[MOST_CHOSEN]);
    SHARED(int, counts[THREADS]);
    SHARED(int, starts[MOST_CHUNKS]);
    for (int64_t job = BLOCK; job < jobs; job += BLOCKS) {
        OPERAND_IN_PLACE x;
        RESULT_IN_PLACE values;
        RESULT_IN_PLACE indices;
        int64_t begin = 0, end, n, k, how, chunk;
        TAKE_LIST_OF(job)
        const struct places to =
            places_of(values, indices, 0, k, 1, how & WITH_VALUES, how & WITH_INDICES);
        const struct line all = line_of(x, 0, n, 1, 1);
        (void)begin;
        const int found = join_sifted(all, PLACE_OF(sifted), chunks, chunk, counts, starts),
                  chosen = found < k ? found : (int)k;
        choose_numbers(line_of(PLACE_OF(sifted) + VALUES_AT(chunks, chunk), 0, found, 1, 1), chosen,
                       sums, keys, numbers);
        for (int i = OWN; i < chosen; i += THREADS)
            put(all, to, i,
                LOAD(int32_t, PLACE_OF(sifted),
                     JOINED_AT(chunks, chunk) + numbers[i] * (int64_t)sizeof(int32_t)));
        fill_up(all, chosen, (int)k, to, counts);
    }
}
