// What the parts of the program of waits share: what a thread does or waits for, its latest pieces of time, the sums.
#pragma once

#include "call.bpf.h"
#include "file_of.bpf.h"
#include "followed.bpf.h"

#define BUCKET_BITS 9
#define BUCKETS (1 << BUCKET_BITS)  // of threads, by their numbers
#define BUCKET 8
#define BUSY (1ULL << 32)    // of a number whose thread is being added
#define PIECES 128           // of a thread's past that are kept, a power of two
#define MAX_LINKS 4          // how often a wait for a thread is divided by what that one waited for
#define FRAMES 16
#define RECENT_BITS 3        // kinds of time whose sums a thread keeps itself
#define RECENT (1 << RECENT_BITS)
#define NO_CALL 0xffff
#define SLEEP 1023           // in place of a call that waits for no descriptor
#define NO_STACK (-1)
#define NO_STACK_OF_JOURNAL (-2)
#define LOOKED_AT 4          // of so many waits in a row that end with a request, the first ones' stacks are taken
#define IN_A_ROW 128
#define NOT_COUNTING (~0ULL)  // config_t.began
#define PF_KERNEL_THREAD 0x00200000
#define PF_IO_THREAD 0x10    // PF_IO_WORKER: an io-wq or polling thread of io_uring
#define DEAD_STATES 0xb0     // EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD
#define JOURNAL_THREAD 0x2f3264626aULL  // "jbd2/"
#define JOURNAL_BYTES 5
#define SOON_NS 30000        // from a request's end to the wake-up of who waited for it, in the same interrupt
#define AT_ONCE_NS 4000      // from a flush's end to that of the write that it was for
#define REQ_OP_MASK 0xff
#define WRITE 1              // REQ_OP_WRITE
#define FLUSH 2              // REQ_OP_FLUSH
#define FLAG(name) (1u << __REQ_##name)

enum { ON_CPU, RUNNABLE, PREEMPTED, OWN_STATES, BLOCKED = OWN_STATES, ENDED };
enum { IN_KERNEL, FOR_THREAD, FOR_PEER, FOR_TIME, FOR_REQUESTS, ENDS_THREAD, KINDS };
enum { LOST_THREAD, LOST_TIME, LOST_FILE, LOST_STACK, LOSSES };

// What a system call waits for when it sleeps, and whether a thread in it wakes others that wait for a peer or a signal.
// `is_plain`: a wait for I/O in it is for the request that ends it, whatever the stack, which costs more than all else.
// `count_in`: the argument (from 1 on) with the number of descriptors that it waits for; without any it only sleeps.
// `is_epoll`: its first argument is the epoll descriptor that it waits in.
struct call_t { u8 kind, is_signal, has_timeout, is_plain, count_in, is_epoll; };
// `is_io`: the kernel says that it waits for I/O. `is_for_thread`: another followed thread woke it, whatever it slept in.
// `request`: operation + 1 of the request whose end woke it.
struct what_t {
    s32 stack;
    u16 call;
    u8 state, is_io : 1, is_for_thread : 1, request : 6;
} __attribute__((aligned(8)));
// A part of a thread's past. `via`: the thread that it waited for, through so many `links`.
struct piece_t {
    u64 start, end;
    struct what_t what;
    u32 via, links;
};
// The last part of a wait that has ended: it goes on until the kernel has put the thread into a queue.
struct tail_t {
    u64 start;   // 0: there is none
    struct what_t what;
    u32 via, links;
};
struct own_t { u64 waits, time, longest; };
// Sums that a thread keeps itself, of one kind of time.
struct recent_t {
    struct what_t what;
    u32 via, links;
    struct own_t sum;
};
// In lines of the processor's cache, behind `born`: values of an array begin 8 bytes before a line. An event needs the first
// one, a switch the next ones, too.
struct thread_t {
    u64 born;
    u64 since;                // since when it is in this state
    struct tail_t tail;
    struct what_t what;       // while it is blocked
    u32 state, epoch, head, has_file, served;
    u32 ends_seen;            // of its last waits for I/O in plain calls, so many in a row ended with a request
    u64 ahead;                // of the scheduler's clock is ours; 0: not known
    u64 delayed;              // that it had spent in queues when it left its processor, by the scheduler
    struct own_t own[OWN_STATES];
    struct file_key_t file;   // that its system call is about, which is among those of the run `file_epoch`
    u64 ended;
    u32 id, process, is_helper, file_epoch;
    char name[16];
    struct recent_t recent[RECENT];
    u64 epoll;                // 1 + the epoll descriptor that it waited in last; 0: none
    u64 gap[5];
    struct piece_t past[PIECES];
    u64 trail[7];
};
// Numbers of threads; 0: a place that is free.
struct bucket_t { u64 ids[BUCKET]; };
struct time_key_t {
    struct what_t what;
    u32 thread, via, links, unused;
};
struct file_wait_t {
    struct file_key_t file;
    struct what_t what;
};
struct config_t {
    u64 is_following, began;
    u32 epoch, unused;
};
// What decides lies near the place where the thread sleeps: to walk further would only take time.
struct stack_t { u64 functions[FRAMES]; };
struct completing_t { u64 at, operation; };

BPF_ARRAY(config, struct config_t, 1);
BPF_ARRAY(calls, struct call_t, 1024);
BPF_PERCPU_ARRAY(losses, u64, LOSSES);
BPF_PERCPU_ARRAY(completing, struct completing_t, 1);
BPF_ARRAY(buckets, struct bucket_t, BUCKETS);
BPF_ARRAY(threads, struct thread_t, (BUCKETS * BUCKET));  // no hash: each switch looks for two
BPF_HASH(times, struct time_key_t, struct own_t, 65536);
BPF_HASH(files, struct file_key_t, struct about_t, 4096);
BPF_HASH(file_times, struct file_wait_t, struct own_t, 16384);
BPF_TABLE("stacktrace", int, struct stack_t, stacks, 16384);

static __always_inline struct config_t *get_config(void)
{
    int zero = 0;
    return config.lookup(&zero);
}

static __always_inline void lose(u32 reason)
{
    u64 *count = losses.lookup(&reason);
    if (count)
        *count += 1;
}

static __always_inline struct call_t *get_kind(u16 number)
{
    u32 index = number;
    return calls.lookup(&index);
}

static __always_inline u64 later(u64 a, u64 b)
{
    return a > b ? a : b;
}

static __always_inline void add(struct own_t *sum, u64 ns)
{
    sum->waits += 1;
    sum->time += ns;
    if (ns > sum->longest)
        sum->longest = ns;
}

// Makes room for another kind of time.
static __always_inline void put_away(u32 thread, struct recent_t *r)
{
    struct time_key_t key = {.what = r->what, .thread = thread, .via = r->via, .links = r->links};
    struct own_t none = {}, *sum = times.lookup_or_try_init(&key, &none);
    if (!sum) {
        lose(LOST_TIME);
        return;
    }
    sum->waits += r->sum.waits;
    sum->time += r->sum.time;
    if (r->sum.longest > sum->longest)
        sum->longest = r->sum.longest;
}

// A thread waits for the same few things again and again: their sums are at hand, without a hash.
static __always_inline void add_time(u32 thread, struct thread_t *t, struct what_t *what, u32 via, u32 links, u64 ns)
{
    u64 kind = *(u64 *)what, through = via | (u64)links << 32;
    struct recent_t *r = &t->recent[((kind ^ through << 7) * GOLDEN) >> (64 - RECENT_BITS)];
    if (*(u64 *)&r->what != kind || r->via != via || r->links != links) {
        if (r->sum.waits)
            put_away(thread, r);
        r->what = *what;
        r->via = via;
        r->links = links;
        r->sum = (struct own_t){};
    }
    add(&r->sum, ns);
}

static __always_inline void add_file_time(struct thread_t *t, u64 ns)
{
    struct file_wait_t key = {.file = t->file, .what = t->what};
    struct own_t none = {}, *sum = t->has_file ? file_times.lookup_or_try_init(&key, &none) : 0;
    if (sum)
        add(sum, ns);
    else if (t->has_file)
        lose(LOST_FILE);
}

static __always_inline void remember(struct thread_t *t, u64 start, u64 end, struct what_t *what, u32 via, u32 links)
{
    struct piece_t *piece = &t->past[t->head++ & (PIECES - 1)];
    piece->start = start;
    piece->end = end;
    piece->what = *what;
    piece->via = via;
    piece->links = links;
}

// Who has waited since before the window began counts from there on.
static __always_inline void renew(struct thread_t *t, struct config_t *c)
{
    if (t->epoch == c->epoch)
        return;
    t->epoch = c->epoch;
    t->served = 0;
    t->epoll = 0;
    for (int i = 0; i < OWN_STATES; i++)
        t->own[i] = (struct own_t){};
    for (int i = 0; i < RECENT; i++)
        t->recent[i].sum = (struct own_t){};
}

// Threads of one process have numbers in a row, so it is nearly always in the first of its two buckets.
static __always_inline u32 choose_bucket(u32 id, u32 attempt)
{
    return attempt ? id * GOLDEN >> (64 - BUCKET_BITS) : id % BUCKETS;
}

static __always_inline struct thread_t *get_thread(u32 id)
{
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < 2 * BUCKET; i++) {
        u32 number = choose_bucket(id, i / BUCKET), place = number * BUCKET + i % BUCKET;
        struct bucket_t *bucket = buckets.lookup(&number);
        u64 known = bucket ? bucket->ids[i % BUCKET] : 0;
        if (known == id)
            return threads.lookup(&place);
        if (!known)
            return 0;
    }
    return 0;
}

// Returns 0 where there is no room, or somebody else is adding it.
static __always_inline struct thread_t *add_thread(struct config_t *c, u32 id, u32 is_helper, u64 now)
{
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < 2 * BUCKET; i++) {
        u32 number = choose_bucket(id, i / BUCKET), place = number * BUCKET + i % BUCKET;
        struct bucket_t *bucket = buckets.lookup(&number);
        struct thread_t *t = threads.lookup(&place);
        if (!bucket || !t)
            return 0;
        u64 before = __sync_val_compare_and_swap(&bucket->ids[i % BUCKET], 0, id | BUSY);
        if ((u32)before == id)
            return 0;
        if (before)
            continue;
        t->id = id;
        t->since = t->born = now;
        t->epoch = c->epoch;
        t->process = bpf_get_current_pid_tgid() >> 32;
        t->is_helper = is_helper;
        bpf_get_current_comm(t->name, sizeof(t->name));
        bucket->ids[i % BUCKET] = id;
        return t;
    }
    lose(LOST_THREAD);
    return 0;
}
