// The recurrence of all time steps of a layer in one launch, forward or backward.
//
// A group of BLOCKS blocks owns ROWS rows of the batch in one direction; each block owns UC hidden units
// with their share of W_hh, which stays on the chip: the first k-blocks of each warp in registers, the
// rest in shared memory. A step is
//
//     product     share of W_hh x what the group said last (h forward, the gates' gradients backward)
//     sum         over the KW warps that each took a part of the inner dimension, through shared memory
//     elementwise gates, cell and state in fp32, one thread a pair of units of a row
//     tell        the block's units to the group: through shared memory if the group is one block, else
//                 through L2
//
// There is no barrier between blocks. What is told goes to a place of its own for every step, filled with
// UNSAID words beforehand, and a reader reloads until no word is UNSAID. No number is written as UNSAID:
// it is a NaN that no instruction gives.
//
// Compile-time constants: CELL (0 rnn tanh, 1 rnn relu, 2 lstm, 3 gru reset after, 4 gru reset before),
// BACKWARD, DTYPE (0 bf16, 1 fp16, 2 fp32 multiplied as tf32), UNITS, UC, BLOCKS, NT (tiles of 8 rows a
// chunk), CHUNKS (chunks a group interleaves), MW x KW warps, KREG (k-blocks in registers, two products),
// WINDOW (k-blocks a warp loads ahead).

typedef unsigned int u32;
typedef unsigned short u16;
typedef long long i64;

#if DTYPE == 2
typedef float Number;
#else
typedef u16 Number;
#endif

constexpr u32 UNSAID = 0xFFFFFFFFu;
constexpr u32 PATIENCE = 1u << 24;           // looks at a word, some ten seconds
constexpr int GATES = CELL <= 1 ? 1 : CELL == 2 ? 4 : 3;
constexpr int PADDED = (UNITS + 7) / 8 * 8;  // units with padding: rows in memory have these; BLOCKS * UC at least
constexpr int ROWS = 8 * NT;                 // rows of a chunk
constexpr int WARPS = MW * KW;
constexpr int THREADS = 32 * WARPS;
constexpr int PAIRS = UC / 2 * ROWS;         // pairs of units x rows of a chunk
constexpr int EACH = (PAIRS + THREADS - 1) / THREADS;
constexpr int KE = 64 / sizeof(Number);      // elements of a k-block: 64 bytes, 16 for each of 4 lanes
constexpr bool ALONE = BLOCKS == 1;

struct Float2 { float x, y; };
struct alignas(16) Words { u32 w[4]; };

__device__ __forceinline__ Float2 operator+(Float2 a, Float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ Float2 operator-(Float2 a, Float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ Float2 operator*(Float2 a, Float2 b) { return {a.x * b.x, a.y * b.y}; }
__device__ __forceinline__ Float2 operator-(float a, Float2 b) { return {a - b.x, a - b.y}; }

#if DTYPE == 2
struct alignas(8) Pair { u32 w[2]; };
#else
struct alignas(4) Pair { u32 w[1]; };
#endif

// ---- numbers ------------------------------------------------------------------------------------

__device__ __forceinline__ u32 to_tf32(float x) {
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ float widen(u16 x) {
#if DTYPE == 0
    return __uint_as_float((u32)x << 16);
#else
    float r;
    asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(r) : "h"(x));
    return r;
#endif
}
__device__ __forceinline__ float widen(float x) { return x; }

__device__ __forceinline__ Pair pack(Float2 v) {
    Pair p;
#if DTYPE == 0
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p.w[0]) : "f"(v.y), "f"(v.x));
#elif DTYPE == 1
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p.w[0]) : "f"(v.y), "f"(v.x));
#else
    p.w[0] = __float_as_uint(v.x);
    p.w[1] = __float_as_uint(v.y);
#endif
    return p;
}

__device__ __forceinline__ Float2 unpack(Pair p) {
#if DTYPE == 2
    return {__uint_as_float(p.w[0]), __uint_as_float(p.w[1])};
#else
    return {widen((u16)(p.w[0] & 0xFFFF)), widen((u16)(p.w[0] >> 16))};
#endif
}

__device__ __forceinline__ Number narrow(float v) {
#if DTYPE == 2
    return v;
#else
    return (u16)(pack({v, 0.f}).w[0] & 0xFFFF);
#endif
}

__device__ __forceinline__ float sigmoid(float x) {
#if DTYPE == 0
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(0.5f * x));
    return fmaf(0.5f, t, 0.5f);
#else
    return __fdividef(1.f, 1.f + __expf(-x));
#endif
}

__device__ __forceinline__ float tangent(float x) {
#if DTYPE == 0
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x));
    return t;
#else
    float e = __expf(-2.f * fabsf(x));
    return copysignf(__fdividef(1.f - e, 1.f + e), x);
#endif
}

__device__ __forceinline__ float positive(float x) {  // a NaN stays one
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(0.f));
    return r;
}

__device__ __forceinline__ Float2 sigmoid(Float2 v) { return {sigmoid(v.x), sigmoid(v.y)}; }
__device__ __forceinline__ Float2 tangent(Float2 v) { return {tangent(v.x), tangent(v.y)}; }

// ---- memory -------------------------------------------------------------------------------------

__device__ __forceinline__ Words load_told(const char *at) {
    Words v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3]) : "l"(at) : "memory");
    return v;
}

__device__ __forceinline__ void tell(Number *at, Pair p) {
#if DTYPE == 2
    asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(at), "r"(p.w[0]), "r"(p.w[1]) : "memory");
#else
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(p.w[0]) : "memory");
#endif
}

__device__ __forceinline__ bool unsaid(const Words &v) {
    return v.w[0] == UNSAID || v.w[1] == UNSAID || v.w[2] == UNSAID || v.w[3] == UNSAID;
}

__device__ __forceinline__ void multiply(float (&c)[4], const u32 *a, u32 b0, u32 b1) {
#if DTYPE == 0
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#elif DTYPE == 1
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#endif
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- one product: FIRST and NG say which gates take part ------------------------------------------

// forward:  rows are this block's units of the gates, the inner dimension is the group's units
// backward: rows are this block's units, the inner dimension is (gate, unit)
template <int FIRST, int NG, int IN_REGISTERS> struct Product {
    static constexpr int M = BACKWARD ? UC : NG * UC;
    static constexpr int K = BACKWARD ? NG * PADDED : PADDED;
    static constexpr int MT = (M + 16 * MW - 1) / (16 * MW);
    static constexpr int KB = (K + KE * KW - 1) / (KE * KW);  // k-blocks of a warp
    static constexpr int HELD = IN_REGISTERS < KB ? IN_REGISTERS : KB;  // k-blocks in registers
    static constexpr int STRIDE = MW * MT * 16 + 4;           // floats of a row of partial sums
    static constexpr int WEIGHT_WORDS = (KB - HELD) * MT * 8 * THREADS;
    static constexpr int SPLIT = MT * NT <= 4 ? 2 : 1;        // accumulators of a tile, for shorter chains
    u32 a[HELD > 0 ? HELD : 1][MT][8];

    // 16 bytes of row r of the block's share, from inner index k on; zeros outside
    static __device__ __forceinline__ Words weights(const Number *w, int block, int r, int k) {
        int unit = block * UC + (BACKWARD ? r : r % UC);
        if (r >= M || unit >= UNITS || k >= K) return Words{};
        i64 row = BACKWARD ? unit : (FIRST + r / UC) * UNITS + unit;
        return *(const Words *)(w + row * (BACKWARD ? GATES * PADDED : PADDED) + (BACKWARD ? FIRST * PADDED : 0) + k);
    }

    // a lane's 8 words of tile mt and k-block kb: two products' fragments, the inner dimension ordered so
    // that the other operand's lane reads 16 bytes in a row
    static __device__ void fragment(u32 *out, const Number *w, int block, int mt, int kb) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        int m = (warp / KW * MT + mt) * 16 + lane / 4;
        int k = (warp % KW * KB + kb) * KE + lane % 4 * (KE / 4);
        Words row[2] = {weights(w, block, m, k), weights(w, block, m + 8, k)};
#pragma unroll
        for (int i = 0; i < 8; i++)
#if DTYPE == 2
            out[i] = to_tf32(__uint_as_float(row[i % 2].w[i / 2]));
#else
            out[i] = row[i % 2].w[i / 2];
#endif
    }

    __device__ void load_weights(const Number *w, int block, u32 *shared) {
#pragma unroll
        for (int kb = 0; kb < HELD; kb++)
#pragma unroll
            for (int mt = 0; mt < MT; mt++) fragment(a[kb][mt], w, block, mt, kb);
        for (int kb = HELD; kb < KB; kb++)
            for (int mt = 0; mt < MT; mt++) {
                u32 words[8];
                fragment(words, w, block, mt, kb);
                Words *at = (Words *)shared + ((kb - HELD) * MT + mt) * 2 * THREADS + threadIdx.x;
#pragma unroll
                for (int i = 0; i < 4; i++) at[0].w[i] = words[i], at[THREADS].w[i] = words[4 + i];
            }
    }

    typedef Words Window[WINDOW][NT];  // what a lane reads of the rows for WINDOW k-blocks

    static __device__ __forceinline__ bool inside(int kb) {
        int first = threadIdx.x / 32 % KW * KB;
        return kb < KB && (first + kb) * KE + threadIdx.x % 4 * (KE / 4) < K;
    }

    static __device__ __forceinline__ const char *place(const char *row, int kb) {
        return row + (threadIdx.x / 32 % KW * KB + kb) * 64 + threadIdx.x % 4 * 16;
    }

    // start to read a window of the rows at `row[n]`
    static __device__ __forceinline__ void load(Window &b, const char *const (&row)[NT], int window) {
#pragma unroll
        for (int i = 0; i < WINDOW; i++)
#pragma unroll
            for (int n = 0; n < NT; n++) {
                int kb = window * WINDOW + i;
                if (!inside(kb)) b[i][n] = Words{};
                else if (ALONE) b[i][n] = *(const Words *)place(row[n], kb);
                else b[i][n] = load_told(place(row[n], kb));
            }
    }

    // look again, at all that is missing at once, until the window is whole; whether that was necessary
    static __device__ __forceinline__ bool wait(Window &b, const char *const (&row)[NT], int window) {
        for (u32 looks = 0;; looks++) {
            bool missing = false;
#pragma unroll
            for (int i = 0; i < WINDOW; i++)
#pragma unroll
                for (int n = 0; n < NT; n++) missing |= window * WINDOW + i < KB && unsaid(b[i][n]);
            if (!__any_sync(~0u, missing)) return looks > 0;
#pragma unroll
            for (int i = 0; i < WINDOW; i++)
#pragma unroll
                for (int n = 0; n < NT; n++)
                    if (window * WINDOW + i < KB && unsaid(b[i][n]))
                        b[i][n] = load_told(place(row[n], window * WINDOW + i));
            if (looks > PATIENCE) __trap();  // an error is better than a GPU that never answers
        }
    }

    // half of a k-block's fragment of tile mt: one product's words
    __device__ __forceinline__ Words half_fragment(const u32 *shared, int kb, int mt, int half) const {
        if (kb >= HELD) return ((const Words *)shared)[(((kb - HELD) * MT + mt) * 2 + half) * THREADS + threadIdx.x];
        Words w;
#pragma unroll
        for (int x = 0; x < 4; x++) w.w[x] = a[kb < HELD ? kb : 0][mt][4 * half + x];
        return w;
    }

    __device__ __forceinline__ void multiply_block(
        float (&acc)[MT][NT][SPLIT][4], const Words (&b)[NT], const u32 *shared, int kb) const {
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                Words w = half_fragment(shared, kb, mt, half);
#pragma unroll
                for (int n = 0; n < NT; n++) {
                    u32 low = b[n].w[2 * half], high = b[n].w[2 * half + 1];
#if DTYPE == 2
                    if (!ALONE) low = to_tf32(__uint_as_float(low)), high = to_tf32(__uint_as_float(high));
#endif
                    multiply(acc[mt][n][half % SPLIT], w.w, low, high);
                }
            }
    }

    // partial sums of the rows at `row[n]` into sums[kw][row][m]; the first window is on its way in `b`;
    // `checked`: words may be UNSAID
    __device__ __forceinline__ void run(
        Window &b, const char *const (&row)[NT], bool checked, const u32 *shared, float *sums) const {
        constexpr int WINDOWS = (KB + WINDOW - 1) / WINDOW;
        float acc[MT][NT][SPLIT][4] = {};
        Window other;
#pragma unroll
        for (int window = 0; window < WINDOWS; window++) {
            Window &now = window % 2 ? other : b, &next = window % 2 ? b : other;
            bool more = window + 1 < WINDOWS;
            if (more) load(next, row, window + 1);
            if (!ALONE && checked && wait(now, row, window) && more) load(next, row, window + 1);  // it was too early
#pragma unroll
            for (int i = 0; i < WINDOW; i++)
                if (window * WINDOW + i < KB) multiply_block(acc, now[i], shared, window * WINDOW + i);
        }
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        float *to = sums + warp % KW * ROWS * STRIDE;
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int n = 0; n < NT; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int m = (warp / KW * MT + mt) * 16 + lane / 4 + i / 2 * 8, r = n * 8 + lane % 4 * 2 + i % 2;
                    float v = acc[mt][n][0][i];
                    to[r * STRIDE + m] = SPLIT == 2 ? v + acc[mt][n][SPLIT - 1][i] : v;
                }
    }

    // the sum over the warps of row r, for the pair of units of gate `gate` that starts at `unit`
    static __device__ __forceinline__ Float2 sum(const float *sums, int r, int gate, int unit) {
        Float2 total = {0.f, 0.f};
        const float *at = sums + r * STRIDE + gate * UC + unit;
#pragma unroll
        for (int kw = 0; kw < KW; kw++) {
            Float2 v = *(const Float2 *)(at + kw * ROWS * STRIDE);
            total.x += v.x, total.y += v.y;
        }
        return total;
    }
};

#if CELL == 4
typedef Product<BACKWARD ? 2 : 0, BACKWARD ? 1 : 2, KREG> ProductA;  // r and z; backward n
typedef Product<BACKWARD ? 0 : 2, BACKWARD ? 2 : 1, KREG> ProductB;  // n; backward r and z
#else
typedef Product<0, GATES, KREG> ProductA;
#endif

#if CELL == 4
constexpr int WEIGHT_WORDS = ProductA::WEIGHT_WORDS + ProductB::WEIGHT_WORDS;
constexpr int SUM_WORDS = KW * ROWS * (ProductA::STRIDE > ProductB::STRIDE ? ProductA::STRIDE : ProductB::STRIDE);
constexpr int SAID_A = BACKWARD ? ProductA::K : ProductB::K;  // forward product B reads what A's gates tell,
constexpr int SAID_B = BACKWARD ? ProductB::K : ProductA::K;  // backward product A reads the gradient of n
#else
constexpr int WEIGHT_WORDS = ProductA::WEIGHT_WORDS;
constexpr int SUM_WORDS = KW * ROWS * ProductA::STRIDE;
constexpr int SAID_A = 0;
constexpr int SAID_B = ProductA::K;
#endif

// rows of a group of one block, in shared memory; the stride keeps 16-byte reads of two rows apart
constexpr int ROW_A = (SAID_A * (int)sizeof(Number) + 63) / 128 * 128 + 64;
constexpr int ROW_B = (SAID_B * (int)sizeof(Number) + 63) / 128 * 128 + 64;
constexpr int SLOT_A = SAID_A ? ROWS * ROW_A : 0, SLOT_B = ROWS * ROW_B;
constexpr int SHARED_BYTES = 4 * (WEIGHT_WORDS + (ALONE ? 1 : 2) * SUM_WORDS) + (ALONE ? CHUNKS * 2 * (SLOT_A + SLOT_B) : 0);

// ---- arguments ------------------------------------------------------------------------------------

struct Side {              // one direction; rows of gates are (gate, unit), each gate PADDED wide
    const Number *w;       // W_hh (GATES * UNITS, PADDED); backward its transpose (UNITS, GATES, PADDED)
    const Number *b;       // b_hh (GATES * UNITS) or null
    Number *gates;         // the input's share; forward leaves the gates there if it saves
    Number *extra;         // gru reset after: W_hn h + b_hn (T, B, PADDED)
    float *cells;          // lstm: c (T, B, PADDED)
    Number *y;             // (T, B, y_row)
    Number *told;          // what the group reads: forward h, backward the gradients that meet W_hh
    Number *told_first;    // reset before: r * h forward, the gradient of n backward
    const Number *h0, *c0; // (B, PADDED) or null
    Number *hn, *cn;       // (B, UNITS); backward: their gradients or null
    const Number *dy;      // (B, T, UNITS) by strides, or null
    Number *dx;            // gru backward: gradients of the input's share
    Number *dh0, *dc0;     // (B, UNITS) or null
    i64 reverse;
};

struct Arguments {
    Side side[2];
    const i64 *lengths;    // (B) or null
    i64 batch, steps, groups, passes, save;
    i64 gates_t, gates_b;  // strides of `gates` and `dx`, in elements
    i64 y_row;             // elements from a row of y (and of `told` forward) to the next
    i64 dy_t, dy_b;        // strides of dy
    i64 told_row, dx_row;  // elements from a row of backward's `told` and `dx` to the next
};

__device__ __forceinline__ Float2 read_units(const Number *at, int unit) {  // any alignment, padding is 0
    return {unit < UNITS ? widen(at[0]) : 0.f, unit + 1 < UNITS ? widen(at[1]) : 0.f};
}

__device__ __forceinline__ void write_units(Number *at, int unit, Float2 v) {
    if (unit < UNITS) at[0] = narrow(v.x);
    if (unit + 1 < UNITS) at[1] = narrow(v.y);
}

__device__ __forceinline__ Float2 read_pair(const Number *at) { return unpack(*(const Pair *)at); }
__device__ __forceinline__ void write_pair(Number *at, Float2 v) { *(Pair *)at = pack(v); }

// one pair of units of one row, and where it is
struct Place {
    int unit;              // first unit of the pair inside the block
    int row;               // row inside the chunk
    i64 b;                 // row of the batch
    i64 length;            // 0 if there is no such row
    bool mine;             // this thread has it
};

__device__ __forceinline__ Place place(const Arguments &arg, int block, i64 first_row, int j) {
    int e = threadIdx.x + j * THREADS;
    Place p;
    p.unit = e % (UC / 2) * 2;
    p.row = e / (UC / 2);
    p.b = first_row + p.row;
    p.mine = (PAIRS % THREADS == 0 || e < PAIRS) && p.b < arg.batch && block * UC + p.unit < PADDED;
    p.b = p.mine ? p.b : 0;
    p.length = !p.mine ? 0 : arg.lengths ? arg.lengths[p.b] : arg.steps;
    return p;
}

__device__ __forceinline__ void say_here(char *slot, int bytes, int row, int k, Float2 v) {
#if DTYPE == 2
    v = {__uint_as_float(to_tf32(v.x)), __uint_as_float(to_tf32(v.y))};
#endif
    *(Pair *)(slot + row * bytes + k * sizeof(Number)) = pack(v);
}

// ---- the equations, for a pair of units --------------------------------------------------------------

// gates before their nonlinearity in `gate`, after it out; `cell` is c before and after the step;
// `hidden`: gru reset after, W_hn h + b_hn
__device__ __forceinline__ Float2 new_state(Float2 (&gate)[GATES], Float2 was, Float2 &cell, Float2 hidden) {
#if CELL == 0
    return tangent(gate[0]);
#elif CELL == 1
    return {positive(gate[0].x), positive(gate[0].y)};
#elif CELL == 2
    gate[0] = sigmoid(gate[0]), gate[1] = sigmoid(gate[1]), gate[2] = tangent(gate[2]), gate[3] = sigmoid(gate[3]);
    cell = gate[1] * cell + gate[0] * gate[2];
    return gate[3] * tangent(cell);
#else
    if (CELL == 3) gate[0] = sigmoid(gate[0]), gate[1] = sigmoid(gate[1]), gate[2] = gate[2] + gate[0] * hidden;
    gate[2] = tangent(gate[2]);
    return gate[1] * was + (1.f - gate[1]) * gate[2];
#endif
}

// what a step of backward reads besides gradients
#if CELL == 2
typedef Float2 State;
#else
typedef Pair State;
#endif

struct Past {
    Pair gate[GATES];
    Number dy[2];
    State now, old;  // the state after and before the step: h, for lstm c
    Pair hidden;     // gru reset after: W_hn h + b_hn

    __device__ __forceinline__ Float2 slope() const { return {widen(dy[0]), widen(dy[1])}; }
};

__device__ __forceinline__ Float2 wide(Float2 v) { return v; }
__device__ __forceinline__ Float2 wide(Pair p) { return unpack(p); }

// dh, dc: gradients of the state after the step, out those before it but for what comes through W_hh;
// d: gradients of the gates before their nonlinearity; `drh`: reset before, the gradient of r * h
__device__ __forceinline__ void gradients(Float2 (&d)[GATES], Float2 &dh, Float2 &dc, const Past &past, Float2 drh) {
    Float2 old = wide(past.old), now = wide(past.now);
#if CELL == 0
    d[0] = dh * (1.f - now * now);
    dh = {0.f, 0.f};
#elif CELL == 1
    d[0] = {now.x > 0.f ? dh.x : 0.f, now.y > 0.f ? dh.y : 0.f};
    dh = {0.f, 0.f};
#elif CELL == 2
    Float2 i = unpack(past.gate[0]), f = unpack(past.gate[1]), g = unpack(past.gate[2]), o = unpack(past.gate[3]);
    Float2 th = tangent(now);
    dc = dc + dh * o * (1.f - th * th);
    d[0] = dc * g * i * (1.f - i);
    d[1] = dc * old * f * (1.f - f);
    d[2] = dc * i * (1.f - g * g);
    d[3] = dh * th * o * (1.f - o);
    dc = dc * f;
    dh = {0.f, 0.f};
#else
    Float2 r = unpack(past.gate[0]), z = unpack(past.gate[1]), n = unpack(past.gate[2]);
    d[1] = dh * (old - n) * z * (1.f - z);
    d[2] = dh * (1.f - z) * (1.f - n * n);
    if (CELL == 3) d[0] = d[2] * unpack(past.hidden) * r * (1.f - r), dh = dh * z;
    else d[0] = drh * old * r * (1.f - r), dh = dh * z + drh * r;
#endif
}

// ---- a walk through the steps ------------------------------------------------------------------------

constexpr bool EARLY = !ALONE && CHUNKS > 1 && CELL != 4;  // read for the next chunk before this one's gates

struct Walk {
    const Arguments &arg;
    const Side &side;
    int block;
    float *sums;
    char *slots;
    i64 row0;                                     // the group's first row
    Place at[CHUNKS][EACH];
    Float2 h[CHUNKS][EACH], c[CHUNKS][EACH];      // states; backward their gradients
    const char *row[NT];

    // Where a product leaves its sums. Between blocks two places take turns, so that one barrier a product is
    // enough: whoever writes a place again has passed the barrier after the product in between.
    __device__ __forceinline__ float *sums_of(int turn) const { return sums + (ALONE ? 0 : turn) * SUM_WORDS; }
    __device__ __forceinline__ float *sums_a(i64 s, int q) const { return sums_of(CELL == 4 ? 0 : (s * CHUNKS + q) & 1); }
    __device__ __forceinline__ float *sums_b() const { return sums_of(1); }

    // what is said inside the block must be there before it is read
    __device__ __forceinline__ void settle() const { if (ALONE) __syncthreads(); }

    __device__ __forceinline__ char *slot_a(int q, i64 s) { return slots + (q * 2 + (s & 1)) * (SLOT_A + SLOT_B); }
    __device__ __forceinline__ char *slot_b(int q, i64 s) { return slot_a(q, s) + SLOT_A; }
    __device__ __forceinline__ int unit(const Place &p) { return block * UC + p.unit; }
    __device__ __forceinline__ i64 time(i64 s) { return side.reverse != BACKWARD ? arg.steps - 1 - s : s; }

    __device__ __forceinline__ void slot_rows(const char *slot, int bytes) {
#pragma unroll
        for (int n = 0; n < NT; n++) row[n] = slot + (n * 8 + threadIdx.x % 32 / 4) * bytes;
    }

    // rows of chunk q in memory; rows that are not there read the last one
    __device__ __forceinline__ void told_rows(const Number *told, int q, i64 stride) {
#pragma unroll
        for (int n = 0; n < NT; n++) {
            i64 b = row0 + q * ROWS + n * 8 + threadIdx.x % 32 / 4;
            row[n] = (const char *)(told + (b < arg.batch ? b : arg.batch - 1) * stride);
        }
    }

    __device__ __forceinline__ void begin(i64 first_row) {
        row0 = first_row;
#pragma unroll
        for (int q = 0; q < CHUNKS; q++)
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                Place p = at[q][j] = place(arg, block, row0 + q * ROWS, j);
                h[q][j] = c[q][j] = {0.f, 0.f};
                if (!p.mine) continue;
                if (BACKWARD) {
                    if (side.hn) h[q][j] = read_units(side.hn + p.b * UNITS + unit(p), unit(p));
                    if (CELL == 2 && side.cn) c[q][j] = read_units(side.cn + p.b * UNITS + unit(p), unit(p));
                } else {
                    // adding zero makes a NaN's bits those of an instruction's
                    if (side.h0) h[q][j] = read_pair(side.h0 + p.b * PADDED + unit(p)) + Float2{0.f, 0.f};
                    if (CELL == 2 && side.c0) c[q][j] = read_pair(side.c0 + p.b * PADDED + unit(p));
                    if (ALONE) say_here(slot_b(q, 0), ROW_B, p.row, unit(p), h[q][j]);
                }
            }
        __syncthreads();  // the rows before may still be read: their last sums, or what was said
    }

    __device__ __forceinline__ void end(Number *to_h, Number *to_c) {
#pragma unroll
        for (int q = 0; q < CHUNKS; q++)
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                Place p = at[q][j];
                if (!p.mine) continue;
                if (to_h) write_units(to_h + p.b * UNITS + unit(p), unit(p), h[q][j]);
                if (CELL == 2 && to_c) write_units(to_c + p.b * UNITS + unit(p), unit(p), c[q][j]);
            }
    }

#if !BACKWARD
    __device__ __forceinline__ bool said(i64 s) { return s > 0 || side.h0; }

    __device__ __forceinline__ void h_rows(i64 s, int q) {
        if (ALONE) slot_rows(slot_b(q, s), ROW_B);
        else if (s == 0) told_rows(side.h0, q, PADDED);
        else told_rows(side.told + time(s - 1) * arg.batch * arg.y_row, q, arg.y_row);
    }

    // start to read the input's share of the gates of chunk q at step s
    __device__ __forceinline__ void read_share(Pair (&share)[GATES][EACH], i64 s, int q) {
        if (s >= arg.steps) return;
        i64 t = time(s);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            Place p = at[q][j];
            const Number *from = side.gates + t * arg.gates_t + p.b * arg.gates_b + unit(p);
#pragma unroll
            for (int g = 0; g < GATES; g++) share[g][j] = t < p.length ? *(const Pair *)(from + g * PADDED) : Pair{};
        }
    }

    __device__ __forceinline__ void read_bias(Float2 (&bias)[GATES][EACH]) {
#pragma unroll
        for (int g = 0; g < GATES; g++)
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                int first = block * UC + (threadIdx.x + j * THREADS) % (UC / 2) * 2;
                bias[g][j] = side.b ? read_units(side.b + g * UNITS + first, first) : Float2{0.f, 0.f};
            }
    }

    // keep what backward needs
    __device__ __forceinline__ void save(const Place &p, i64 t, const Float2 (&gate)[GATES], Float2 cell, Float2 hidden) {
        i64 here = (t * arg.batch + p.b) * PADDED + unit(p);
        if (CELL >= 2 && t < p.length)
#pragma unroll
            for (int g = 0; g < GATES; g++)
                write_pair(side.gates + t * arg.gates_t + p.b * arg.gates_b + g * PADDED + unit(p), gate[g]);
        if (CELL == 2) *(Float2 *)(side.cells + here) = cell;
        if (CELL == 3) write_pair(side.extra + here, hidden);
    }

    // the new state is the row's if it has a step t; it is told, and the output, which is zero if it has not
    __device__ __forceinline__ void tell_state(const Place &p, i64 s, int q, Float2 state, Float2 out) {
        i64 place_t = (time(s) * arg.batch + p.b) * arg.y_row + unit(p);
        if (ALONE) say_here(slot_b(q, s + 1), ROW_B, p.row, unit(p), state);
        else if (side.told != side.y) tell(side.told + place_t, pack(state));
        tell(side.y + place_t, pack(out));
    }

#if CELL == 4
    // r and z of all pairs in `gate`; r * h is told
    __device__ __forceinline__ void reset(Float2 (&gate)[GATES][EACH], i64 s, int q) {
        i64 t = time(s);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            Place p = at[q][j];
            if (!p.mine) continue;
            if (said(s))
#pragma unroll
                for (int g = 0; g < 2; g++) gate[g][j] = gate[g][j] + ProductA::sum(sums_a(s, q), p.row, g, p.unit);
            gate[0][j] = sigmoid(gate[0][j]), gate[1][j] = sigmoid(gate[1][j]);
            Float2 rh = t < p.length ? gate[0][j] * h[q][j] : Float2{0.f, 0.f};
            if (ALONE) say_here(slot_a(q, s), ROW_A, p.row, unit(p), rh);
            if (!ALONE || arg.save) tell(side.told_first + (t * arg.batch + p.b) * PADDED + unit(p), pack(rh));
        }
    }
#endif

    __device__ __forceinline__ void elementwise(Float2 (&gate)[GATES][EACH], const Float2 (&bias)[GATES][EACH], i64 s, int q) {
        i64 t = time(s);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            Place p = at[q][j];
            if (!p.mine) continue;
            Float2 mine[GATES], cell = c[q][j], hidden = {0.f, 0.f};
#pragma unroll
            for (int g = 0; g < GATES; g++) {
                Float2 sum = {0.f, 0.f};
#if CELL == 4
                if (g == 2) sum = ProductB::sum(sums_b(), p.row, 0, p.unit);
#else
                if (said(s)) sum = ProductA::sum(sums_a(s, q), p.row, g, p.unit);
#endif
                if (CELL == 3 && g == 2) hidden = sum + bias[2][j], mine[g] = gate[g][j];
                else mine[g] = gate[g][j] + sum;
            }
            Float2 now = new_state(mine, h[q][j], cell, hidden);
            bool active = t < p.length;
            if (active) h[q][j] = now, c[q][j] = cell;
            tell_state(p, s, q, h[q][j], active ? now : Float2{0.f, 0.f});
            if (arg.save) save(p, t, mine, c[q][j], hidden);
        }
    }

#if CELL == 4
    __device__ __forceinline__ void steps(const ProductA &a, const ProductB &b, const u32 *weights_a, const u32 *weights_b) {
        ProductB::Window first_b;
#else
    __device__ __forceinline__ void steps(const ProductA &a, const u32 *weights_a) {
#endif
        ProductA::Window first;
        Float2 bias[GATES][EACH];
        Pair ahead[GATES][EACH];
        read_bias(bias);
        read_share(ahead, 0, 0);
        for (i64 s = 0; s < arg.steps; s++) {
#pragma unroll
            for (int q = 0; q < CHUNKS; q++) {
                Pair share[GATES][EACH];
                Float2 gate[GATES][EACH];
#pragma unroll
                for (int g = 0; g < GATES; g++)
#pragma unroll
                    for (int j = 0; j < EACH; j++) share[g][j] = ahead[g][j];
                i64 next_s = q + 1 < CHUNKS ? s : s + 1;
                int next_q = q + 1 < CHUNKS ? q + 1 : 0;
                read_share(ahead, next_s, next_q);
                if (said(s)) {
                    if (!EARLY || (s == 0 && q == 0)) h_rows(s, q), ProductA::load(first, row, 0);
                    a.run(first, row, s > 0, weights_a, sums_a(s, q));
                }
                if (EARLY && next_s < arg.steps && said(next_s)) h_rows(next_s, next_q), ProductA::load(first, row, 0);
                __syncthreads();
#pragma unroll
                for (int g = 0; g < GATES; g++)
#pragma unroll
                    for (int j = 0; j < EACH; j++)
                        gate[g][j] = CELL == 3 && g == 2 ? unpack(share[g][j]) : unpack(share[g][j]) + bias[g][j];
#if CELL == 4
                reset(gate, s, q);
                settle();
                if (ALONE) slot_rows(slot_a(q, s), ROW_A);
                else told_rows(side.told_first + time(s) * arg.batch * PADDED, q, PADDED);
                ProductB::load(first_b, row, 0);
                b.run(first_b, row, true, weights_b, sums_b());
                __syncthreads();
#endif
                elementwise(gate, bias, s, q);
                settle();
            }
        }
        end(side.hn, side.cn);
    }
#else
    __device__ __forceinline__ float *last_sums(i64 s, int q) const { return CELL == 4 ? sums_b() : sums_a(s, q); }

    static constexpr int TOLD = CELL == 4 ? 2 : GATES;  // gates in `told`

    // the gradients told at step s - 1 are those of the step that was s - 1 steps before the end
    __device__ __forceinline__ void gradient_rows(i64 s, int q) {
        if (ALONE) slot_rows(slot_b(q, s), ROW_B);
        else told_rows(side.told + time(s - 1) * arg.batch * arg.told_row, q, arg.told_row);
    }

    // start to read what chunk q needs at step s
    __device__ __forceinline__ void read_past(Past (&past)[EACH], i64 s, int q) {
        i64 t = time(s), before = time(s + 1);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            Place p = at[q][j];
            past[j] = Past{};
            if (s >= arg.steps || t >= p.length) continue;
            if (side.dy) {
                const Number *dy = side.dy + t * arg.dy_t + p.b * arg.dy_b + unit(p);
                if (unit(p) < UNITS) past[j].dy[0] = dy[0];
                if (unit(p) + 1 < UNITS) past[j].dy[1] = dy[1];
            }
            bool first = side.reverse ? t == p.length - 1 : t == 0;
            i64 here = t * arg.batch + p.b, there = before * arg.batch + p.b;
            if (CELL >= 2)
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    past[j].gate[g] = *(const Pair *)(side.gates + t * arg.gates_t + p.b * arg.gates_b + g * PADDED + unit(p));
#if CELL <= 1
            past[j].now = *(const Pair *)(side.y + here * arg.y_row + unit(p));
#elif CELL == 2
            past[j].now = *(const Float2 *)(side.cells + here * PADDED + unit(p));
            if (!first) past[j].old = *(const Float2 *)(side.cells + there * PADDED + unit(p));
            else if (side.c0) past[j].old = read_pair(side.c0 + p.b * PADDED + unit(p));
#else
            if (!first) past[j].old = *(const Pair *)(side.y + there * arg.y_row + unit(p));
            else if (side.h0) past[j].old = *(const Pair *)(side.h0 + p.b * PADDED + unit(p));
            if (CELL == 3) past[j].hidden = *(const Pair *)(side.extra + here * PADDED + unit(p));
#endif
        }
    }

#if CELL == 4
    // the gradient of the candidate, told first
    __device__ __forceinline__ void candidate(const Past (&past)[EACH], i64 s, int q) {
        i64 t = time(s);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            Place p = at[q][j];
            if (!p.mine) continue;
            Float2 dn = {0.f, 0.f};
            if (t < p.length) {
                Float2 z = unpack(past[j].gate[1]), n = unpack(past[j].gate[2]);
                dn = (h[q][j] + past[j].slope()) * (1.f - z) * (1.f - n * n);
            }
            if (ALONE) say_here(slot_a(q, s), ROW_A, p.row, unit(p), dn);
            else tell(side.told_first + (t * arg.batch + p.b) * PADDED + unit(p), pack(dn));
        }
    }
#endif

    __device__ __forceinline__ void elementwise(const Past (&past)[EACH], i64 s, int q) {
        i64 t = time(s);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            Place p = at[q][j];
            if (!p.mine) continue;
            Float2 d[GATES], drh = {0.f, 0.f};
#pragma unroll
            for (int g = 0; g < GATES; g++) d[g] = {0.f, 0.f};
            if (t < p.length) {
                h[q][j] = h[q][j] + past[j].slope();
#if CELL == 4
                drh = ProductA::sum(sums_a(s, q), p.row, 0, p.unit);
#endif
                gradients(d, h[q][j], c[q][j], past[j], drh);
            }
            i64 here = t * arg.batch + p.b;
#pragma unroll
            for (int g = 0; g < TOLD; g++) {
                Float2 met = CELL == 3 && g == 2 ? d[g] * unpack(past[j].gate[0]) : d[g];  // what meets W_hh
                int k = g * PADDED + unit(p);
                if (ALONE) say_here(slot_b(q, s + 1), ROW_B, p.row, k, met);
                if (!ALONE || CELL != 4) tell(side.told + here * arg.told_row + k, pack(met));
            }
            if (CELL >= 3)
#pragma unroll
                for (int g = 0; g < GATES; g++) write_pair(side.dx + here * arg.dx_row + g * PADDED + unit(p), d[g]);
        }
    }

#if CELL == 4
    __device__ __forceinline__ void steps(const ProductA &a, const ProductB &b, const u32 *weights_a, const u32 *weights_b) {
        typedef ProductB Last;  // the product that gives dh
        const Last &product = b;
        const u32 *weights = weights_b;
        ProductA::Window first_a;
#else
    __device__ __forceinline__ void steps(const ProductA &a, const u32 *weights) {
        typedef ProductA Last;
        const Last &product = a;
#endif
        typename Last::Window first;
        Past ahead[EACH], past[EACH];
        read_past(ahead, 0, 0);
        i64 last = side.dh0 ? arg.steps : arg.steps - 1;  // the gradient of h0 takes one more product
        for (i64 s = 0; s <= last; s++) {
#pragma unroll
            for (int q = 0; q < CHUNKS; q++) {
#pragma unroll
                for (int j = 0; j < EACH; j++) past[j] = ahead[j];
                i64 next_s = q + 1 < CHUNKS ? s : s + 1;
                int next_q = q + 1 < CHUNKS ? q + 1 : 0;
                read_past(ahead, next_s, next_q);
                if (s > 0) {
                    if (!EARLY || (s == 1 && q == 0)) gradient_rows(s, q), Last::load(first, row, 0);
                    product.run(first, row, true, weights, last_sums(s, q));
                }
                if (EARLY && next_s > 0 && next_s <= last && !(next_s == 1 && next_q == 0))
                    gradient_rows(next_s, next_q), Last::load(first, row, 0);
                __syncthreads();
                if (s > 0)
#pragma unroll
                    for (int j = 0; j < EACH; j++)
                        if (at[q][j].mine) h[q][j] = h[q][j] + Last::sum(last_sums(s, q), at[q][j].row, 0, at[q][j].unit);
                if (s < arg.steps) {
#if CELL == 4
                    candidate(past, s, q);
                    settle();
                    if (ALONE) slot_rows(slot_a(q, s), ROW_A);
                    else told_rows(side.told_first + time(s) * arg.batch * PADDED, q, PADDED);
                    ProductA::load(first_a, row, 0);
                    a.run(first_a, row, true, weights_a, sums_a(s, q));
                    __syncthreads();
#endif
                    elementwise(past, s, q);
                }
                settle();
            }
        }
        if (side.dh0) end(side.dh0, side.dc0);
    }
#endif
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) recurrence(const __grid_constant__ Arguments arg) {
    extern __shared__ __align__(128) char shared[];
    u32 *weights_a = (u32 *)shared;
    float *sums = (float *)(weights_a + WEIGHT_WORDS);
    char *slots = (char *)(sums + SUM_WORDS);  // of a group of one block
    int block = blockIdx.x % BLOCKS;
    i64 group = blockIdx.x / BLOCKS % arg.groups;
    const Side &side = arg.side[blockIdx.x / BLOCKS / arg.groups];

    ProductA a;
    a.load_weights(side.w, block, weights_a);
#if CELL == 4
    ProductB b;
    u32 *weights_b = weights_a + ProductA::WEIGHT_WORDS;
    b.load_weights(side.w, block, weights_b);
#endif
    if (ALONE)
        for (int i = threadIdx.x; i < CHUNKS * 2 * (SLOT_A + SLOT_B) / 4; i += THREADS) ((u32 *)slots)[i] = 0;
    __syncthreads();
    Walk walk{arg, side, block, sums, slots};
    for (i64 pass = 0; pass < arg.passes; pass++) {
        i64 first_row = (pass * arg.groups + group) * (CHUNKS * ROWS);
        if (first_row >= arg.batch) break;
        walk.begin(first_row);
#if CELL == 4
        walk.steps(a, b, weights_a, weights_b);
#else
        walk.steps(a, weights_a);
#endif
    }
}

extern "C" __constant__ int shared_bytes = SHARED_BYTES;
