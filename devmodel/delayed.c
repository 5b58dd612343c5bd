/*
 * A file that answers as the storage below another file does, only later: what a DBMS would do on a slower drive.
 *
 *   delayed FILE BACKING [read=NS] [write=NS] [flush=NS]
 *
 * FILE is an empty regular file, over which the device is mounted; BACKING has the device's size. A loop device with
 * direct I/O on FILE makes it a block device. A request is done on BACKING, past the page cache, and its answer waits
 * so many nanoseconds more. The program prints "ready" when FILE can be opened, and ends with its parent process, or
 * when it is told to (SIGTERM, SIGINT), or when FILE is unmounted, which it leaves to others.
 *
 * A thread does one request at a time and sleeps until its answer is due, so the delays of requests that are under way
 * together overlap, as on a drive that serves them together.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE

#include "mounted.h"
#include "process.h"
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Direct I/O wants memory that begins at a block of the drive below; none has larger ones. */
#define ALIGNMENT 4096
/* Requests that are served at a time: what a loop device has under way at most. */
#define THREADS 128
enum operation { OP_READ, OP_WRITE, OP_FLUSH, OP_COUNT };

static const char *const NAMES[OP_COUNT] = {"read", "write", "flush"};
static uint64_t delay[OP_COUNT]; /* ns */
static int backing;
static pthread_key_t own_bytes;

/* Memory of this thread for the bytes of one request. */
static void *bytes_of_thread(void) {
    void *bytes = pthread_getspecific(own_bytes);
    if (!bytes) {
        bytes = aligned_alloc(ALIGNMENT, MAX_WRITE);
        if (!bytes)
            fail("memory", "there is none left");
        pthread_setspecific(own_bytes, bytes);
    }
    return bytes;
}

static void wait_for(enum operation op) {
    struct timespec t;
    if (!delay[op])
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t due = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + delay[op];
    t = (struct timespec){(time_t)(due / 1000000000), (long)(due % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t length, off_t offset, struct fuse_file_info *file) {
    (void)inode, (void)file;
    void *bytes = bytes_of_thread();
    length = mounted_clip(offset, length);
    int error = store_read(backing, bytes, length, offset);
    wait_for(OP_READ);
    if (error)
        fuse_reply_err(request, error);
    else
        fuse_reply_buf(request, bytes, length);
}

static void on_write(fuse_req_t request, fuse_ino_t inode, const char *bytes, size_t length, off_t offset,
                     struct fuse_file_info *file) {
    (void)inode, (void)file;
    void *aligned = bytes_of_thread(); /* what came begins behind FUSE's own header */
    int error = ENOSPC;
    if (mounted_clip(offset, length) == length) {
        memcpy(aligned, bytes, length);
        error = store_write(backing, aligned, length, offset);
    }
    wait_for(OP_WRITE);
    if (error)
        fuse_reply_err(request, error);
    else
        fuse_reply_write(request, length);
}

static void on_fsync(fuse_req_t request, fuse_ino_t inode, int data_only, struct fuse_file_info *file) {
    (void)inode, (void)data_only, (void)file;
    int error = fdatasync(backing) ? errno : 0;
    wait_for(OP_FLUSH);
    fuse_reply_err(request, error);
}

/* No discards: a hole in BACKING would cost a commit of its file system when it is written to again. */
static const struct fuse_lowlevel_ops OPERATIONS = {
    .init = mounted_on_init,
    .getattr = mounted_on_getattr,
    .open = mounted_on_open,
    .read = on_read,
    .write = on_write,
    .fsync = on_fsync,
};

static void open_backing(const char *path) {
    struct stat status;
    backing = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (backing < 0 || fstat(backing, &status))
        fail(path, errno == EINVAL ? "its file system has no direct I/O" : strerror(errno));
    mounted_size = (uint64_t)status.st_size;
}

static void set_delay(const char *argument) {
    const char *value = strchr(argument, '=');
    for (int op = 0; value && op < OP_COUNT; op++) {
        char *end;
        size_t length = strlen(NAMES[op]);
        if (length != (size_t)(value - argument) || strncmp(argument, NAMES[op], length))
            continue;
        errno = 0;
        delay[op] = strtoull(value + 1, &end, 10);
        if (end == value + 1 || *end || errno || value[1] == '-')
            break;
        return;
    }
    fail(argument, "expected read=NS, write=NS or flush=NS");
}

static void serve(struct fuse_session *session) {
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, THREADS);
    fuse_loop_cfg_set_clone_fd(config, 0);
    puts("ready");
    fflush(stdout);
    fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
}

int main(int count, char **arguments) {
    if (count < 3)
        fail("usage", "delayed FILE BACKING [read=NS] [write=NS] [flush=NS]");
    for (int i = 3; i < count; i++)
        set_delay(arguments[i]);
    end_with_parent();
    open_backing(arguments[2]);
    pthread_key_create(&own_bytes, free);
    char *options[] = {"delayed", "-o", "fsname=delayed,subtype=delayed,default_permissions"};
    struct fuse_args fuse = FUSE_ARGS_INIT(3, options);
    struct fuse_session *session = fuse_session_new(&fuse, &OPERATIONS, sizeof OPERATIONS, NULL);
    if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, arguments[1]))
        fail(arguments[1], "cannot be mounted over");
    serve_promptly();
    keep_processors_awake();
    serve(session);
    /* Not unmounted: the path of FILE is how a loop device that is still on it can be found, and detached. */
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return 0;
}
