#define _GNU_SOURCE
#include "mounted.h"

#include <sys/stat.h>
#include <unistd.h>

/* The kernel's own limits on requests under way, as far as a FUSE server may choose. */
#define MAX_BACKGROUND 65535

uint64_t mounted_size;

uint32_t mounted_clip(off_t offset, size_t length) {
    uint64_t left = (uint64_t)offset < mounted_size ? mounted_size - (uint64_t)offset : 0;
    return (uint32_t)(length < left ? length : left);
}

void mounted_on_init(void *unused, struct fuse_conn_info *connection) {
    (void)unused;
    connection->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    connection->want |= connection->capable & FUSE_CAP_ASYNC_DIO;
    connection->max_write = MAX_WRITE;
    connection->max_background = MAX_BACKGROUND;
    connection->congestion_threshold = MAX_BACKGROUND;
}

void mounted_on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file) {
    (void)file;
    struct stat status = {.st_ino = inode, .st_mode = S_IFREG | 0600, .st_nlink = 1, .st_blksize = 4096};
    status.st_size = (off_t)mounted_size;
    status.st_blocks = (blkcnt_t)(mounted_size / 512);
    status.st_uid = geteuid();
    status.st_gid = getegid();
    fuse_reply_attr(request, &status, 3600);
}

void mounted_on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file) {
    (void)inode;
    file->direct_io = 1;
    fuse_reply_open(request, file);
}
