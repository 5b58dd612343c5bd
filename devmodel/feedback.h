/*
 * Corrects what the way to the device costs while it is in use: a machine that was calibrated may be slower by a third
 * a few minutes later, and much slower while a DBMS keeps its processors busy.
 *
 * The kernel counts for each block device how many requests it answered, and how long these took. The program knows
 * how long the same requests were to take. What is between the two is the error of the cost by which they were answered
 * early, and a factor on that cost takes it back, a part at a time.
 */
#ifndef DEVMODEL_FEEDBACK_H
#define DEVMODEL_FEEDBACK_H

#include "model.h"
#include "way.h"

/* Requests that a block device has answered so far, and the ns that they took, by operation. */
struct counts {
    double requests[OP_COUNT], ns[OP_COUNT];
};

/* Requests that were answered since the last comparison: their number, and sums of ns. */
struct tally {
    double requests;
    double expected; /* what they were to take for the block device, or longer where they came too late for that */
    double cost;     /* by how much they were answered early */
};

struct feedback {
    /* share of what a first page costs that is outside the block layer; further pages are copied inside */
    double outside[OP_COUNT];
    double factor[OP_COUNT]; /* on the cost that was calibrated */
    struct tally tally[OP_COUNT];
    struct counts begin[OP_COUNT]; /* all counts when the tally of an operation began */
};

void feedback_init(struct feedback *f);

/* Set the outside shares from "READ,WRITE,FLUSH"; returns NULL, or what is wrong. */
const char *feedback_set_outside(struct feedback *f, const char *numbers);

/* Correct what a request costs. */
struct cost feedback_correct(const struct feedback *f, enum operation op, struct cost calibrated);

/* A request was answered that was due at a time, by a clock that showed `arrived` when it came. Returns whether a
 * comparison is due. */
bool feedback_answered(struct feedback *f, enum operation op, struct cost cost, uint64_t arrived, uint64_t due);

/* Begin to compare: nothing is known of what was answered before. */
void feedback_begin(struct feedback *f, const struct counts *now);

/* Correct the factors of operations of which enough requests were answered. Returns false when the counts are not those
 * of the same requests, and nothing was corrected. */
bool feedback_compare(struct feedback *f, const struct counts *now);

#endif
