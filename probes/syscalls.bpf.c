// System calls of the followed processes that read, write or sync files, or make threads: counted in the kernel.
//
// Counts calls on regular files and block devices, and calls without a descriptor; those on sockets, pipes and the like
// are left out. libaio: a request is counted when io_submit has accepted it, its end is seen at io_getevents. io_uring:
// counted when the kernel takes it over, whoever does (io_uring_enter or a polling kernel thread). What a program does
// through mapped memory is no call: counted is what its page faults bring in and dirty. Raw tracepoints only.
//
// The monitor writes what comes before this text: offsets of members of kernel structs, ARG_<tracepoint>, where a
// system call's arguments lie in struct pt_regs (REGISTER_0 and on), the ROWS that it wants, ROW_io_uring_enter among them, and ONE_DEVICE.

#define CHUNK 32             // requests of one io_submit or io_getevents that a program handles before it calls itself,
                             // which it can 33 times; the rest of a longer batch counts as lost
#define MAX_BATCH 1024       // longer ones count in the last bucket
#define MAX_SEGMENTS 8       // of a vector that libaio or io_uring is given
#define FROM_RETURN 0xff     // call_kind_t.length
#define FROM_POSITION 0xff   // call_kind_t.offset
#define PF_IO_THREAD 0x10    // PF_IO_WORKER: an io-wq or polling thread of io_uring
#define MAX_ERROR 4095ULL

enum { READ, WRITE, SYNC, OPS };
enum { BY_CALL, BY_LIBAIO, BY_IO_URING, BY_MAPPING, MODES };
enum { IS_READ, IS_WRITE, IS_SYNC, IS_COPY, IS_SENDFILE, IS_SUBMIT, IS_REAP, IS_ENTER, IS_OTHER };
enum { LOST_THREAD, LOST_FILE, LOST_SIZE, LOST_FLIGHT, LOST_BATCH, LOST_VECTOR, LOSSES };

#include "file_of.bpf.h"
#include "buckets.bpf.h"
#include "pattern.bpf.h"
#include "stream.bpf.h"

struct config_t { u64 cgroup; u32 epoch; };
// Which argument (from 1 on) is a descriptor, a length, an offset; row 0 is a call that nobody asked for.
struct call_kind_t { u8 row, kind, descriptor, length, offset; };
struct row_t { u64 calls, errors, bytes, latency_ns, latency[BUCKETS]; };
struct size_key_t { u64 bytes; u32 row, unused; };
struct place_t { struct file_key_t key; u64 inode, file, offset; u32 is_file, is_positioned; };
struct thread_t {
    u64 started, arguments[8];
    struct place_t from, to;    // `to` is where sendfile and copy_file_range write
    u32 epoch, next, batch[4];
    struct call_kind_t kind;
};
struct access_t { u64 calls, bytes, errors; struct pattern_t pattern; };
struct file_t { char name[NAME_BYTES]; struct access_t access[OPS]; };
struct flight_key_t { u64 address, process; };
struct flight_t { struct file_key_t key; u64 inode, started, offset, length; u32 epoch; u8 op, mode, row, is_counted, is_foreign; };
struct mode_t { u64 calls, bytes, errors, completed, latency_ns, unseen, polled, in_flight, last, area, busy; };
struct batches_t { u64 submits[MAX_BATCH + 1]; };  // by how many requests of that operation they carried

BPF_ARRAY(config, struct config_t, 1);
BPF_ARRAY(kinds, struct call_kind_t, 1024);
BPF_PERCPU_ARRAY(rows, struct row_t, ROWS);
BPF_PERCPU_ARRAY(losses, u64, LOSSES);
BPF_PERCPU_ARRAY(empty, struct file_t, 1);  // never written: what a new file begins with
BPF_ARRAY(modes, struct mode_t, OPS * MODES);
BPF_ARRAY(batches, struct batches_t, OPS * MODES);
BPF_HASH(threads, u32, struct thread_t, 16384);
BPF_HASH(files, struct file_key_t, struct file_t, 8192);
BPF_HASH(flights, struct flight_key_t, struct flight_t, 32768);
BPF_HASH(sizes, struct size_key_t, u64, 16384);
BPF_HASH(devices, u32, u8, 256);
BPF_PROG_ARRAY(chunks, 2);

static __always_inline struct config_t *get_config(void)
{
    int zero = 0;
    return config.lookup(&zero);
}

static __always_inline int is_followed(struct config_t *c)
{
    return c && c->cgroup && bpf_get_current_cgroup_id() == c->cgroup;
}

static __always_inline void lose(u32 reason)
{
    u64 *count = losses.lookup(&reason);
    if (count)
        *count += 1;
}

static __always_inline struct thread_t *get_thread(void)
{
    u32 id = bpf_get_current_pid_tgid();
    return threads.lookup(&id);
}

// Tells which file an inode is, and returns whether that is one we count; directories are only synced.
static __always_inline int is_wanted(u64 inode, struct file_key_t *key, int is_sync)
{
    int found = identify(inode, key);
    return (found == IS_FILE || (found == IS_DIRECTORY && is_sync)) && (!ONE_DEVICE || devices.lookup(&key->device));
}

// Fills in the place that a descriptor stands for; returns whether that is a file we count.
static __always_inline int find_place(u32 descriptor, struct place_t *place, int is_sync)
{
    place->file = find_file(descriptor);
    place->inode = place->file ? read_u64(place->file + file__f_inode) : 0;
    place->is_file = is_wanted(place->inode, &place->key, is_sync);
    return place->is_file;
}

static __always_inline struct file_t *get_file(struct file_key_t *key, u64 inode)
{
    int zero = 0;
    struct file_key_t copy = *key;
    struct file_t *file = files.lookup(&copy), *fresh = empty.lookup(&zero);
    if (file || !fresh)
        return file;
    files.insert(&copy, fresh);
    file = files.lookup(&copy);
    if (!file)
        lose(LOST_FILE);
    else
        copy_name(inode, file->name);
    return file;
}

static __always_inline void count_size(u32 row, u64 bytes)
{
    u64 none = 0;
    struct size_key_t key = {.bytes = bytes, .row = row};
    u64 *count = sizes.lookup_or_try_init(&key, &none);
    if (count)
        __sync_fetch_and_add(count, 1);
    else
        lose(LOST_SIZE);
}

static __always_inline struct mode_t *get_mode(u32 op, u32 mode)
{
    u32 key = op * MODES + mode;
    return modes.lookup(&key);
}

static __always_inline void move_depth(u32 op, u32 mode, u64 now, u64 step)
{
    struct mode_t *m = get_mode(op, mode);
    if (!m)
        return;
    u64 depth = __sync_fetch_and_add(&m->in_flight, step);
    u64 last = __sync_lock_test_and_set(&m->last, now);
    if (!depth || now < last)
        return;
    __sync_fetch_and_add(&m->area, depth * (now - last));
    __sync_fetch_and_add(&m->busy, now - last);
}

static __always_inline void count_access(u32 op, u32 mode, struct file_key_t *key, u64 inode, u64 offset, u64 bytes)
{
    struct mode_t *m = get_mode(op, mode);
    struct file_t *file = get_file(key, inode);
    if (m) {
        __sync_fetch_and_add(&m->calls, 1);
        __sync_fetch_and_add(&m->bytes, bytes);
    }
    if (!file || op >= OPS)
        return;
    struct access_t *access = &file->access[op];
    __sync_fetch_and_add(&access->calls, 1);
    __sync_fetch_and_add(&access->bytes, bytes);
    if (op != SYNC)
        judge(&access->pattern, mix(key) + op, offset, bytes);
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

#include "asynchronous.bpf.h"
#include "ring.bpf.h"
#include "mapped.bpf.h"

// Where a call on a file reads or writes; returns whether it is one we count.
static __always_inline int find_places(struct thread_t *t, struct call_kind_t *kind)
{
    if (!kind->descriptor)
        return 1;
    int is_counted = find_place(t->arguments[(kind->descriptor - 1) & 7], &t->from, kind->kind == IS_SYNC);
    if (kind->kind != IS_COPY && kind->kind != IS_SENDFILE)
        return is_counted;
    return find_place(t->arguments[kind->kind == IS_SENDFILE ? 0 : 2], &t->to, 0) || is_counted;
}

static __always_inline struct thread_t *begin_thread(void)
{
    u32 id = bpf_get_current_pid_tgid();
    struct thread_t *thread = threads.lookup(&id), fresh = {};
    if (thread)
        return thread;
    threads.insert(&id, &fresh);
    thread = threads.lookup(&id);
    if (!thread)
        lose(LOST_THREAD);
    return thread;
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
    t->kind.row = 0;
    t->arguments[0] = LOAD(registers, REGISTER_0, u64);
    t->arguments[1] = LOAD(registers, REGISTER_1, u64);
    t->arguments[2] = LOAD(registers, REGISTER_2, u64);
    t->arguments[3] = LOAD(registers, REGISTER_3, u64);
    t->arguments[4] = LOAD(registers, REGISTER_4, u64);
    t->arguments[5] = LOAD(registers, REGISTER_5, u64);
    if (!find_places(t, kind))
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
        chunks.call(ctx, 0);
    return 0;
}

// A file's position has moved on by what was read or written, also when that was appended.
static __always_inline u64 find_offset(struct place_t *place, u64 bytes)
{
    return place->is_positioned ? read_u64(place->file + file__f_pos) - bytes : place->offset;
}

// The call has moved on the variable that holds the offset; without one, the file's own position.
static __always_inline void count_side(u32 op, struct place_t *place, u64 variable, u64 bytes)
{
    u64 end = 0;
    if (!place->is_file)
        return;
    if (variable)
        bpf_probe_read_user(&end, sizeof(end), (void *)variable);
    else
        end = read_u64(place->file + file__f_pos);
    count_access(op, BY_CALL, &place->key, place->inode, end - bytes, bytes);
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
        __sync_fetch_and_add(&m->errors, 1);
        return;
    }
    if (op == SYNC || result > 0)
        count_access(op, BY_CALL, &t->from.key, t->from.inode, find_offset(&t->from, result), op == SYNC ? 0 : result);
    __sync_fetch_and_add(&m->completed, 1);
    __sync_fetch_and_add(&m->latency_ns, now - t->started);
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
        count_size(index, bytes);
    }
    if (t->kind.kind <= IS_SENDFILE)
        end_synchronous(t, is_error ? -1 : result, now);
    else if (t->kind.kind == IS_ENTER)
        count_batch(t, BY_IO_URING);
    else if (t->kind.kind == IS_SUBMIT || t->kind.kind == IS_REAP) {
        t->next = 0;
        chunks.call(ctx, 1);
    }
    return 0;
}

int on_thread_end(struct bpf_raw_tracepoint_args *ctx)
{
    u32 id = bpf_get_current_pid_tgid();
    threads.delete(&id);
    return 0;
}
