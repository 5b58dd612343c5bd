/* The block device over a file, and what the kernel counts of it. */
#ifndef DEVMODEL_BLOCK_H
#define DEVMODEL_BLOCK_H

#include "feedback.h"

/* Open the counts of the loop device over a file, which is named as the kernel names it; -1 when there is none. */
int block_open(const char *file);

/* Read the counts; returns false when the device has gone. */
bool block_read(int counts, struct counts *found);

#endif
