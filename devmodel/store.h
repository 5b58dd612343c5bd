/* Where the bytes are: a sparse file, on a memory file system for everything fast. */
#ifndef DEVMODEL_STORE_H
#define DEVMODEL_STORE_H

#include <stdint.h>
#include <sys/types.h>

/* Read or write all the bytes; returns 0, or an errno (ENOSPC when the file system is full). */
int store_read(int file, void *bytes, size_t length, off_t offset);
int store_write(int file, const void *bytes, size_t length, off_t offset);

#endif
