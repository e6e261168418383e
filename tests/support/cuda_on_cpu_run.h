// Launch: `grid` blocks of THREADS fibers. Returns 0, or 1 if the kernel stopped itself or waits for ever.
// `late`: the warp of each block that moves only when no other can (none: -1). What another warp does before
// it, that only a barrier would have put behind it, is then done too early.

static void fiber() {
    recurrence(*(const Arguments *)gpu::arguments);
    gpu::running->done = gpu::moved = true;
    gpu::give_way();
}

static bool take_turns(std::vector<gpu::Fiber> &fibers, int late, bool others) {  // whether one is not done
    using namespace gpu;
    bool left = false;
    for (Fiber &f : fibers) {
        if (f.done) continue;
        left = true;
        if (((int)f.thread / 32 == late) == others) continue;
        running = &f, thread_index.x = f.thread, block_index.x = f.block;
        swapcontext(&scheduler, &f.context);
    }
    return left;
}

extern "C" int launch(int grid, const void *arguments, int late) {
    using namespace gpu;
    std::vector<Fiber> fibers(grid * THREADS);
    gpu::arguments = arguments, stopped = false;
    blocks.assign(grid, Block());
    for (Block &b : blocks) {
        b.meeting.size = THREADS;
        b.warps.resize(THREADS / 32);
        for (Warp &w : b.warps) w.meeting.size = 32;
        b.shared.assign(SHARED_BYTES + 128, 0x7F);  // large numbers, so that what nobody wrote shows
    }
    for (int i = 0; i < (int)fibers.size(); i++) {
        Fiber &f = fibers[i];
        f.block = i / THREADS, f.thread = i % THREADS;
        f.stack.resize(1 << 18);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data(), f.context.uc_stack.ss_size = f.stack.size();
        f.context.uc_link = &scheduler;
        makecontext(&f.context, fiber, 0);
    }
    bool left = true;
    for (int idle = 0; left && !stopped && idle < 100;) {
        moved = false;
        left = take_turns(fibers, late, true);
        if (!moved) left = take_turns(fibers, late, false);
        idle = moved ? 0 : idle + 1;
    }
    return left;
}
