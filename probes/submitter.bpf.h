// Which thread submitted a request, by name: journal and writeback threads apart from each other and from the workload.
#pragma once

#include "request.bpf.h"

#define NAME_WORDS 4
#define SUBMITTER_BITS 9  // of a submitter's slot in the table of those seen last
#define PF_WQ_WORKER 0x00000020

struct submitter_t { u64 name[NAME_WORDS], is_worker; };
struct recent_t {
    struct submitter_t submitter;
    u32 number, unused;
};
struct submitted_t { u64 requests[OPS], bytes[OPS]; };

BPF_HASH(submitters, struct submitter_t, u32, 2 * MAX_SUBMITTERS);  // name -> number
BPF_ARRAY(recent_submitters, struct recent_t, 1 << SUBMITTER_BITS);
BPF_ARRAY(submitters_tried, u64, 1);  // numbers that were asked for, also when there was none left
BPF_PERCPU_ARRAY(submitted, struct submitted_t, MAX_SUBMITTERS + 1);  // the last one: all that found no number

// A kernel worker has the name of what it works on just now: flush-7:0, xfs-cil/loop0.
static __always_inline u32 get_name(u64 task, u64 *name)
{
#if defined(HAVE_task_struct__worker_private) && defined(HAVE_kthread__data) && defined(HAVE_worker__desc)
    if (FOLLOW(task, task_struct__flags, u32) & PF_WQ_WORKER) {
        u64 worker = LOAD(LOAD(task, task_struct, worker_private, u64), kthread, data, u64);
        bpf_probe_read_kernel(name, worker__desc__SIZE, (void *)(worker + worker__desc));
        return 1;
    }
#endif
    name[0] = FOLLOW(task, task_struct__comm, u64);
    name[1] = FOLLOW(task, task_struct__comm + 8, u64);
    return 0;
}

// Gives a name its number; two processors may give one name two, which user space adds up.
static __always_inline u32 number_submitter(struct submitter_t *submitter)
{
    int zero = 0;
    u32 *known = submitters.lookup(submitter);
    u64 *tried = submitters_tried.lookup(&zero);
    if (known)
        return *known;
    u32 number = tried ? __sync_fetch_and_add(tried, 1) : MAX_SUBMITTERS;
    if (number >= MAX_SUBMITTERS)
        return MAX_SUBMITTERS;
    submitters.update(submitter, &number);
    return number;
}

static __always_inline u32 find_submitter(u64 task)
{
    struct submitter_t submitter = {};
    submitter.is_worker = get_name(task, submitter.name);
    u64 *name = submitter.name, mixed = (name[0] ^ name[1] << 7 ^ name[2] << 13 ^ name[3] << 19) * GOLDEN;
    u32 slot = mixed >> (64 - SUBMITTER_BITS);
    struct recent_t *recent = recent_submitters.lookup(&slot);
    if (!recent)
        return MAX_SUBMITTERS;
    u64 *before = recent->submitter.name;
    if (before[0] == name[0] && before[1] == name[1] && before[2] == name[2] && before[3] == name[3]
        && recent->submitter.is_worker == submitter.is_worker)
        return recent->number;
    u32 number = number_submitter(&submitter);
    recent->submitter.is_worker = ~0ULL;  // nobody's while it is written
    recent->number = number;
    recent->submitter.name[0] = name[0];
    recent->submitter.name[1] = name[1];
    recent->submitter.name[2] = name[2];
    recent->submitter.name[3] = name[3];
    recent->submitter.is_worker = submitter.is_worker;
    return number;
}

static __always_inline void count_submitter(struct config_t *c, u32 number, u32 op, u32 bytes)
{
    struct submitted_t *s = submitted.lookup(&number);
    u64 index = op;
    asm volatile("" : "+r"(index));  // keeps the compiler from moving the bound away from the verifier's eyes
    if (!s || index >= OPS || !is_measured(c))
        return;
    s->requests[index] += 1;
    s->bytes[index] += bytes;
}
