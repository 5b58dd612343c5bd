// Page faults on mapped files: which pages a fault, and not a system call, brought in or dirtied.
#pragma once

#include "call.bpf.h"
#include "memory.bpf.h"

// `ended`: how many faults the thread had had before.
struct fault_t {
    u64 mapping, offset, ended;
    s64 call;
    u32 stream, is_counted;
};

BPF_TABLE("lru_hash", u32, struct fault_t, faulting, 16384);  // thread -> its last fault on a mapped file

static __always_inline u64 count_ended(void)
{
    u64 task = (u64)bpf_get_current_task_btf();
    return FOLLOW(task, task_struct__min_flt, u64) + FOLLOW(task, task_struct__maj_flt, u64);
}

// Remembers a fault; returns 0 when it is the last one once more: the kernel begins anew when it has waited for a page.
static __always_inline int begin_fault(u64 mapping, u64 offset)
{
    u32 id = bpf_get_current_pid_tgid();
    struct fault_t *last = faulting.lookup(&id);
    struct fault_t fault = {.mapping = mapping, .offset = offset, .ended = count_ended(), .call = get_call()};
    if (last && last->mapping == mapping && last->offset == offset && last->ended == fault.ended && last->call == fault.call)
        return 0;
    faulting.update(&id, &fault);
    return 1;
}

// The thread's last fault, if a page of this mapping is being handled on its behalf. A fault in a system call (send
// from mapped memory, say) is one too; read and write add and dirty pages of files without any fault on them.
static __always_inline struct fault_t *get_fault(u64 mapping)
{
    u32 id = bpf_get_current_pid_tgid();
    struct fault_t *fault = faulting.lookup(&id);
    return fault && fault->mapping == mapping && fault->call == get_call() ? fault : 0;
}
