// What the kernel source says in machine instructions, said in C++; it stands where those functions stood.
// Floats are not rounded to tf32: what is left of a difference to the equation is then a mistake.

inline u32 to_tf32(float x) { return __float_as_uint(x); }

inline float widen(u16 x) {
#if DTYPE == 0
    return __uint_as_float((u32)x << 16);
#else
    _Float16 h;
    memcpy(&h, &x, 2);
    return (float)h;
#endif
}

inline u32 half_bits(float x) {
#if DTYPE == 0
    u32 bits = __float_as_uint(x);
    return x != x ? 0x7FFFu : (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
#else
    _Float16 h = (_Float16)x;
    u16 bits;
    memcpy(&bits, &h, 2);
    return x != x ? 0x7FFFu : bits;
#endif
}

inline Pair pack(Float2 v) {
    Pair p;
#if DTYPE == 2
    p.w[0] = __float_as_uint(v.x), p.w[1] = __float_as_uint(v.y);
#else
    p.w[0] = half_bits(v.x) | half_bits(v.y) << 16;
#endif
    return p;
}

inline float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }
inline float tangent(float x) { return tanhf(x); }
inline float positive(float x) { return x != x ? x : x > 0.f ? x : 0.f; }

inline Words load_told(const char *at) {
    Words v;
    memcpy(&v, at, 16);
    return v;
}

inline void tell(Number *at, Pair p) {
    gpu::moved = true;
    memcpy((void *)at, &p, sizeof p);
}

inline float fragment_element(const u32 *words, int place) {  // of registers that hold rows of halves, or floats
#if DTYPE == 2
    return __uint_as_float(words[place]);
#else
    return widen((u16)(words[place / 2] >> 16 * (place % 2)));
#endif
}

// m16n8k16, for tf32 m16n8k8, as the instruction's layout of fragments says
inline void multiply(float (&c)[4], const u32 *a, u32 b0, u32 b1) {
    gpu::Warp &w = gpu::warp();
    int lane = threadIdx.x % 32, each = DTYPE == 2 ? 1 : 2;
    memcpy(w.a[lane], a, 16);
    w.b[lane][0] = b0, w.b[lane][1] = b1;
    gpu::meet(w.meeting);
    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 8 * each; k++) {
            int part = k % (4 * each), far = k / (4 * each);
            float x = fragment_element(w.a[row % 8 * 4 + part / each], (row / 8 + 2 * far) * each + part % each);
            float y = fragment_element(w.b[column * 4 + part / each], far * each + part % each);
            c[i] += x * y;
        }
    }
    gpu::meet(w.meeting);
}
