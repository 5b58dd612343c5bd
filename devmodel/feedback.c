#include "feedback.h"

#include <math.h>
#include <stddef.h>

/* The kernel tells whole milliseconds: over so many requests that is 2 us each. */
#define ENOUGH 512
/* The part of an error that one comparison takes back: less than all, as the next requests differ from the last. */
#define GAIN 0.5
/* The most that one comparison changes, and the farthest from what was calibrated. */
#define STEP 2.0
#define FARTHEST 4.0
/* Requests are still under way at either end of a comparison, and some are merged. */
#define OTHERS 0.05

static double within(double value, double limit) {
    return fmax(1 / limit, fmin(limit, value));
}

void feedback_init(struct feedback *f) {
    for (int op = 0; op < OP_COUNT; op++)
        f->factor[op] = 1;
}

const char *feedback_set_outside(struct feedback *f, const char *numbers) {
    return way_read_operations(f->outside, numbers) ? NULL : "expected shares of reads, writes and flushes";
}

struct cost feedback_correct(const struct feedback *f, enum operation op, struct cost calibrated) {
    return (struct cost){f->factor[op] * calibrated.first, f->factor[op] * calibrated.further};
}

/* A request that was due before it arrived here takes as long as its way: no answer can be earlier than that. */
bool feedback_answered(struct feedback *f, enum operation op, struct cost cost, uint64_t arrived, uint64_t due) {
    struct tally *t = &f->tally[op];
    double whole = cost.first + cost.further;
    t->expected += whole + (due > arrived ? (double)(due - arrived) : 0) - f->outside[op] * cost.first;
    t->cost += whole;
    return ++t->requests >= ENOUGH;
}

static void begin(struct feedback *f, int op, const struct counts *now) {
    f->tally[op] = (struct tally){0};
    f->begin[op] = *now;
}

void feedback_begin(struct feedback *f, const struct counts *now) {
    for (int op = 0; op < OP_COUNT; op++)
        begin(f, op, now);
}

/* Return by which factor the cost was too low, for requests that took so many ns on average. */
static double find_change(const struct tally *t, double ns) {
    return t->cost > 0 ? within(1 + GAIN * (ns * t->requests - t->expected) / t->cost, STEP) : 1;
}

static void change(struct feedback *f, int op, double factor) {
    f->factor[op] = within(f->factor[op] * factor, FARTHEST);
}

/*
 * A loop device holds back reads and writes while a flush is under way, and counts a flush as a write, too. So nothing
 * is learnt of reads and writes then but that the way is slower or faster for them as it is for flushes.
 */
bool feedback_compare(struct feedback *f, const struct counts *now) {
    for (int op = 0; op < OP_COUNT; op++) {
        double wanted = f->tally[op].requests;
        if (wanted < ENOUGH)
            continue;
        bool flushed = now->requests[OP_FLUSH] > f->begin[op].requests[OP_FLUSH];
        if (op == OP_FLUSH || !flushed) {
            double found = now->requests[op] - f->begin[op].requests[op];
            if (fabs(found - wanted) > OTHERS * wanted)
                return false;
            double factor = find_change(&f->tally[op], (now->ns[op] - f->begin[op].ns[op]) / found);
            for (int other = 0; other < OP_COUNT; other++)
                if (other == op || op == OP_FLUSH)
                    change(f, other, factor);
        }
        begin(f, op, now);
    }
    return true;
}
