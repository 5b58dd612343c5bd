// Requests that are submitted now and end later: libaio's control blocks and io_uring's requests.
#pragma once

#include "calls.bpf.h"

#define IOCB_READ 0
#define IOCB_WRITE 1
#define IOCB_FSYNC 2
#define IOCB_FDSYNC 3
#define IOCB_READV 7
#define IOCB_WRITEV 8

struct iocb_t {
    u64 data;
    u32 key, flags;
    u16 opcode, priority;
    u32 descriptor;
    u64 buffer, length, offset;
};
struct event_t {
    u64 data, iocb;
    s64 result, result2;
};

static __always_inline u64 measure_vector(u64 vector, u64 segments)
{
    u64 read[2 * MAX_SEGMENTS] = {}, bytes = 0;
    u32 known = segments < MAX_SEGMENTS ? segments : MAX_SEGMENTS;
    if (segments > MAX_SEGMENTS)
        lose(LOST_VECTOR);
    asm volatile("" : "+r"(known));  // keeps the compiler from moving the bound away from the verifier's eyes
    if (known > MAX_SEGMENTS || bpf_probe_read_user(read, known * 16, (void *)vector))
        return 0;
#pragma unroll
    for (int i = 0; i < MAX_SEGMENTS; i++)
        bytes += read[2 * i + 1];
    return bytes;
}

// Counts what was requested; what did not come is taken back at the end.
static __always_inline void count_flight(struct flight_t *f)
{
    f->is_counted = 1;
    count_access(f->op, f->mode, &f->key, f->inode, f->offset, f->length);
    if (f->op == SYNC)
        return;
    u32 index = f->row;
    struct row_t *row = rows.lookup(&index);
    if (row)
        row->bytes += f->length;
    count_size(index, f->length);
}

static __always_inline void begin_flight(struct config_t *c, struct flight_key_t *key, struct flight_t *fresh)
{
    struct flight_t *old = flights.lookup(key);
    struct mode_t *m = get_mode(fresh->op, fresh->mode);
    fresh->started = bpf_ktime_get_ns();
    if (old && old->epoch == c->epoch) {  // the program has reaped it without a system call
        move_depth(old->op, old->mode, fresh->started, -1);
        if (m)
            __sync_fetch_and_add(&m->unseen, 1);
    }
    fresh->epoch = c->epoch;
    if (flights.update(key, fresh))
        lose(LOST_FLIGHT);
    else
        move_depth(fresh->op, fresh->mode, fresh->started, 1);
}

static __always_inline void take_back(struct flight_t *f, struct mode_t *m, u64 missing)
{
    struct file_key_t key = f->key;
    struct file_t *file = files.lookup(&key);
    u32 op = f->op, index = f->row;
    struct row_t *row = rows.lookup(&index);
    __sync_fetch_and_add(&m->bytes, -missing);
    if (row)
        row->bytes -= missing;
    if (file && op < OPS)
        __sync_fetch_and_add(&file->access[op].bytes, -missing);
}

static __always_inline void end_flight(struct config_t *c, struct flight_key_t *key, struct flight_t *f, s64 result)
{
    struct mode_t *m = get_mode(f->op, f->mode);
    if (f->epoch == c->epoch && m) {
        if (!f->is_counted && !f->is_foreign)
            count_flight(f);
        u64 now = bpf_ktime_get_ns();
        move_depth(f->op, f->mode, now, -1);
        __sync_fetch_and_add(&m->completed, 1);
        __sync_fetch_and_add(&m->latency_ns, now - f->started);
        __sync_fetch_and_add(&m->errors, result < 0);
        u64 done = result < 0 ? 0 : result;
        if (f->is_counted && f->op != SYNC && done < f->length)
            take_back(f, m, f->length - done);
    }
    flights.delete(key);
}

static __always_inline u32 get_iocb_operation(u16 opcode)
{
    if (opcode == IOCB_READ || opcode == IOCB_READV)
        return READ;
    if (opcode == IOCB_WRITE || opcode == IOCB_WRITEV)
        return WRITE;
    return opcode == IOCB_FSYNC || opcode == IOCB_FDSYNC ? SYNC : OPS;
}

static __always_inline void begin_iocb(struct config_t *c, struct thread_t *t, u64 index)
{
    struct flight_key_t key = {.process = bpf_get_current_pid_tgid() >> 32};
    struct flight_t fresh = {.mode = BY_LIBAIO, .row = t->kind.row};
    struct iocb_t iocb;
    if (bpf_probe_read_user(&key.address, 8, (void *)(t->arguments[2] + index * 8))
        || bpf_probe_read_user(&iocb, sizeof(iocb), (void *)key.address))
        return;
    fresh.op = get_iocb_operation(iocb.opcode);
    if (fresh.op == OPS || !find_target(iocb.descriptor, &t->from, fresh.op == SYNC))
        return;
    fresh.key = t->from.key;
    fresh.inode = t->from.inode;
    fresh.offset = iocb.offset;
    fresh.length = fresh.op == SYNC ? 0 : iocb.length;
    if (iocb.opcode == IOCB_READV || iocb.opcode == IOCB_WRITEV)
        fresh.length = measure_vector(iocb.buffer, iocb.length);
    begin_flight(c, &key, &fresh);
    t->batch[fresh.op & 3] += 1;
}

// At the start of io_submit: remembers what is passed, before another thread can see it end.
int on_submit(struct bpf_raw_tracepoint_args *ctx)
{
    struct config_t *c = get_config();
    struct thread_t *t = get_thread();
    if (!c || !t)
        return 0;
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < CHUNK; i++) {
        if (t->next >= t->arguments[1])
            return 0;
        begin_iocb(c, t, t->next);
        t->next += 1;
    }
    submitting.call(ctx, 0);
    lose(LOST_BATCH);
    return 0;
}

static __always_inline void end_submission(struct config_t *c, struct thread_t *t, u64 index, s64 accepted)
{
    struct flight_key_t key = {.process = bpf_get_current_pid_tgid() >> 32};
    bpf_probe_read_user(&key.address, 8, (void *)(t->arguments[2] + index * 8));
    struct flight_t *f = flights.lookup(&key);
    if (!f || f->epoch != c->epoch)
        return;  // it has ended already, and was counted then
    if ((s64)index >= accepted) {
        move_depth(f->op, BY_LIBAIO, bpf_ktime_get_ns(), -1);
        t->batch[f->op & 3] -= 1;
        flights.delete(&key);
    } else if (!f->is_counted)
        count_flight(f);
}

static __always_inline void end_event(struct config_t *c, struct thread_t *t, u64 index)
{
    struct flight_key_t key = {.process = bpf_get_current_pid_tgid() >> 32};
    struct event_t event;
    if (bpf_probe_read_user(&event, sizeof(event), (void *)(t->arguments[3] + index * sizeof(event))))
        return;
    key.address = event.iocb;
    struct flight_t *f = flights.lookup(&key);
    if (f)
        end_flight(c, &key, f, event.result);
}

// At the end of io_submit and io_getevents.
int on_submitted(struct bpf_raw_tracepoint_args *ctx)
{
    struct config_t *c = get_config();
    struct thread_t *t = get_thread();
    s64 result = ctx->args[1];
    if (!c || !t)
        return 0;
    int is_reap = t->kind.kind == IS_REAP;
    s64 end = is_reap ? result : t->arguments[1];
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < CHUNK; i++) {
        if ((s64)t->next >= end) {
            count_batch(t, BY_LIBAIO);
            return 0;
        }
        if (is_reap)
            end_event(c, t, t->next);
        else
            end_submission(c, t, t->next, result);
        t->next += 1;
    }
    submitted.call(ctx, 0);
    lose(LOST_BATCH);
    return 0;
}
