/* Tests of the parts of the device model: its heap, its table of units, the costs of the way, its parameters. */
#include "check.h"
#include "heap.h"
#include "parameters.h"
#include "units.h"
#include "way.h"

#include <string.h>

#define US 1000.0

static void test_heap_has_no_limit(void) {
    enum { COUNT = 200000 };
    struct heap h = {0};
    uint64_t state = 1, last = 0;
    for (int i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        heap_push(&h, state >> 40, NULL);
    }
    for (int i = 0; i < COUNT; i++) {
        struct due d = heap_pop(&h);
        if (d.time < last)
            printf("FAILED heap order\n"), failures++, i = COUNT;
        last = d.time;
    }
    check("heap is empty", (double)h.count, 0, 0);
    heap_free(&h);
}

/* The table of units against the obvious way to count. */
static void test_units_against_a_plain_count(void) {
    enum { UNITS = 500 };
    struct units *u = units_new(32768, UNITS);
    uint64_t written[UNITS] = {0}, state = 3;
    for (int round = 0; round < 50; round++) {
        memset(written, 0, sizeof written);
        for (int i = 0; i < 2000; i++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            uint64_t page = (state >> 33) % (UNITS * 8 - 16), pages = 1 + (state >> 60);
            units_write(u, page * 4096, (uint32_t)(pages * 4096));
            for (uint64_t j = page; j < page + pages; j++)
                written[j / 8] |= 1u << (j % 8);
            for (uint64_t j = 0; j < UNITS; j++)
                written[j] = written[j] == 0xff ? 0 : written[j]; /* complete: forgotten */
        }
        size_t partly = 0;
        for (int j = 0; j < UNITS; j++)
            partly += written[j] != 0;
        check("units in part", (double)units_flush(u), (double)partly, 0);
    }
    units_free(u);
}

/* What the last of many requests costs, of which so many are always under way. */
static double last_cost(struct way w, double per_second, double under_way, uint32_t length) {
    double cost = 0;
    for (double t = 0; t < 1; t += 1 / per_second) {
        struct cost found = way_cost(&w, 1000 + (uint64_t)(t * 1e9), OP_READ, length);
        cost = found.first + found.further;
        way_answered(&w, (uint64_t)(under_way / per_second * 1e9));
    }
    return cost;
}

/* 10 us of work for the first page and 1 for each further one, 30 us alone; with one other under way a request waits
 * for half of one, with nine others for five, and for the further pages of two. */
static void test_way_costs_more_with_others_under_way(void) {
    struct way w = {.last = 1000};
    const char *wrong = way_set(&w, "early", "30000,0,0");
    wrong = wrong ? wrong : way_set(&w, "work", "10000,10000,10000");
    wrong = wrong ? wrong : way_set(&w, "page", "2000,0,0");
    wrong = wrong ? wrong : way_set(&w, "page-work", "1000,0,0");
    wrong = wrong ? wrong : way_set(&w, "queue", "1=0.5,9=5");
    wrong = wrong ? wrong : way_set(&w, "page-queue", "9=2");
    if (wrong)
        printf("FAILED %s\n", wrong), failures++;
    check("cost of a request alone", last_cost(w, 20000, 1, 4096), 30000, 0.01);
    check("cost of one of two", last_cost(w, 20000, 2, 4096), 35000, 0.01);
    check("cost of one of six", last_cost(w, 50000, 6, 4096), 30000 + 27500, 0.01);
    check("cost of one of ten", last_cost(w, 90000, 10, 4096), 80000, 0.01);
    check("cost beyond what is known", last_cost(w, 90000, 100, 4096), 80000, 0.01);
    check("cost of one of ten large ones", last_cost(w, 20000, 10, 8 * 4096), 30000 + 14000 + 5 * 10000 + 2 * 7000,
          0.01);
    if (!way_set(&w, "early", "1,2") || !way_set(&w, "work", "1,2,3,4") || !way_set(&w, "page", "1,x,2") ||
        !way_set(&w, "queue", "2=1,1=2") || !way_set(&w, "queue", "2") || !way_set(&w, "page-queue", "1"))
        printf("FAILED wrong costs of the way were taken\n"), failures++;
}

static void test_wrong_parameters_are_refused(void) {
    static const char *const WRONG[] = {"read",        "read=",       "read=x", "read=-1",  "reed=1",
                                        "kind=floppy", "protected=2", "seed=a", "bus=1e999"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct parameters p;
        parameters_init(&p);
        if (!parameters_set(&p, WRONG[i]))
            printf("FAILED %s was taken\n", WRONG[i]), failures++;
    }
    struct parameters p;
    parameters_init(&p);
    if (parameters_set(&p, "kind=disk") || !parameters_check(&p))
        printf("FAILED a disk that does not turn was taken\n"), failures++;
}

int main(void) {
    test_heap_has_no_limit();
    test_units_against_a_plain_count();
    test_way_costs_more_with_others_under_way();
    test_wrong_parameters_are_refused();
    printf(failures ? "%d checks failed\n" : "all tests of its parts passed\n", failures);
    return failures != 0;
}
