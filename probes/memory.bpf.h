// How programs read kernel memory, and the few numbers of the kernel's interface that BTF does not hold.
//
// A typed program (TYPED) reads by plain loads through pointers whose type the kernel knows; others copy what they need by
// a helper, which costs as much as all the rest. READ: the head of a struct, its members taken with GET. LOAD: one
// member. CAST says what an untyped pointer points to; it costs nothing, since the verifier replaces it by a move.
// WORDS and LOAD_WORD: the same for members whose type stands in the way. FOLLOW: a plain load in any program, through a pointer that
// the verifier follows from the current task on. PART: a function of one argument, called as call_<name>; in a typed program
// the verifier checks it by itself, once, instead of following each way of its callers through it.
#pragma once

#include "facts.bpf.h"

#define GOLDEN 0x9E3779B97F4A7C15ULL  // 2^64 divided by the golden ratio: hashes by multiplication

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000

#define GET(head, member, type) (*(type *)((char *)(head) + (member)))
#define CURRENT_TASK() ((u64)bpf_get_current_task_btf())
#define FOLLOW(pointer, member, type) (*(type *)((u64)(pointer) + (member)))
#ifdef TYPED
static u64 (*cast)(u64 address, u64 type) = (void *)TYPED;
#define PART(name, argument) \
    static int (*call_##name)(argument) = (void *)PART_##name; \
    int name(argument)
#define CAST(address, structure) cast(address, TYPE_##structure)
#define READ(head, bytes, address) u64 *head = (u64 *)(address)
#define LOAD(address, structure, member, type) GET(CAST(address, structure), structure##__##member, type)
#define WORDS(address) CAST(address, pt_regs)
#define LOAD_WORD(address, offset) GET(WORDS(address), offset, u64)
#ifdef PREEMPT_DISABLE
static void (*disable_preemption)(void) = (void *)PREEMPT_DISABLE;
static void (*enable_preemption)(void) = (void *)PREEMPT_ENABLE;
#endif
#else
#define PART(name, argument) static __always_inline int call_##name(argument)
#define CAST(address, structure) (address)
#define READ(head, bytes, address) \
    u64 head[(bytes) / 8] = {}; \
    bpf_probe_read_kernel(head, (bytes), (void *)(address))
#define LOAD(address, structure, member, type) \
    ({ \
        type loaded = 0; \
        bpf_probe_read_kernel(&loaded, sizeof(loaded), (void *)((address) + structure##__##member)); \
        loaded; \
    })
#define WORDS(address) (address)
#define LOAD_WORD(address, offset) read_u64((u64)(address) + (offset))
#endif

// Lets the verifier forget what it knows of a number: else it follows each of the values that this can have to the end.
// `unknown`: a number that it knows nothing of.
#define FORGET(number, unknown) \
    do { \
        u64 forgotten = (number) ^ (unknown); \
        asm volatile("" : "+r"(forgotten)); \
        (number) = forgotten ^ (unknown); \
    } while (0)

// REPEAT(i, times): a loop with i from 0 on; the verifier follows its body once where the kernel can count for us (since 6.4),
// else once for each time.
#ifdef LOOP_BEGIN
static void (*begin_loop)(u64 *loop, int from, int to) = (void *)LOOP_BEGIN;
static int *(*step_loop)(u64 *loop) = (void *)LOOP_NEXT;
static void (*stop_loop)(u64 *loop) = (void *)LOOP_END;

static __always_inline void end_loop(u64 *loop)
{
    stop_loop(loop);
}

#define REPEAT(i, times) \
    for (u64 loop __attribute__((cleanup(end_loop))), *begun = (begin_loop(&loop, 0, times), &loop), i; ({ \
             int *step = step_loop(begun); \
             if (step) \
                 i = *step; \
             step; \
         });)
#else
#define REPEAT(i, times) _Pragma("clang loop unroll(disable)") for (u64 i = 0; i < (times); i++)
#endif

struct arguments_t { u64 args[12]; };

// A function of a tracepoint, as int HANDLER(name) { ... } with `ctx`. Where the kernel runs it preemptibly, another
// thread's function on the same processor could come in between and counters of the processor lose one.
#ifndef PREEMPT_DISABLE
#define disable_preemption()
#define enable_preemption()
#endif
#define HANDLER(name) \
    name(struct arguments_t *ctx); \
    static __always_inline int handle_##name(struct arguments_t *ctx); \
    int name(struct arguments_t *ctx) \
    { \
        disable_preemption(); \
        handle_##name(ctx); \
        enable_preemption(); \
        return 0; \
    } \
    static __always_inline int handle_##name(struct arguments_t *ctx)

static __always_inline u64 read_u64(u64 address)
{
#ifdef TYPED
    return LOAD_WORD(address, 0);
#else
    u64 value = 0;
    bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
    return value;
#endif
}

static __always_inline u32 read_u32(u64 address)
{
#ifdef TYPED
    return GET(WORDS(address), 0, u32);
#else
    u32 value = 0;
    bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
    return value;
#endif
}
