// A GPU for one kernel source, on the CPU: every CUDA thread is a fiber, and all fibers take turns.
//
// What a warp does together (votes, matrix products) and what a block waits for (__syncthreads) are meetings:
// a fiber that arrives early gives its turn away. Blocks take turns too, so a kernel whose blocks wait for
// each other runs as it would when all are resident; one that waits for ever is stopped and reported.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __constant__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __trap() gpu::stop()

namespace gpu {

struct Meeting {
    int size = 0, arrived = 0;
    unsigned turn = 0;
};

struct Warp {
    Meeting meeting;
    bool votes[32];
    uint32_t a[32][4], b[32][2];
};

struct Block {
    Meeting meeting;
    std::vector<Warp> warps;
    std::vector<char> shared;
};

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    unsigned block, thread;
    bool done = false;
};

struct Index { unsigned x; };

Index thread_index, block_index;
std::vector<Block> blocks;
Fiber *running;
ucontext_t scheduler;
bool stopped, moved;
const void *arguments;

void give_way() { swapcontext(&running->context, &scheduler); }

void stop() {
    stopped = true;
    for (;;) give_way();
}

void meet(Meeting &m, bool counts = true) {  // a vote does not count as moving: one may vote for ever
    unsigned turn = m.turn;
    moved |= counts;
    if (++m.arrived == m.size) m.arrived = 0, m.turn++;
    else while (m.turn == turn) give_way();
}

Block &block() { return blocks[block_index.x]; }
Warp &warp() { return block().warps[thread_index.x / 32]; }

bool any(bool vote) {
    Warp &w = warp();
    w.votes[thread_index.x % 32] = vote;
    meet(w.meeting, false);
    bool found = false;
    for (bool v : w.votes) found |= v;
    meet(w.meeting, false);
    if (found) give_way();  // who votes is about to look again
    return found;
}

}  // namespace gpu

#define threadIdx gpu::thread_index
#define blockIdx gpu::block_index
#define __syncthreads() gpu::meet(gpu::block().meeting)
#define __any_sync(mask, vote) gpu::any(vote)
#define __expf(x) expf(x)
#define __fdividef(x, y) ((x) / (y))

static inline float __uint_as_float(uint32_t x) { float r; memcpy(&r, &x, 4); return r; }
static inline uint32_t __float_as_uint(float x) { uint32_t r; memcpy(&r, &x, 4); return r; }
