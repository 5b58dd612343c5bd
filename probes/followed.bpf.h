// Whether the current thread belongs to the followed cgroup, or to one that was made below it.
#pragma once

#include "facts.bpf.h"

BPF_CGROUP_ARRAY(followed, 1);  // empty: nobody is followed

static __always_inline int is_of_followed(void)
{
    return followed.check_current_task(0) == 1;
}
