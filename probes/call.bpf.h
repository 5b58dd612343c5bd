// The system call that the current thread is in.
#pragma once

#include "memory.bpf.h"

// Negative when it is in none. A thread of the kernel has no registers of a call: ask for its flags first.
static __always_inline s64 get_call(void)
{
    u64 registers = bpf_task_pt_regs(bpf_get_current_task_btf());
    return FOLLOW(registers, CALL_NUMBER, CALL_NUMBER_TYPE);
}
