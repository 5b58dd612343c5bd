// What all parts of the program of system calls share: the threads' calls, the files they work on, the ways of I/O.
#pragma once

#define MAX_BATCH 1024       // longer ones count in the last bucket
#define MAX_SEGMENTS 8       // of a vector that libaio or io_uring is given
#define FROM_RETURN 0xff     // call_kind_t.length
#define FROM_POSITION 0xff   // call_kind_t.offset
#define PF_IO_THREAD 0x10    // PF_IO_WORKER: an io-wq or polling thread of io_uring
#define MAX_ERROR 4095ULL
#define FLIGHT_BITS 15       // of a flight's place in the table
#define THREADS 16384        // places for threads, a power of two
#define THREAD_PLACES 4      // of them that a thread may take

enum { READ, WRITE, SYNC, OPS };
enum { BY_CALL, BY_LIBAIO, BY_IO_URING, BY_MAPPING, MODES };
enum { IS_READ, IS_WRITE, IS_SYNC, IS_COPY, IS_SENDFILE, IS_SUBMIT, IS_REAP, IS_ENTER, IS_OTHER };
enum { LOST_THREAD, LOST_FILE, LOST_SIZE, LOST_FLIGHT, LOST_BATCH, LOST_VECTOR, LOSSES };

#include "buckets.bpf.h"
#include "file_of.bpf.h"
#include "followed.bpf.h"
#include "stream.bpf.h"

// `crowded`: flights in the hash.
struct config_t {
    u64 is_following;
    u32 epoch, crowded;
};
// Which argument (from 1 on) is a descriptor, a length, an offset; row 0 is a call that is not watched.
struct call_kind_t { u8 row, kind, descriptor, length, offset; };
// `size`, `repeats`: the size of the last ones, which mostly is that of the next, and how many of them are not in `sizes` yet.
struct row_t { u64 calls, errors, bytes, latency_ns, size, repeats, latency[BUCKETS]; };
struct size_key_t {
    u64 bytes;
    u32 row, unused;
};
struct target_t {
    struct file_key_t key;
    u64 inode, file, offset;
    u32 is_file, is_positioned;
};
// `id`: 0 where the place is free.
struct thread_t {
    u64 id, started, ended, arguments[8];
    s64 result;
    struct target_t from, to;    // `to` is where sendfile and copy_file_range write
    u32 epoch, next, batch[4];
    struct call_kind_t kind;
};
struct access_t {
    u64 calls, bytes, errors;
    struct pattern_t pattern;
};
struct file_t {
    struct about_t about;
    struct access_t access[OPS];
};
struct flight_key_t { u64 address, process; };
// `address`: 0 where the place is free. `is_crowded`: its place was taken, so it is in the hash. `is_counted`: io_submit has
// taken it, or its file is known.
struct flight_t {
    u64 address, process;
    struct file_key_t key;
    u64 inode, started, offset, length, is_counted;
    u32 epoch;
    u8 op, mode, row, is_foreign, is_crowded;
};
struct verdict_t {
    u32 sequential;
    struct order_t order;
};
// `area`: requests in flight, weighted by time; `busy`: time with any.
struct mode_t { u64 calls, bytes, errors, completed, latency_ns, unseen, polled, area, busy; };
struct level_t { u64 in_flight, last; };
struct batches_t { u64 submits[MAX_BATCH + 1]; };  // by how many requests of that operation they carried

BPF_ARRAY(config, struct config_t, 1);
BPF_ARRAY(kinds, struct call_kind_t, 1024);
BPF_PERCPU_ARRAY(rows, struct row_t, ROWS);
BPF_PERCPU_ARRAY(losses, u64, LOSSES);
BPF_PERCPU_ARRAY(empty, struct file_t, 1);  // never written: what a new file begins with
// What an access was judged to be goes through memory: the verifier would follow every combination through the loops.
BPF_PERCPU_ARRAY(verdicts, struct verdict_t, 1);
BPF_PERCPU_ARRAY(modes, struct mode_t, (OPS * MODES));
BPF_ARRAY(levels, struct level_t, (OPS * MODES));
BPF_ARRAY(batches, struct batches_t, (OPS * MODES));
BPF_ARRAY(threads, struct thread_t, THREADS);  // no hash: each call looks for its thread several times
BPF_HASH(files, struct file_key_t, struct file_t, 8192);
BPF_ARRAY(flights, struct flight_t, 1 << FLIGHT_BITS);
BPF_HASH(crowd, struct flight_key_t, struct flight_t, 32768);
BPF_HASH(sizes, struct size_key_t, u64, 16384);
BPF_HASH(devices, u32, u8, 256);
BPF_PROG_ARRAY(submitting, 1);
BPF_PROG_ARRAY(submitted, 1);

static __always_inline struct config_t *get_config(void)
{
    int zero = 0;
    return config.lookup(&zero);
}

static __always_inline int is_followed(struct config_t *c)
{
    return c && c->is_following && is_of_followed();
}

static __always_inline void lose(u32 reason)
{
    u64 *count = losses.lookup(&reason);
    if (count)
        *count += 1;
}

// Threads of one process have numbers in a row, so the first of its places is nearly always a thread's own.
static __always_inline struct thread_t *get_thread_place(u32 id, u32 number)
{
    u32 place = (id + number * (THREADS / THREAD_PLACES + 1)) % THREADS;
    return threads.lookup(&place);
}

static __always_inline struct thread_t *get_thread(void)
{
    u32 id = bpf_get_current_pid_tgid();
#pragma unroll
    for (u32 i = 0; i < THREAD_PLACES; i++) {
        struct thread_t *t = get_thread_place(id, i);
        if (t && t->id == id)
            return t;
    }
    return 0;
}

// Tells which file an inode is, and returns whether that is one we count; directories are only synced.
static __always_inline int is_wanted(u64 inode, struct file_key_t *key, int is_sync)
{
    int found = identify(inode, key);
    return (found == IS_FILE || (found == IS_DIRECTORY && is_sync)) && (!ONE_DEVICE || devices.lookup(&key->device));
}

// Fills in the file and offset that a descriptor stands for; returns whether that is a file we count.
static __always_inline int find_target(u32 descriptor, struct target_t *target, int is_sync)
{
    target->file = find_file(descriptor);
    target->inode = target->file ? read_u64(target->file + file__f_inode) : 0;
    target->is_file = is_wanted(target->inode, &target->key, is_sync);
    return target->is_file;
}

static __always_inline struct file_t *get_file(struct file_key_t *key, u64 inode)
{
    int zero = 0;
    struct file_key_t copy = *key;
    struct file_t *file = files.lookup(&copy), *fresh = file ? 0 : empty.lookup(&zero);
    if (!fresh)
        return file;
    files.insert(&copy, fresh);
    file = files.lookup(&copy);
    if (!file)
        lose(LOST_FILE);
    else
        describe_file(inode, &file->about);
    return file;
}

static __always_inline void count_size(u32 index, struct row_t *row, u64 bytes)
{
    u64 none = 0, repeats = row->repeats;
    struct size_key_t key = {.bytes = row->size, .row = index};
    row->repeats += 1;
    if (row->size == bytes)
        return;
    row->size = bytes;
    row->repeats = 1;
    u64 *count = repeats ? sizes.lookup_or_try_init(&key, &none) : 0;
    if (count)
        __sync_fetch_and_add(count, repeats);
    else if (repeats)
        lose(LOST_SIZE);
}

static __always_inline struct mode_t *get_mode(u32 op, u32 mode)
{
    u32 key = op * MODES + mode;
    return modes.lookup(&key);
}

// Whoever is overtaken by another processor after it has read the clock books nothing.
static __always_inline void move_depth(u32 op, u32 mode, u64 now, u64 step)
{
    u32 key = op * MODES + mode;
    struct level_t *level = levels.lookup(&key);
    struct mode_t *m = modes.lookup(&key);
    if (!level || !m)
        return;
    u64 depth = __sync_fetch_and_add(&level->in_flight, step), last = level->last;
    if (now <= last || __sync_val_compare_and_swap(&level->last, last, now) != last || !depth)
        return;
    m->area += depth * (now - last);
    m->busy += now - last;
}

static __always_inline void count_access(u32 op, u32 mode, struct file_key_t *key, u64 inode, u64 offset, u64 bytes)
{
    struct mode_t *m = get_mode(op, mode);
    struct file_t *file = get_file(key, inode);
    if (m) {
        m->calls += 1;
        m->bytes += bytes;
    }
    asm volatile("" : "+r"(op));  // keeps the compiler from moving the bound away from the verifier's eyes
    if (!file || op >= OPS)
        return;
    struct access_t *access = &file->access[op];
    __sync_fetch_and_add(&access->calls, 1);
    __sync_fetch_and_add(&access->bytes, bytes);
    if (op == SYNC)
        return;
    int zero = 0;
    struct pattern_t *pattern = &access->pattern;
    u32 now = __sync_fetch_and_add(&pattern->judged, 1);
    struct verdict_t *v = verdicts.lookup(&zero);
    if (!v)
        return;
    v->order = follow_order(pattern, now, offset, bytes, op == WRITE ? TAIL_BYTES : 0);
    u64 file_number = mix(key);
    v->sequential = follow_stream(op, file_number, file_number, now, offset, offset + bytes).in_file;
    asm volatile("" ::: "memory");
    count_pattern(pattern, v->sequential, v->order);
}

static __always_inline void count_batch(struct thread_t *thread, u32 mode)
{
    for (u32 op = 0; op < OPS; op++) {
        u32 size = thread->batch[op], key = op * MODES + mode;
        struct batches_t *b = size ? batches.lookup(&key) : 0;
        if (b)
            __sync_fetch_and_add(&b->submits[size < MAX_BATCH ? size : MAX_BATCH], 1);
        thread->batch[op] = 0;
    }
}
