// Streams of accesses: what makes them sequential.
//
// An access is sequential when it is one of three or more that follow on each other in one of the open streams: in a random
// workload pairs happen by chance, the more often the more ends are remembered (pattern.bpf.h has the numbers). All files
// share the table of open streams; one that is pushed out there begins anew, which changes no count unless it ends within
// three accesses. A stream is followed twice at one offset: among all accesses, and among those of its file.
#pragma once

#include "memory.bpf.h"
#include "pattern.bpf.h"

#define STREAM_BITS 13  // bits of a slot in the table of open streams, per direction

#define GROUP_BITS 6  // bits of a slot within a group: bcc compiles large values of maps slowly
#define GROUP(direction, hash) ((direction) << (STREAM_BITS - GROUP_BITS) | (hash) >> (64 - STREAM_BITS + GROUP_BITS))
#define SLOT(hash) ((hash) >> (64 - STREAM_BITS) & ((1 << GROUP_BITS) - 1))
// Addresses whose slot and tag are the same lie 2^45 / 2.24 apart at least, since the golden ratio spreads them evenly.
#define TAG(hash) (u32)((hash) >> (32 - STREAM_BITS))
#define MARK(hash) (u8)((hash) >> (56 - STREAM_BITS))

// `tag`: of where it ends. Of a power of two bytes: none lies in two lines of the processor's cache.
struct stream_t {
    u32 tag, at, file_at;
    u16 file;
    u8 length, file_length;
};
// `mark`: eight more bits of the hash, close together. At random offsets they tell that no stream goes on here, and stay in
// the processor's cache, where the streams themselves do not. `lead`: values of an array begin 8 bytes before a line of it.
struct streams_t {
    u64 lead;
    u8 mark[1 << GROUP_BITS];
    struct stream_t open[1 << GROUP_BITS];
    u64 trail[7];
};
struct judged_t { u32 among_all, in_file; };  // accesses that have turned out to be sequential

BPF_ARRAY(streams, struct streams_t, 2 << (STREAM_BITS - GROUP_BITS));
BPF_ARRAY(streamed, u32, 2);  // accesses per direction

// `seed`: a number of the file where offsets are counted from its begin, 0 where they are addresses on one device.
static __always_inline struct judged_t follow_stream(u32 op, u64 seed, u16 file, u32 file_now, u64 start, u64 end)
{
    u32 direction = op & 1;
    u8 length = 1, file_length = 1;
    u64 from = (start ^ seed) * GOLDEN, to = (end ^ seed) * GOLDEN;
    u32 from_group = GROUP(direction, from), to_group = GROUP(direction, to), *issued = streamed.lookup(&direction);
    struct streams_t *before = streams.lookup(&from_group), *after = streams.lookup(&to_group);
    struct judged_t judged = {};
    if (!issued || !before || !after)
        return judged;
    u32 now = (*issued)++;
    struct stream_t *old = &before->open[SLOT(from)];
    if (before->mark[SLOT(from)] == MARK(from) && old->tag == TAG(from) && old->length && (!seed || old->file == file)) {
        length = lengthen(old->length, now - old->at);
        if (old->file == file)
            file_length = lengthen(old->file_length, file_now - old->file_at);
        old->length = 0;
    }
    after->mark[SLOT(to)] = MARK(to);
    after->open[SLOT(to)] = (struct stream_t){
        .tag = TAG(to), .at = now, .file_at = file_now, .file = file, .length = length, .file_length = file_length};
    judged.among_all = judge_length(length);
    judged.in_file = judge_length(file_length);
    return judged;
}
