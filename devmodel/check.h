/* What the tests share. */
#ifndef DEVMODEL_CHECK_H
#define DEVMODEL_CHECK_H

#include <math.h>
#include <stdio.h>

static int failures;

/* Count a failure, and say so, unless a number is as expected within a share of it. */
static inline void check(const char *what, double found, double expected, double tolerance) {
    if (fabs(found - expected) <= tolerance * fabs(expected))
        return;
    printf("FAILED %s: found %.6g, expected %.6g within %.3g %%\n", what, found, expected, 100 * tolerance);
    failures++;
}

#endif
