/* Tests of the correction of costs, with a way whose true cost is known. */
#include "check.h"
#include "feedback.h"

#include <stdbool.h>

#define US 1000.0

/* A device in use: what a request truly costs, how many of the time is outside the block layer, how long the device
 * takes, and what the block device has counted. */
struct use {
    struct feedback feedback;
    struct counts counts;
    double calibrated, cost, outside, latency;
};

static struct use make(double calibrated, double cost, double outside, double latency) {
    struct use u = {.calibrated = calibrated, .cost = cost, .outside = outside, .latency = latency};
    feedback_init(&u.feedback);
    for (int op = 0; op < OP_COUNT; op++)
        u.feedback.outside[op] = outside;
    return u;
}

static void count(struct use *u, enum operation op, double ns) {
    u->counts.requests[op]++;
    u->counts.ns[op] += ns;
}

/* One request; returns how long it takes for the program that sends it. All of the way lies before the model here. */
static double send(struct use *u, enum operation op) {
    static const uint64_t ARRIVED = 1000000000;
    struct cost early = feedback_correct(&u->feedback, op, (struct cost){u->calibrated, 0});
    double left = u->latency - early.first;
    double taken = u->cost + fmax(0, left);
    count(u, op, taken - u->outside * u->cost);
    if (op == OP_FLUSH)
        count(u, OP_WRITE, taken - u->outside * u->cost);
    if (feedback_answered(&u->feedback, op, early, ARRIVED, (uint64_t)((double)ARRIVED + left)) &&
        !feedback_compare(&u->feedback, &u->counts))
        feedback_begin(&u->feedback, &u->counts);
    return taken;
}

/* Returns what the last of many requests takes. */
static double send_many(struct use *u, enum operation op, int requests) {
    double taken = 0;
    for (int i = 0; i < requests; i++)
        taken = send(u, op);
    return taken;
}

static void test_a_device_is_met_whatever_the_way_costs(void) {
    for (int op = 0; op < OP_COUNT; op++) {
        struct use slower = make(30 * US, 50 * US, 0.2, 100 * US);
        check("a request before the first comparison", send(&slower, op), 120 * US, 0.001);
        check("a slower way", send_many(&slower, op, 10000), 100 * US, 0.01);
        struct use faster = make(30 * US, 20 * US, 0.2, 100 * US);
        check("a faster way", send_many(&faster, op, 10000), 100 * US, 0.01);
        faster.cost = 40 * US;
        check("a way that gets slower", send_many(&faster, op, 10000), 100 * US, 0.01);
    }
}

static void test_operations_are_corrected_by_themselves(void) {
    struct use u = make(30 * US, 50 * US, 0, 100 * US);
    send_many(&u, OP_READ, 10000);
    check("the factor of reads", u.feedback.factor[OP_READ], 5 / 3.0, 0.01);
    check("that of writes", u.feedback.factor[OP_WRITE], 1, 0);
}

/* A request that no answer can be early enough for says nothing against what was calibrated. */
static void test_what_cannot_be_met_changes_nothing(void) {
    struct use u = make(30 * US, 30 * US, 0.1, 10 * US);
    check("a device that is faster than its way", send_many(&u, OP_READ, 10000), 30 * US, 0.001);
    check("its factor", u.feedback.factor[OP_READ], 1, 0.001);
}

/* Between flushes a write waits for them, which is no cost of the way. */
static void test_beside_flushes_only_these_are_compared(void) {
    struct use u = make(30 * US, 45 * US, 0, 1000 * US);
    for (int i = 0; i < 20000; i++) {
        send(&u, OP_WRITE);
        u.counts.ns[OP_WRITE] += 500 * US;
        send(&u, OP_FLUSH);
    }
    check("the factor of flushes", u.feedback.factor[OP_FLUSH], 1.5, 0.02);
    check("that of writes", u.feedback.factor[OP_WRITE], 1.5, 0.02);
}

static void test_counts_of_other_requests_are_not_believed(void) {
    struct use u = make(30 * US, 60 * US, 0, 100 * US);
    for (int i = 0; i < 10000; i++) {
        send(&u, OP_READ);
        count(&u, OP_READ, 1000 * US); /* somebody else's */
    }
    check("a factor without evidence", u.feedback.factor[OP_READ], 1, 0);
}

static void test_a_factor_has_limits(void) {
    struct use u = make(10 * US, 10000 * US, 0, 20000 * US);
    send_many(&u, OP_READ, 100000);
    check("the largest factor", u.feedback.factor[OP_READ], 4, 0);
}

int main(void) {
    test_a_device_is_met_whatever_the_way_costs();
    test_operations_are_corrected_by_themselves();
    test_what_cannot_be_met_changes_nothing();
    test_beside_flushes_only_these_are_compared();
    test_counts_of_other_requests_are_not_believed();
    test_a_factor_has_limits();
    if (!feedback_set_outside(&(struct feedback){0}, ".1,.2"))
        printf("FAILED two shares were taken for three\n"), failures++;
    printf(failures ? "%d checks failed\n" : "all tests of the correction passed\n", failures);
    return failures != 0;
}
