/* Tests of the device model in simulated time: no FUSE, no clock, the same result every time. */
#include "check.h"
#include "load.h"

#include <stdlib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define US 1000.0
#define MS 1e6

static struct parameters parse(const char *text) {
    struct parameters p;
    parameters_init(&p);
    char *copy = strdup(text), *rest = copy;
    for (char *word; (word = strsep(&rest, " "));) {
        const char *wrong = parameters_set(&p, word);
        if (wrong)
            printf("FAILED %s: %s\n", word, wrong), failures++;
    }
    free(copy);
    return p;
}

static struct model *make(const char *text) {
    struct parameters p = parse(text);
    const char *wrong = parameters_check(&p);
    if (wrong)
        printf("FAILED %s: %s\n", text, wrong), failures++;
    return model_new(&p, GIB);
}

/* Send one request to an idle device; returns its latency in ns. */
static double latency(struct model *m, uint64_t *now, enum operation op, uint64_t offset, uint32_t length) {
    static int owner;
    model_submit(m, *now, op, offset, length, &owner);
    uint64_t sent = *now;
    *now = load_next_answer(m);
    return (double)(*now - sent);
}

static double rate_of(const char *parameters, struct load load, double seconds) {
    struct model *m = make(parameters);
    double found = load_run(m, load, GIB, 0, seconds);
    model_free(m);
    return found;
}

#define SSD                                                                                                            \
    "kind=flash channels=8 read=100000 write=20000 bus=500e6 cache=64e6 drain=400e6 flush=1e6 unit=32768 fill=500000"

static void test_reads_scale_to_the_number_of_channels(void) {
    for (int depth = 1; depth <= 64; depth *= 2) {
        double expected = depth < 8 ? depth / 108.2e-6 : 8 / 100e-6; /* 8.2 us on the bus */
        check("reads", rate_of(SSD, (struct load){OP_READ, 4096, depth, false}, 1), expected, 0.08);
    }
}

static void test_bus_limits_large_requests(void) {
    check("bus", rate_of(SSD, (struct load){OP_READ, 131072, 32, true}, 1) * 131072, 500e6, 0.01);
    check("reading ahead", rate_of(SSD " sequential_read=20000", (struct load){OP_READ, 4096, 1, true}, 1), 1 / 28.2e-6,
          0.01);
}

static void test_cached_writes_fall_to_the_drain(void) {
    struct model *m = make(SSD " random_write=10000");
    check("burst", load_run(m, (struct load){OP_WRITE, 4096, 32, false}, GIB, 0, 0.05), 500e6 / 4096, 0.02);
    model_free(m);
    double steady = 1 / (4096 / 400e6 + 10e-6);
    check("steady", rate_of(SSD " random_write=10000 cache=1e6", (struct load){OP_WRITE, 4096, 32, false}, 2), steady,
          0.01);
}

static void test_reads_beside_draining(void) {
    struct model *m = make(SSD " read_while_draining=300000");
    uint64_t now = 1000;
    double before = latency(m, &now, OP_READ, 0, 4096);
    latency(m, &now, OP_WRITE, 0, 1 << 20);
    double beside = latency(m, &now, OP_READ, 1 << 29, 4096);
    check("a read beside draining", beside - before, 200 * US, 0.01);
    model_free(m);
}

static double flush_after(const char *parameters, uint64_t offset, uint32_t length) {
    struct model *m = make(parameters);
    uint64_t now = 1000;
    latency(m, &now, OP_WRITE, offset, length);
    now += (uint64_t)(10 * MS); /* all is stored by then */
    double found = latency(m, &now, OP_FLUSH, 0, 0);
    model_free(m);
    return found;
}

static void test_flush_fills_units_that_were_written_in_part(void) {
    check("one part", flush_after(SSD, 0, 4096), 1.5 * MS, 0.001);
    check("whole", flush_after(SSD, 0, 32768), 1.0 * MS, 0.001);
    check("two parts: shifted", flush_after(SSD " channels=1", 4096, 32768), 2.0 * MS, 0.001);
    check("two parts at a time", flush_after(SSD, 4096, 32768), 1.5 * MS, 0.001);
    check("whole and part", flush_after(SSD, 0, 36864), 1.5 * MS, 0.001);
    check("protected", flush_after(SSD " protected=1 flush=30000", 0, 4096), 30 * US, 0.001);
}

static void test_small_flushed_writes_are_merged(void) {
    struct model *m = make(SSD " merge=32768");
    uint64_t now = 1000;
    for (uint64_t part = 0; part < 16; part++) {
        latency(m, &now, OP_WRITE, part * (1 << 20), 4096); /* far apart: each would fill a unit */
        now += (uint64_t)MS;
        check("merged", latency(m, &now, OP_FLUSH, 0, 0), part % 8 < 7 ? 20 * US : 1.0 * MS, 0.001);
    }
    latency(m, &now, OP_WRITE, 0, 65536);
    now += (uint64_t)MS;
    check("large enough already", latency(m, &now, OP_FLUSH, 0, 0), 1.0 * MS, 0.001);
    model_free(m);
}

static void test_parts_that_meet_in_the_cache_make_a_whole(void) {
    struct model *m = make(SSD);
    uint64_t now = 1000;
    for (uint64_t part = 0; part < 8; part++)
        latency(m, &now, OP_WRITE, (7 - part) * 4096, 4096);
    now += (uint64_t)MS;
    check("eight parts", latency(m, &now, OP_FLUSH, 0, 0), 1.0 * MS, 0.001);
    check("nothing to flush", latency(m, &now, OP_FLUSH, 0, 0), 20 * US, 0.001);
    model_free(m);
}

static void test_flush_waits_until_the_cache_is_stored(void) {
    struct model *m = make(SSD);
    uint64_t now = 1000, start = now;
    for (int i = 0; i < 32; i++)
        latency(m, &now, OP_WRITE, (uint64_t)i << 20, 1 << 20);
    latency(m, &now, OP_FLUSH, 0, 0);
    check("32 MiB stored and flushed", (double)(now - start), (32 << 20) / 400e6 * 1e9 + 1.02 * MS, 0.001);
    model_free(m);
}

static void test_writes_without_a_cache_pay_for_their_units(void) {
    const char *bare = SSD " cache=0 drain=0 bus=0";
    struct model *m = make(bare);
    uint64_t now = 1000;
    check("part", latency(m, &now, OP_WRITE, 0, 4096), 520 * US, 0.001);
    check("whole", latency(m, &now, OP_WRITE, 0, 32768), 20 * US, 0.001);
    model_free(m);
}

static void test_stalls_and_jitter(void) {
    struct model *m = make(SSD " stall=5e6 stall_every=1048576");
    uint64_t now = 1000;
    latency(m, &now, OP_WRITE, 0, 524288);
    check("before the stall", latency(m, &now, OP_READ, 0, 4096), 108.2 * US, 0.01);
    latency(m, &now, OP_WRITE, 524288, 524288);
    check("behind the stall", latency(m, &now, OP_READ, 0, 4096), 4.04 * MS, 0.01); /* 1.07 ms of 5 are over */
    model_free(m);
    const char *shaky = SSD " jitter=0.3";
    double once = rate_of(shaky, (struct load){OP_READ, 4096, 1, false}, 1);
    check("mean with jitter", once, 1 / 108.2e-6, 0.02);
    check("same seed", rate_of(shaky, (struct load){OP_READ, 4096, 1, false}, 1), once, 0);
    double other = rate_of(SSD " jitter=0.3 seed=2", (struct load){OP_READ, 4096, 1, false}, 1);
    if (other == once)
        printf("FAILED another seed gave the same device\n"), failures++;
}

#define HDD                                                                                                            \
    "kind=disk seek=8.5e6 track_seek=1e6 rotation=8.333e6 media=200e6 bus=550e6 cache=16e6 write=100e3 read=100e3"

static void test_disk_reads(void) {
    check("random, depth 1", rate_of(HDD, (struct load){OP_READ, 4096, 1, false}, 30), 1e9 / (8.5e6 + 4.17e6 + .12e6),
          0.03);
    check("sequential", rate_of(HDD " queue=32", (struct load){OP_READ, 131072, 4, true}, 2) * 131072, 200e6, 0.02);
    double alone = rate_of(HDD, (struct load){OP_READ, 4096, 32, false}, 30);
    double sorted = rate_of(HDD " queue=32", (struct load){OP_READ, 4096, 32, false}, 30);
    check("a queue of one does not sort", alone, 1e9 / (8.5e6 + 4.17e6), 0.03);
    if (sorted < 2 * alone)
        printf("FAILED a queue of 32 gives %.0f reads/s against %.0f\n", sorted, alone), failures++;
}

static void test_disk_reads_on(void) {
    struct model *m = make(HDD " queue=32");
    static int owner;
    uint64_t now = 1000;
    latency(m, &now, OP_READ, GIB / 2, 131072);
    now += (uint64_t)MS; /* the platters have moved on, and the disk has read on */
    uint64_t sent = now;
    model_submit(m, now, OP_READ, GIB / 2 + 262144, 131072, &owner); /* out of order: the third one first */
    model_submit(m, now, OP_READ, GIB / 2 + 131072, 131072, &owner);
    load_next_answer(m);
    check("two reads", (double)(load_next_answer(m) - sent), 2 * 131072 / 200e6 * 1e9 + 0.1 * MS, 0.01);
    model_free(m);
}

static void test_disk_flush_of_a_log_waits_for_a_turn(void) {
    struct model *m = make(HDD);
    uint64_t now = 1000;
    for (uint64_t page = 0; page < 100; page++) {
        latency(m, &now, OP_WRITE, GIB / 2 + page * 4096, 4096);
        latency(m, &now, OP_FLUSH, 0, 0);
        now += (uint64_t)(50 * US); /* the host thinks, and the next sector has passed the head */
    }
    check("100 flushed appends", (double)now, 100 * 8.333e6, 0.03);
    model_free(m);
}

static void test_disk_cache_takes_writes_until_it_is_full(void) {
    struct model *m = make(HDD);
    uint64_t now = 1000;
    check("cached", latency(m, &now, OP_WRITE, 0, 4096), 107.4 * US, 0.01);
    model_free(m);
    double large = rate_of(HDD " queue=32", (struct load){OP_WRITE, 4096, 8, false}, 200);
    check("a large cache, sustained", large, 17e6 / 4096 / 200 + 220, 0.15); /* what it holds, and what is stored */
    double steady = rate_of(HDD " cache=64e3", (struct load){OP_WRITE, 4096, 4, false}, 30);
    check("full", steady, 1e9 / (8.5e6 + 4.17e6), 0.03);
    if (rate_of(HDD " cache=64e3 queue=32", (struct load){OP_WRITE, 4096, 4, false}, 30) < 1.5 * steady)
        printf("FAILED the cache is not written back in the order of the platters\n"), failures++;
}

static void test_disk_flush_covers_what_was_answered(void) {
    struct model *m = make(HDD " queue=32");
    uint64_t now = 1000, start = now;
    for (uint64_t i = 1; i <= 20; i++)
        latency(m, &now, OP_WRITE, GIB / 21 * i, 4096);
    latency(m, &now, OP_FLUSH, 0, 0);
    double spent = (double)(now - start);
    if (spent < 20 * 1 * MS || spent > 20 * 12.7 * MS)
        printf("FAILED 20 writes were flushed in %.1f ms\n", spent / MS), failures++;
    model_free(m);
}

static void test_disk_flush_of_a_protected_cache_stores_nothing(void) {
    struct model *m = make(HDD " protected=1 flush=30000");
    uint64_t now = 1000;
    latency(m, &now, OP_WRITE, GIB / 2, 4096);
    check("protected disk", latency(m, &now, OP_FLUSH, 0, 0), 30 * US, 0.001);
    model_free(m);
}

/* A flush must not be answered before a write that was answered earlier is stored: checked against the definition. */
static void test_flush_order_under_random_load(void) {
    enum { WRITES = 2000 };
    struct model *m = make(SSD " bus=0 write=1000 cache=0 unit=0 drain=100e6");
    int owners[WRITES + 1];
    static int flush;
    uint64_t now = 1, times[WRITES + 1];
    for (int i = 0; i < WRITES; i++)
        model_submit(m, now += 10, OP_WRITE, (uint64_t)i * 8192, 4096, &owners[i]);
    model_submit(m, now += 10, OP_FLUSH, 0, 0, &flush);
    void *owner;
    uint64_t time, last = 0;
    int before = 0;
    for (int taken = 0; taken <= WRITES; taken++) {
        while (!model_take(m, model_next(m), &owner, &time))
            ;
        if (time < last)
            printf("FAILED answers go back in time\n"), failures++;
        last = time;
        if (owner == &flush)
            before = taken;
        times[taken] = time;
    }
    check("writes answered before the flush", before, WRITES, 0);
    check("the last one", (double)times[WRITES - 1], WRITES * 4096 / 100e6 * 1e9, 0.01);
    model_free(m);
}

static void test_no_write_overtakes_one_that_waits_for_room(void) {
    struct model *m = make("kind=flash channels=1 write=10e3 cache=1048576 drain=540e6");
    static int owner;
    double stored = 1048576 / 540e6 * 1e9;
    model_submit(m, 1000, OP_WRITE, 0, 1048576, &owner);
    model_submit(m, 11000, OP_WRITE, 2 << 20, 4096, &owner);
    model_submit(m, 21000, OP_WRITE, 3 << 20, 4096, &owner);
    load_next_answer(m);
    check("the second write", (double)load_next_answer(m), stored, 0.02);
    check("the third write", (double)load_next_answer(m), stored, 0.02);
    model_free(m);
}

static void test_disk_without_limits_of_bandwidth_turns_and_seeks(void) {
    check("random, depth 1", rate_of(HDD " media=1e12 track=1.6666e6", (struct load){OP_READ, 4096, 1, false}, 30),
          1e9 / (8.5e6 + 4.17e6 + .1e6), 0.03);
}

static void test_disk_reads_are_not_held_up_by_its_cache(void) {
    struct model *m = make(HDD " cache=1e6");
    static int writer, reader;
    uint64_t now = 1000, offset = 0;
    for (int i = 0; i < 64; i++, offset += 65536)
        model_submit(m, now, OP_WRITE, offset, 65536, &writer);
    model_submit(m, now, OP_READ, GIB / 2, 4096, &reader);
    void *owner = NULL;
    uint64_t time = 0;
    while (owner != &reader && time < 4000 * MS)
        if (model_take(m, model_next(m), &owner, &time) && owner == &writer)
            model_submit(m, time, OP_WRITE, offset += 65536, 65536, &writer);
    if (owner != &reader || time > 1100 * MS)
        printf("FAILED a read waited %.0f ms for the cache\n", (double)time / 1e6), failures++;
    model_free(m);
}

int main(void) {
    test_reads_scale_to_the_number_of_channels();
    test_bus_limits_large_requests();
    test_cached_writes_fall_to_the_drain();
    test_reads_beside_draining();
    test_flush_fills_units_that_were_written_in_part();
    test_small_flushed_writes_are_merged();
    test_parts_that_meet_in_the_cache_make_a_whole();
    test_flush_waits_until_the_cache_is_stored();
    test_writes_without_a_cache_pay_for_their_units();
    test_stalls_and_jitter();
    test_disk_reads();
    test_disk_reads_on();
    test_disk_flush_of_a_log_waits_for_a_turn();
    test_disk_cache_takes_writes_until_it_is_full();
    test_disk_flush_covers_what_was_answered();
    test_disk_flush_of_a_protected_cache_stores_nothing();
    test_no_write_overtakes_one_that_waits_for_room();
    test_disk_without_limits_of_bandwidth_turns_and_seeks();
    test_disk_reads_are_not_held_up_by_its_cache();
    test_flush_order_under_random_load();
    printf(failures ? "%d checks failed\n" : "all tests of the device model passed\n", failures);
    return failures != 0;
}
