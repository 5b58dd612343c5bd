// System calls of the followed processes that read, write or sync files, or make threads: counted in the kernel.
//
// Counts calls on regular files and block devices, and calls without a descriptor; those on sockets, pipes and the like
// are left out. libaio: a request is counted at the start of io_submit, and taken back when that refuses it; its end is seen
// at io_getevents. io_uring:
// counted when the kernel takes it over, whoever does (io_uring_enter or a polling kernel thread). What a program does
// through mapped memory is no call: counted is what its page faults bring in and dirty. Raw tracepoints only.
//
// The monitor writes what comes before this text: offsets of members of kernel structs, ARG_<tracepoint>, where a
// system call's arguments lie in struct pt_regs (REGISTER_0 and on), the ROWS that it wants, ROW_io_uring_enter among them, and ONE_DEVICE.

#include "asynchronous.bpf.h"
#include "calls.bpf.h"
#include "mapped.bpf.h"
#include "ring.bpf.h"

// Where a call on a file reads or writes; returns whether it is one we count.
static __always_inline int find_targets(struct thread_t *t, struct call_kind_t *kind)
{
    if (!kind->descriptor)
        return 1;
    int is_counted = find_target(t->arguments[(kind->descriptor - 1) & 7], &t->from, kind->kind == IS_SYNC);
    if (kind->kind != IS_COPY && kind->kind != IS_SENDFILE)
        return is_counted;
    return find_target(t->arguments[kind->kind == IS_SENDFILE ? 0 : 2], &t->to, 0) || is_counted;
}

static __always_inline struct thread_t *begin_thread(void)
{
    u32 id = bpf_get_current_pid_tgid();
    struct thread_t *known = get_thread();
    if (known)
        return known;
#pragma unroll
    for (u32 i = 0; i < THREAD_PLACES; i++) {
        struct thread_t *t = get_thread_place(id, i);
        if (!t || __sync_val_compare_and_swap(&t->id, 0, (u64)id))
            continue;
        t->kind.row = 0;
        return t;
    }
    lose(LOST_THREAD);
    return 0;
}

// The end of a call was not seen: programs may be skipped. What it counted as in flight is no longer.
static __always_inline void leave_unended(struct config_t *c, struct thread_t *t)
{
    if (t->kind.row && t->epoch == c->epoch && t->kind.kind <= IS_SYNC && t->kind.descriptor)
        move_depth(t->kind.kind, BY_CALL, bpf_ktime_get_ns(), -1);
}

int on_enter(struct bpf_raw_tracepoint_args *ctx)
{
    struct config_t *c = get_config();
    if (!is_followed(c))
        return 0;
    u32 number = ctx->args[1];
    struct call_kind_t *kind = kinds.lookup(&number);
    if (!kind || !kind->row)
        return 0;
    struct thread_t *t = begin_thread();
    if (!t)
        return 0;
    u64 registers = bpf_task_pt_regs(bpf_get_current_task_btf());
    leave_unended(c, t);
    t->kind.row = 0;
    t->arguments[0] = FOLLOW(registers, REGISTER_0, u64);
    t->arguments[1] = FOLLOW(registers, REGISTER_1, u64);
    t->arguments[2] = FOLLOW(registers, REGISTER_2, u64);
    t->arguments[3] = FOLLOW(registers, REGISTER_3, u64);
    t->arguments[4] = FOLLOW(registers, REGISTER_4, u64);
    t->arguments[5] = FOLLOW(registers, REGISTER_5, u64);
    if (!find_targets(t, kind))
        return 0;
    t->kind = *kind;
    t->epoch = c->epoch;
    t->next = 0;
    t->batch[READ] = t->batch[WRITE] = t->batch[SYNC] = 0;
    t->from.offset = 0;
    t->from.is_positioned = kind->offset == FROM_POSITION;
    if (kind->offset && !t->from.is_positioned) {
        t->from.offset = t->arguments[(kind->offset - 1) & 7];
        t->from.is_positioned = (s64)t->from.offset < 0;  // preadv2 and pwritev2
    }
    t->started = bpf_ktime_get_ns();
    if (kind->kind <= IS_SYNC && kind->descriptor)
        move_depth(kind->kind, BY_CALL, t->started, 1);
    if (kind->kind == IS_SUBMIT)
        submitting.call(ctx, 0);
    return 0;
}

// A file's position has moved on by what was read or written, also when that was appended.
static __always_inline u64 find_offset(struct target_t *target, u64 bytes)
{
    return target->is_positioned ? read_u64(target->file + file__f_pos) - bytes : target->offset;
}

// The call has moved on the variable that holds the offset; without one, the file's own position.
static __always_inline void count_side(u32 op, struct target_t *target, u64 variable, u64 bytes)
{
    u64 end = 0;
    if (!target->is_file)
        return;
    if (variable)
        bpf_probe_read_user(&end, sizeof(end), (void *)variable);
    else
        end = read_u64(target->file + file__f_pos);
    count_access(op, BY_CALL, &target->key, target->inode, end - bytes, bytes);
}

static __always_inline void end_synchronous(struct thread_t *t, s64 result, u64 now)
{
    u32 op = t->kind.kind;
    struct mode_t *m = op < OPS ? get_mode(op, BY_CALL) : 0;
    if (op >= IS_COPY && result > 0) {
        count_side(READ, &t->from, t->arguments[op == IS_COPY ? 1 : 2], result);
        count_side(WRITE, &t->to, op == IS_COPY ? t->arguments[3] : 0, result);
    }
    if (!m || !t->kind.descriptor)
        return;
    move_depth(op, BY_CALL, now, -1);
    if (result < 0) {
        m->errors += 1;
        return;
    }
    if (op == SYNC || result > 0)
        count_access(op, BY_CALL, &t->from.key, t->from.inode, find_offset(&t->from, result), op == SYNC ? 0 : result);
    m->completed += 1;
    m->latency_ns += now - t->started;
}

int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
    struct config_t *c = get_config();
    if (!is_followed(c))
        return 0;
    struct thread_t *t = get_thread();
    if (!t || !t->kind.row)
        return 0;
    u32 index = t->kind.row;
    struct row_t *row = rows.lookup(&index);
    t->kind.row = 0;
    if (!row || t->epoch != c->epoch)
        return 0;
    s64 result = ctx->args[1];
    int is_error = (u64)result >= -MAX_ERROR;
    u64 now = bpf_ktime_get_ns(), latency = now - t->started;
    row->calls += 1;
    row->errors += is_error;
    row->latency_ns += latency;
    row->latency[get_bucket(latency)] += 1;
    u64 bytes = t->kind.length == FROM_RETURN ? result : t->kind.length ? t->arguments[(t->kind.length - 1) & 7] : 0;
    if (!is_error && t->kind.length) {
        row->bytes += bytes;
        count_size(index, row, bytes);
    }
    if (t->kind.kind <= IS_SENDFILE)
        end_synchronous(t, is_error ? -1 : result, now);
    else if (t->kind.kind == IS_ENTER)
        count_batch(t, BY_IO_URING);
    else if (t->kind.kind == IS_SUBMIT || t->kind.kind == IS_REAP) {
        t->ended = now;
        t->result = result;
        t->next = 0;
        submitted.call(ctx, 0);
    }
    return 0;
}

int on_thread_end(struct bpf_raw_tracepoint_args *ctx)
{
    struct thread_t *t = get_thread();
    if (t)
        t->id = 0;
    return 0;
}
