// Requests that are submitted now and end later: libaio's control blocks and io_uring's requests.
#pragma once

#include "calls.bpf.h"

// Requests of one io_submit or io_getevents that a program handles before it calls itself, which it can 33 times; the rest
// of a longer batch counts as lost.
#define CHUNK 24

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

struct vector_t {
    struct { u64 base, length; } segments[MAX_SEGMENTS];
};
BPF_PERCPU_ARRAY(vectors, struct vector_t, 1);  // the stack is too small

static __always_inline u64 measure_vector(u64 vector, u64 segments)
{
    int zero = 0;
    u64 bytes = 0;
    struct vector_t *read = vectors.lookup(&zero);
    u32 known = segments < MAX_SEGMENTS ? segments : MAX_SEGMENTS;
    if (segments > MAX_SEGMENTS)
        lose(LOST_VECTOR);
    asm volatile("" : "+r"(known));  // keeps the compiler from moving the bound away from the verifier's eyes
    if (!read || known > MAX_SEGMENTS || bpf_probe_read_user(read, known * 16, (void *)vector))
        return 0;
#pragma unroll
    for (u32 i = 0; i < MAX_SEGMENTS; i++)
        bytes += i < known ? read->segments[i].length : 0;
    return bytes;
}

static __always_inline struct flight_t *get_place(struct flight_key_t *key)
{
    u32 place = (key->address ^ key->process << 40) * GOLDEN >> (64 - FLIGHT_BITS);
    return flights.lookup(&place);
}

static __always_inline struct flight_t *get_flight(struct config_t *c, struct flight_key_t *key)
{
    struct flight_t *f = get_place(key);
    if (f && f->address == key->address && f->process == key->process && f->epoch == c->epoch)
        return f;
    f = c->crowded ? crowd.lookup(key) : 0;
    return f && f->epoch == c->epoch ? f : 0;
}

// Takes the place that the key's hash names, free or left over from another run; where it is taken, one in the hash.
static __always_inline void add_flight(struct config_t *c, struct flight_key_t *key, struct flight_t *fresh)
{
    struct flight_t *f = get_place(key);
    u64 address = f ? f->address : 0;
    if (f && (!address || f->epoch != c->epoch) && __sync_val_compare_and_swap(&f->address, address, key->address) == address) {
        *f = *fresh;
        return;
    }
    fresh->is_crowded = 1;
    if (crowd.update(key, fresh))
        lose(LOST_FLIGHT);
    else
        __sync_fetch_and_add(&c->crowded, 1);
}

static __always_inline void remove_flight(struct config_t *c, struct flight_key_t *key, struct flight_t *f)
{
    if (f->is_crowded) {
        crowd.delete(key);
        __sync_fetch_and_add(&c->crowded, -1);
    } else
        f->address = 0;
}

// Counts what was requested; what did not come is taken back at the end.
static __always_inline void count_flight(struct flight_t *f)
{
    u32 index = f->row;
    struct row_t *row = f->op != SYNC ? rows.lookup(&index) : 0;
    if (row) {
        row->bytes += f->length;
        count_size(index, row, f->length);
    }
    count_access(f->op, f->mode, &f->key, f->inode, f->offset, f->length);
}

static __always_inline void count_once(struct flight_t *f)
{
    if (!f->is_counted && !__sync_val_compare_and_swap(&f->is_counted, 0, 1))
        count_flight(f);
}

static __always_inline void begin_flight(struct config_t *c, struct flight_key_t *key, struct flight_t *fresh, u64 now)
{
    struct flight_t *old = get_flight(c, key);
    struct mode_t *m = get_mode(fresh->op, fresh->mode);
    fresh->address = key->address;
    fresh->process = key->process;
    fresh->started = now;
    fresh->epoch = c->epoch;
    if (old) {  // the program has reaped it without a system call
        move_depth(old->op, old->mode, now, -1);
        remove_flight(c, key, old);
        if (m)
            m->unseen += 1;
    }
    add_flight(c, key, fresh);
    move_depth(fresh->op, fresh->mode, now, 1);
}

static __always_inline void take_back(struct flight_t *f, struct mode_t *m, u64 missing)
{
    struct file_key_t key = f->key;
    struct file_t *file = files.lookup(&key);
    u32 op = f->op, index = f->row;
    struct row_t *row = rows.lookup(&index);
    m->bytes -= missing;
    if (row)
        row->bytes -= missing;
    if (file && op < OPS)
        __sync_fetch_and_add(&file->access[op].bytes, -missing);
}

static __always_inline void end_flight(struct config_t *c, struct flight_key_t *key, struct flight_t *f, s64 result, u64 now)
{
    struct mode_t *m = get_mode(f->op, f->mode);
    if (m) {
        move_depth(f->op, f->mode, now, -1);
        m->completed += 1;
        m->latency_ns += now - f->started;
        m->errors += result < 0;
        u64 done = result < 0 ? 0 : result;
        if (f->is_counted && f->op != SYNC && done < f->length)
            take_back(f, m, f->length - done);
    }
    remove_flight(c, key, f);
}

static __always_inline u32 get_iocb_operation(u16 opcode)
{
    if (opcode == IOCB_READ || opcode == IOCB_READV)
        return READ;
    if (opcode == IOCB_WRITE || opcode == IOCB_WRITEV)
        return WRITE;
    return opcode == IOCB_FSYNC || opcode == IOCB_FDSYNC ? SYNC : OPS;
}

// The next request of io_submit.
PART(begin_iocb, struct thread_t *t)
{
    struct config_t *c = get_config();
    if (!c || !t)
        return 0;
    u64 index = t->next++;
    struct flight_key_t key = {.process = bpf_get_current_pid_tgid() >> 32};
    struct flight_t fresh = {.mode = BY_LIBAIO, .row = t->kind.row};
    struct iocb_t iocb;
    if (bpf_probe_read_user(&key.address, 8, (void *)(t->arguments[2] + index * 8))
        || bpf_probe_read_user(&iocb, sizeof(iocb), (void *)key.address))
        return 0;
    u64 op = get_iocb_operation(iocb.opcode);
    FORGET(op, iocb.data);
    fresh.op = op;
    if (op >= OPS || !find_target(iocb.descriptor, &t->from, fresh.op == SYNC))
        return 0;
    fresh.key = t->from.key;
    fresh.inode = t->from.inode;
    fresh.offset = iocb.offset;
    fresh.length = fresh.op == SYNC ? 0 : iocb.length;
    if (iocb.opcode == IOCB_READV || iocb.opcode == IOCB_WRITEV)
        fresh.length = measure_vector(iocb.buffer, iocb.length);
    FORGET(fresh.length, iocb.data);
    begin_flight(c, &key, &fresh, t->started);
    t->batch[op & 3] += 1;
    return 0;
}

// The next request of io_submit, which has taken it or not, or of those that io_getevents returns. What is taken counts now;
// what another thread has seen to end before, counts there.
PART(settle, struct thread_t *t)
{
    struct config_t *c = get_config();
    if (!c || !t)
        return 0;
    u64 index = t->next++;
    struct flight_key_t key = {.process = bpf_get_current_pid_tgid() >> 32};
    struct event_t event = {};
    int is_reap = t->kind.kind == IS_REAP;
    if (is_reap ? bpf_probe_read_user(&event, sizeof(event), (void *)(t->arguments[3] + index * sizeof(event)))
                : bpf_probe_read_user(&event.iocb, 8, (void *)(t->arguments[2] + index * 8)))
        return 0;
    key.address = event.iocb;
    struct flight_t *f = get_flight(c, &key);
    if (!f)
        return 0;
    if (!is_reap && (s64)index >= t->result) {
        move_depth(f->op, BY_LIBAIO, t->ended, -1);
        t->batch[f->op & 3] -= 1;
        remove_flight(c, &key, f);
        return 0;
    }
    count_once(f);
    if (is_reap)
        end_flight(c, &key, f, event.result, t->ended);
    return 0;
}

// At the start of io_submit: remembers what is passed, before another thread can see it end.
int on_submit(struct bpf_raw_tracepoint_args *ctx)
{
    struct thread_t *t = get_thread();
    if (!t)
        return 0;
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < CHUNK; i++) {
        if (t->next >= t->arguments[1])
            return 0;
        call_begin_iocb(t);
    }
    submitting.call(ctx, 0);
    lose(LOST_BATCH);
    return 0;
}

// At the end of io_submit and of io_getevents.
int on_submitted(struct bpf_raw_tracepoint_args *ctx)
{
    struct thread_t *t = get_thread();
    if (!t)
        return 0;
    s64 end = t->kind.kind == IS_REAP ? t->result : t->arguments[1];
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < CHUNK; i++) {
        if ((s64)t->next >= end) {
            count_batch(t, BY_LIBAIO);
            return 0;
        }
        call_settle(t);
    }
    submitted.call(ctx, 0);
    lose(LOST_BATCH);
    return 0;
}
