// Where the time of the followed threads goes: on a processor, waiting for one, or blocked, and by what.
//
// A thread leaves a processor at sched_switch, by itself (blocked) or not (preempted); at sched_waking somebody ends its
// wait, and once the kernel has put it into a queue it is runnable until sched_switch brings it back. What it waited for: the system call it is in tells, of calls on files
// the kernel's stack does; user space makes reasons of both. Who slept until another followed thread woke it has waited
// for what that thread did meanwhile: the wait is divided by the latest pieces of the waker's time, and what these do not
// cover stays a wait for a lock. The threads that write the journals of ext4 are followed for that too.
//
// The kernel marks waits for I/O (in_iowait): these end in an interrupt, on top of whatever ran there, so the thread
// seen at the wake-up has nothing to do with them. They, and waits of io_uring and libaio, end in the same interrupt, on
// the same processor, right after the request they were for: that request's operation is noted.
//
// The monitor writes what comes before this text: offsets of members of kernel structs, ARG_<tracepoint>,
// ARG_prev_state, the members that hold a system call's arguments (REGISTER_0 and on).

#include "wait.bpf.h"

// A thread waits for the same file again and again, which then need not be looked for among those of the run.
static __always_inline void remember_file(struct config_t *c, struct thread_t *t)
{
    u64 registers = bpf_task_pt_regs(bpf_get_current_task_btf());
    u64 file = find_file(FOLLOW(registers, REGISTER_0, u64)), inode = file ? read_u64(file + file__f_inode) : 0;
    struct file_key_t before = t->file;
    t->has_file = inode && identify(inode, &t->file) != IS_NONE;
    if (!t->has_file || (t->file_epoch == c->epoch && is_same(&before, &t->file)))
        return;
    t->file_epoch = c->epoch;
    if (files.lookup(&t->file))
        return;
    struct about_t about = {};
    describe_file(inode, &about);
    if (files.update(&t->file, &about))
        lose(LOST_FILE);
}

// A bucket of the map holds one stack, and another one with the same low bits of its hash is refused for as long as the
// map lives. Without the innermost frames, which are the tracepoint's and this program's own, its hash is another one.
static __always_inline void take_stack(struct thread_t *t, struct arguments_t *ctx)
{
    int stack = stacks.get_stackid(ctx, BPF_F_FAST_STACK_CMP);
    if (stack < 0)
        stack = stacks.get_stackid(ctx, BPF_F_FAST_STACK_CMP | 1);
    if (stack < 0)
        stack = stacks.get_stackid(ctx, BPF_F_FAST_STACK_CMP | 2);
    if (stack < 0)
        lose(LOST_STACK);
    else
        t->what.stack = stack;
}

// PostgreSQL's pg_usleep, for one, was a select of nothing until version 15.
static __always_inline int only_sleeps(struct call_t *call)
{
    if (!call || !call->count_in)
        return 0;
    u64 registers = bpf_task_pt_regs(bpf_get_current_task_btf());
    return !(call->count_in == 1 ? FOLLOW(registers, REGISTER_0, u32) : FOLLOW(registers, REGISTER_1, u32));
}

// Whether the request that ends a wait, or that its thread writes the journal, tells its reason.
static __always_inline int is_told(struct thread_t *t, struct call_t *call)
{
    return call ? call->is_plain && t->what.is_io : t->is_helper;
}

static __always_inline void block(struct config_t *c, struct thread_t *t, struct arguments_t *ctx)
{
    u64 task = (u64)bpf_get_current_task_btf();
    u32 flags = FOLLOW(task, task_struct__flags, u32);
    s64 number = flags & (PF_KERNEL_THREAD | PF_IO_THREAD) ? -1 : get_call();
    t->state = t->what.state = BLOCKED;
    t->what.call = number < 0 || number >= 1024 ? NO_CALL : number;
    t->what.is_io = !!(FOLLOW(task, task_struct__in_iowait, u8) & task_struct__in_iowait__MASK);
    t->what.request = t->what.is_for_thread = t->has_file = 0;
    t->what.stack = t->is_helper ? NO_STACK_OF_JOURNAL : NO_STACK;
    struct call_t *call = get_kind(t->what.call);
    if (only_sleeps(call))
        t->what.call = SLEEP;
    if (call && call->is_epoll) {
        u64 registers = bpf_task_pt_regs(bpf_get_current_task_btf());
        t->epoll = 1 + FOLLOW(registers, REGISTER_0, u32);
    }
    if (call && call->kind != IN_KERNEL)
        return;
    if (!is_told(t, call) || t->ends_seen % IN_A_ROW < LOOKED_AT)
        take_stack(t, ctx);
    if (call)
        remember_file(c, t);
}

// Where the processor is idle in a virtual machine, the way into its queue takes many microseconds. The kernel's own
// account of a thread has the time, by the clock of the scheduler: since when it is in this queue, and how long it was in
// those from which it was moved.
static __always_inline u64 find_queued(struct thread_t *t, u64 task, u64 now)
{
#ifdef task_struct__last_arrival
    u64 queued = LOAD(task, task_struct, last_queued, u64) + t->ahead;
    queued -= LOAD(task, task_struct, run_delay, u64) - t->delayed;
    if (t->ahead && queued > t->since && queued < now)
        return queued;
#endif
    return t->since;
}

static __always_inline void end_tail(struct config_t *c, u32 id, struct thread_t *t)
{
    u64 start = later(t->tail.start, c->began);
    remember(t, t->tail.start, t->since, &t->tail.what, t->tail.via, t->tail.links);
    t->tail.start = 0;
    if (start >= t->since)
        return;
    add_time(id, t, &t->tail.what, t->tail.via, t->tail.links, t->since - start);
    if (!t->tail.links)
        add_file_time(t, t->since - start);
}

static __always_inline void leave(struct config_t *c, u32 id, struct thread_t *t, struct arguments_t *ctx, u64 now)
{
    struct what_t computed = {.stack = NO_STACK, .call = NO_CALL, .state = ON_CPU};
    u64 start = later(t->since, c->began);
    renew(t, c);
    if (t->tail.start)  // its arrival was not seen, or a wake-up was still being counted then
        end_tail(c, id, t);
    remember(t, t->since, now, &computed, 0, 0);
    if (start < now)
        add(&t->own[ON_CPU], now - start);
#ifdef task_struct__last_arrival
    u64 task = (u64)bpf_get_current_task_btf();
    if (t->state == ON_CPU)
        t->ahead = t->since - FOLLOW(task, task_struct__last_arrival, u64);
    t->delayed = FOLLOW(task, task_struct__run_delay, u64);
#endif
#ifdef ARG_prev_state
    u32 state = ctx->args[ARG_prev_state];
#else
    u32 state = LOAD(ctx->args[ARG_sched_switch], task_struct, state, u32);
#endif
    t->since = now;
    if (state & DEAD_STATES) {
        t->state = ENDED;
        t->ended = now;
        bpf_get_current_comm(t->name, sizeof(t->name));
    } else if (!state || ctx->args[0])
        t->state = PREEMPTED;
    else
        block(c, t, ctx);
}

// A wait whose end was not seen, since the wake-up came before the thread had gone to sleep, is one for a processor.
static __always_inline void arrive(struct config_t *c, u32 id, struct thread_t *t, u64 task, u64 now)
{
    u32 state = t->state == PREEMPTED ? PREEMPTED : RUNNABLE;
    struct what_t waited = {.stack = NO_STACK, .call = NO_CALL, .state = state};
    renew(t, c);
    if (t->tail.start) {
        t->since = find_queued(t, task, now);
        end_tail(c, id, t);
    }
    u64 start = later(t->since, c->began);
    if (t->state != ON_CPU) {
        remember(t, t->since, now, &waited, 0, 0);
        if (start < now)
            add(&t->own[state], now - start);
    }
    t->state = ON_CPU;
    t->since = now;
}

int HANDLER(on_switch)
{
    struct config_t *c = get_config();
    if (!c || !c->is_following)
        return 0;
    u64 next = ctx->args[ARG_sched_switch + 1];
    u32 id = bpf_get_current_pid_tgid(), next_id = LOAD(next, task_struct, pid, u32);
    struct thread_t *leaving = id ? get_thread(id) : 0, *arriving = next_id ? get_thread(next_id) : 0;
    int is_new = id && !leaving && is_of_followed();
    if (!leaving && !arriving && !is_new)
        return 0;
    u64 now = bpf_ktime_get_ns();
    if (is_new)
        leaving = add_thread(c, id, 0, now);
    if (leaving && leaving->state != ENDED)  // else its number is another thread's by now, which on_born has told
        leave(c, id, leaving, ctx, now);
    if (arriving && arriving->state != ENDED)
        arrive(c, next_id, arriving, next, now);
    return 0;
}

// A new thread may run for long before it leaves its processor for the first time.
int HANDLER(on_born)
{
    struct config_t *c = get_config();
    u64 task = ctx->args[ARG_sched_wakeup_new];
    if (!c || !c->is_following || !is_of_followed())
        return 0;
    u32 id = LOAD(task, task_struct, pid, u32);
    struct thread_t *t = get_thread(id);
    if (t && t->state == ENDED)  // of a thread that had this number before, and ended in this run
        lose(LOST_THREAD);
    t = t ? 0 : add_thread(c, id, 0, bpf_ktime_get_ns());
    if (!t)
        return 0;
    t->process = LOAD(task, task_struct, tgid, u32);
    t->state = RUNNABLE;
    return 0;
}

// A write that has to be durable ends right after the flush that the kernel sends for it: that one counts.
int HANDLER(on_complete)
{
    int zero = 0;
    struct completing_t *last = completing.lookup(&zero);
    if (!last)
        return 0;
    u64 now = bpf_ktime_get_ns();
    u32 flags = LOAD(ctx->args[ARG_block_rq_complete], request, cmd_flags, u32);
    u32 operation = flags & (FLAG(PREFLUSH) | FLAG(FUA)) ? FLUSH : flags & REQ_OP_MASK;
    if (operation == WRITE && last->operation == FLUSH && now - last->at < AT_ONCE_NS)
        return 0;
    last->at = now;
    last->operation = operation;
    return 0;
}

// Notes the request that has just ended here; other operations than reads, writes and flushes stay without a name.
static __always_inline void note_request(struct thread_t *t, u64 now)
{
    int zero = 0;
    struct completing_t *last = completing.lookup(&zero);
    if (last && now - last->at < SOON_NS && last->operation <= FLUSH)
        t->what.request = last->operation + 1;
}

// The journal's thread, when it is the waker: its waits are those of who waits for a commit.
static __always_inline struct thread_t *add_helper(struct config_t *c, u32 id, u64 now)
{
    u64 name[2] = {};
    bpf_get_current_comm(name, sizeof(name));
    return (name[0] & ((1ULL << JOURNAL_BYTES * 8) - 1)) == JOURNAL_THREAD ? add_thread(c, id, 1, now) : 0;
}

// Whether `t`, which sleeps in a call of this kind, has waited for the current thread. An interrupt may wake it on top of
// a thread that has nothing to do with it: where one can, the current thread must be in a call that wakes others.
static __always_inline int has_waited_for(struct thread_t *t, struct call_t *sleeping, u32 flags)
{
    s64 number = flags & PF_KERNEL_THREAD ? -1 : get_call();
    struct call_t *waking = get_kind(number < 0 ? NO_CALL : number);
    u32 kind = sleeping ? sleeping->kind : IN_KERNEL;
    if (kind == IN_KERNEL)
        return !t->what.is_io;
    if (kind == FOR_REQUESTS)
        return !!(flags & PF_IO_THREAD);
    if (!waking)
        return 0;
    if (kind == FOR_THREAD)
        return waking->kind == FOR_THREAD || waking->kind == ENDS_THREAD;
    return kind == FOR_PEER && (waking->is_signal || waking->kind == ENDS_THREAD);
}

// Divides a wait by what the waker did before it got its processor; returns how much of it that covers, in the window. The
// pieces of one divided wait lie in any order, but all of them between two pieces that the waker spent on or for a
// processor: when such a one ended before the wait began, so did all older ones.
static __always_inline u64 divide(struct config_t *c, u32 id, struct thread_t *t, u32 via, struct thread_t *waker)
{
    u64 covered = 0, begin = t->since;
    REPEAT(i, PIECES)
    {
        struct piece_t *piece = &waker->past[(waker->head - 1 - i) & (PIECES - 1)];
        // volatile: a load before the loop's head would close the loop, which only a jump may before Linux 6.4
        u64 window = *(volatile u64 *)&c->began;
        u64 start = later(piece->start, begin), end = piece->end, counted = later(start, window);
        if (end <= begin && !piece->links && piece->what.state < OWN_STATES)
            break;
        if (start >= end || piece->links >= MAX_LINKS)
            continue;
        remember(t, start, end, &piece->what, via, piece->links + 1);
        if (counted >= end)
            continue;
        covered += end - counted;
        add_time(id, t, &piece->what, via, piece->links + 1, end - counted);
    }
    return covered;
}

// A wait for another thread: at its end that one computes.
static __always_inline void end_shared(struct config_t *c, u32 id, struct thread_t *t, u32 via, struct thread_t *waker)
{
    u64 end = later(waker->since, t->since), start = later(t->since, c->began);
    u64 covered = divide(c, id, t, via, waker);
    t->what.is_for_thread = 1;
    t->tail.start = end;
    t->tail.what = (struct what_t){.stack = NO_STACK, .call = NO_CALL, .state = ON_CPU};
    t->tail.via = via;
    t->tail.links = 1;
    if (end > start + covered) {
        add_time(id, t, &t->what, 0, 0, end - start - covered);
        add_file_time(t, end - start - covered);
    }
    if (end - t->since > covered)
        remember(t, t->since, end - covered, &t->what, 0, 0);
}

static __always_inline void end_wait(struct config_t *c, u32 id, struct thread_t *t, u64 now)
{
    u32 via = bpf_get_current_pid_tgid(), flags = FOLLOW(bpf_get_current_task_btf(), task_struct__flags, u32);
    struct thread_t *waker = via && via != id ? get_thread(via) : 0;
    struct call_t *call = get_kind(t->what.call);
    if (waker && waker->state == ENDED)
        waker = 0;
    renew(t, c);
    if (!waker && (flags & PF_KERNEL_THREAD) && !t->what.is_io && (!call || call->kind == IN_KERNEL))
        waker = add_helper(c, via, now);
    if (waker && has_waited_for(t, call, flags)) {
        end_shared(c, id, t, via, waker);
        return;
    }
    if (t->what.is_io || (call && call->kind == FOR_REQUESTS)) {
        note_request(t, now);
        if (is_told(t, call))
            t->ends_seen = t->what.request ? t->ends_seen + 1 : 0;
    } else if (call && call->kind == FOR_PEER && !waker && ((via && !(flags & PF_KERNEL_THREAD)) || !call->has_timeout))
        t->served += 1;
    t->tail.start = t->since;
    t->tail.what = t->what;
    t->tail.via = t->tail.links = 0;
}

int HANDLER(on_waking)
{
    struct config_t *c = get_config();
    u64 task = ctx->args[ARG_sched_waking];
    if (!c || !c->is_following)
        return 0;
    u32 id = LOAD(task, task_struct, pid, u32);
    struct thread_t *t = get_thread(id);
    if (!t || t->state != BLOCKED)
        return 0;
    u64 now = bpf_ktime_get_ns();
    end_wait(c, id, t, now);
    t->state = RUNNABLE;
    t->since = now;
    return 0;
}

// Not of an event: the monitor adds a thread that has not moved since it is followed.
int on_sleeper(struct bpf_raw_tracepoint_args *ctx)
{
    u32 id = ctx->args[0];
    struct config_t *c = get_config();
    struct thread_t *t = c && !get_thread(id) ? add_thread(c, id, 0, c->began) : 0;
    if (!t)
        return 0;
    t->name[0] = 0;
    t->process = ctx->args[1];
    t->what.call = ctx->args[2];
    t->what.state = BLOCKED;
    t->what.stack = NO_STACK;
    t->state = ctx->args[3] ? ON_CPU : BLOCKED;
    return 0;
}
