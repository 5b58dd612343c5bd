// Whether the current thread belongs to the followed processes: to one of their cgroups or to one that was made below it, or
// to a process that was there and has been moved, or was born, elsewhere.
//
// The cgroups decide alone until the first process leaves them; so a thread costs one check, and forks a little. Processes
// that are watched where they are, in a cgroup that others share, count as having left from the start.
#pragma once

#include "memory.bpf.h"

#define LEVELS 8  // of cgroups, that are looked at above a new one

// `ids`: of the cgroups, which the monitor makes; `moved`: how many processes have left them.
struct following_t {
    u64 ids[GROUPS];
    u32 groups, moved;
};

BPF_CGROUP_ARRAY(followed, GROUPS);  // empty: nobody is followed
BPF_ARRAY(following, struct following_t, 1);
BPF_TABLE("lru_hash", u32, u32, family, 16384);  // processes that were put into one of the cgroups, and their children

static __always_inline int is_of_followed(void)
{
    if (followed.check_current_task(0) == 1)
        return 1;
    int zero = 0;
    struct following_t *f = following.lookup(&zero);
    if (!f || (f->groups < 2 && !f->moved))
        return 0;
    for (u32 i = 1; i < GROUPS; i++)
        if (i < f->groups && followed.check_current_task(i) == 1)
            return 1;
    u32 process = bpf_get_current_pid_tgid() >> 32;
    return f->moved && family.lookup(&process);
}

// The first member of a cgroup, the state of it that has no controller, leads to the cgroup above.
static __always_inline int is_followed_group(struct following_t *f, u64 group)
{
    for (int level = 0; level < LEVELS; level++) {
        if (!group)
            return 0;
        u64 id = LOAD(LOAD(group, cgroup, kn, u64), kernfs_node, id, u64);
        for (u32 i = 0; i < GROUPS; i++)
            if (i < f->groups && f->ids[i] == id)
                return 1;
        group = LOAD(group, cgroup_subsys_state, parent, u64);
    }
    return 0;
}

static __always_inline u64 get_group(u64 task)
{
    return LOAD(LOAD(task, task_struct, cgroups, u64), css_set, dfl_cgrp, u64);
}

#if defined(HAVE_sched_process_fork) && defined(HAVE_cgroup_attach_task)
int HANDLER(on_fork)
{
    int zero = 0;
    u64 parent = ctx->args[ARG_sched_process_fork], child = ctx->args[ARG_sched_process_fork + 1];
    u32 process = LOAD(child, task_struct, tgid, u32);
    struct following_t *f = following.lookup(&zero);
    if (!f || process == (u32)(bpf_get_current_pid_tgid() >> 32))
        return 0;  // a thread
    if (!is_of_followed()) {
        family.delete(&process);  // the number of one that has ended
        return 0;
    }
    family.update(&process, &process);
    if (get_group(child) != get_group(parent) && !is_followed_group(f, get_group(child)))
        __sync_fetch_and_add(&f->moved, 1);
    return 0;
}

int HANDLER(on_attach)
{
    int zero = 0;
    u64 task = ctx->args[ARG_cgroup_attach_task];
    u32 process = LOAD(task, task_struct, tgid, u32);
    struct following_t *f = following.lookup(&zero);
    if (!f || !f->groups)
        return 0;
    if (is_followed_group(f, get_group(task)))
        family.update(&process, &process);
    else if (family.lookup(&process))
        __sync_fetch_and_add(&f->moved, 1);
    return 0;
}
#endif
