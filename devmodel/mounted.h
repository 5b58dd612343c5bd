/* A file of a fixed size that a program answers for through FUSE: what the programs of emulated devices share. */
#ifndef DEVMODEL_MOUNTED_H
#define DEVMODEL_MOUNTED_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse_lowlevel.h>
#include <stdint.h>

/* One request to the kernel's limit, so that the kernel splits as little as possible. */
#define MAX_WRITE (1 << 20)

/* Bytes of the file; set before it is mounted. */
extern uint64_t mounted_size;

/* What is read and written lies within the file; the kernel keeps to its size. */
uint32_t mounted_clip(off_t offset, size_t length);

void mounted_on_init(void *unused, struct fuse_conn_info *connection);
void mounted_on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file);
void mounted_on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file);

#endif
