/*
 * A file that answers as a storage device would: FUSE in front, a device model behind, the bytes in another file.
 *
 *   devmodel FILE BACKING [--early NS,NS,NS] [--page NS,NS,NS] [--work NS,NS,NS] [--page-work NS,NS,NS]
 *            [--queue OTHERS=WAITED,...] [--page-queue OTHERS=WAITED,...] [--outside SHARE,SHARE,SHARE] [--spin NS]
 *            [KEY=VALUE...]
 *
 * FILE is an empty regular file, over which the device is mounted; BACKING has the device's size. A loop device with
 * direct I/O on FILE makes it a block device. The program prints "ready" when FILE can be opened, and ends with its
 * parent process, or when it is told to (SIGTERM, SIGINT), or when FILE is unmounted, which it leaves to others.
 *
 * One thread does everything: it takes requests from the kernel, asks the model when each is to be answered, and
 * answers it then. More threads would only take turns on a small machine, and need locks. Written bytes go to BACKING
 * when a request comes and are read when it is answered, so an answer never runs ahead of the data.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE

#include "block.h"
#include "feedback.h"
#include "memory.h"
#include "model.h"
#include "mounted.h"
#include "process.h"
#include "store.h"
#include "way.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
/* Requests taken from the kernel before the next look at what is due. */
#define BATCH 16
/* How often to look whether there is a block device over the file now. */
#define SEARCH_NS UINT64_C(1000000000)

struct device {
    int backing;
    struct model *model;
    struct way way; /* what it costs to get here and back */
    struct feedback feedback;
    int counts;           /* of the block device over the file; -1 while there is none */
    uint64_t next_search; /* when to look for it again */
    char file[PATH_MAX];  /* as the kernel names it */
    uint64_t spin;        /* ns before an answer in which not to sleep any more */
    void *answer_bytes;
    struct fuse_session *session;
};

/* A request that the model has not answered yet. */
struct pending {
    fuse_req_t request;
    enum operation op;
    uint64_t offset;
    uint32_t length;
    struct cost cost;
    uint64_t arrived;
    struct pending *next_free;
};

static struct device device;
static struct pending *free_list;

static uint64_t clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * The model's clock is behind by what the way through the kernel costs: an answer leaves so much before it is due. The
 * whole cost is taken off the arrival, which comes to the same.
 */
static void submit(fuse_req_t request, enum operation op, uint64_t offset, uint32_t length) {
    struct pending *p = free_list;
    if (p)
        free_list = p->next_free;
    else
        p = allocate(1, sizeof *p);
    uint64_t now = clock_now();
    struct cost cost = feedback_correct(&device.feedback, op, way_cost(&device.way, now, op, length));
    *p = (struct pending){request, op, offset, length, cost, now, NULL};
    model_submit(device.model, now - (uint64_t)(cost.first + cost.further), op, offset, length, p);
}

static void answer(struct pending *p) {
    int error;
    if (p->op == OP_READ) {
        error = store_read(device.backing, device.answer_bytes, p->length, (off_t)p->offset);
        if (error)
            fuse_reply_err(p->request, error);
        else
            fuse_reply_buf(p->request, device.answer_bytes, p->length);
    } else if (p->op == OP_WRITE) {
        fuse_reply_write(p->request, p->length);
    } else {
        fuse_reply_err(p->request, 0);
    }
    p->next_free = free_list;
    free_list = p;
}

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t length, off_t offset, struct fuse_file_info *file) {
    (void)inode, (void)file;
    submit(request, OP_READ, (uint64_t)offset, mounted_clip(offset, length));
}

static void on_write(fuse_req_t request, fuse_ino_t inode, const char *bytes, size_t length, off_t offset,
                     struct fuse_file_info *file) {
    (void)inode, (void)file;
    int error = mounted_clip(offset, length) < length ? ENOSPC : store_write(device.backing, bytes, length, offset);
    if (error)
        fuse_reply_err(request, error);
    else
        submit(request, OP_WRITE, (uint64_t)offset, (uint32_t)length);
}

static void on_fsync(fuse_req_t request, fuse_ino_t inode, int data_only, struct fuse_file_info *file) {
    (void)inode, (void)data_only, (void)file;
    submit(request, OP_FLUSH, 0, 0);
}

/* Discards and zeroes take no time: the models know no figures of them. */
static void on_fallocate(fuse_req_t request, fuse_ino_t inode, int mode, off_t offset, off_t length,
                         struct fuse_file_info *file) {
    (void)inode, (void)file;
    if (offset < 0 || length < 0 || (uint64_t)offset + (uint64_t)length > mounted_size)
        fuse_reply_err(request, EINVAL);
    else
        fuse_reply_err(request, fallocate(device.backing, mode, offset, length) ? errno : 0);
}

static const struct fuse_lowlevel_ops OPERATIONS = {
    .init = mounted_on_init,
    .getattr = mounted_on_getattr,
    .open = mounted_on_open,
    .read = on_read,
    .write = on_write,
    .fsync = on_fsync,
    .fallocate = on_fallocate,
};

/* Compare how long requests were to take with how long they took for the block device, if that can be found. */
static void compare(uint64_t now) {
    struct counts found;
    bool new = device.counts < 0;
    if (new) {
        if (now < device.next_search)
            return;
        device.next_search = now + SEARCH_NS;
        device.counts = block_open(device.file);
    }
    if (device.counts < 0)
        return;
    if (!block_read(device.counts, &found)) {
        close(device.counts);
        device.counts = -1;
    } else if (new || !feedback_compare(&device.feedback, &found)) {
        feedback_begin(&device.feedback, &found);
    }
}

/* Answer what is due; returns how long there is nothing to do: nanoseconds, NEVER without an end. */
static uint64_t answer_due(void) {
    void *owner;
    uint64_t time;
    uint64_t now = clock_now();
    while (model_take(device.model, now, &owner, &time)) {
        struct pending *answered = owner;
        uint64_t sent = answered->arrived - (uint64_t)(answered->cost.first + answered->cost.further);
        way_answered(&device.way, time - sent);
        bool enough = feedback_answered(&device.feedback, answered->op, answered->cost, answered->arrived, time);
        answer(answered);
        now = clock_now();
        if (enough)
            compare(now);
    }
    uint64_t next = model_next(device.model);
    if (next == NEVER)
        return NEVER;
    return next > now ? next - now : 0;
}

static void wait_for_requests(int kernel, uint64_t idle) {
    if (idle <= device.spin)
        return;
    struct pollfd ready = {kernel, POLLIN, 0};
    struct timespec timeout = {(time_t)((idle - device.spin) / 1000000000), (long)((idle - device.spin) % 1000000000)};
    ppoll(&ready, 1, idle == NEVER ? NULL : &timeout, NULL);
}

/* Returns whether the file was unmounted, or another error ended the connection. */
static bool take_requests(struct fuse_buf *buffer) {
    for (int taken = 0; taken < BATCH; taken++) {
        int length = fuse_session_receive_buf(device.session, buffer);
        if (length == -EAGAIN || length == -EINTR)
            return false;
        if (length <= 0)
            return true;
        fuse_session_process_buf(device.session, buffer);
    }
    return false;
}

static void serve(void) {
    struct fuse_buf buffer = {0};
    int kernel = fuse_session_fd(device.session);
    fcntl(kernel, F_SETFL, fcntl(kernel, F_GETFL) | O_NONBLOCK);
    puts("ready");
    fflush(stdout);
    while (!fuse_session_exited(device.session)) {
        if (take_requests(&buffer))
            break;
        wait_for_requests(kernel, answer_due());
    }
    free(buffer.mem);
}

/* The file system on top writes back when memory is short: this process must not be paged out then. */
static void stay_in_memory(void) {
    if (geteuid() == 0)
        mlockall(MCL_CURRENT | MCL_FUTURE); /* others have a limit, beyond which they would get no memory at all */
}

static void open_backing(const char *path) {
    struct stat status;
    device.backing = open(path, O_RDWR | O_CLOEXEC);
    if (device.backing < 0 || fstat(device.backing, &status))
        fail(path, strerror(errno));
    mounted_size = (uint64_t)status.st_size;
}

static void read_spin(const char *text) {
    char *end;
    errno = 0;
    device.spin = strtoull(text, &end, 10);
    if (end == text || errno || *end)
        fail(text, "expected nanoseconds");
}

static void parse(int count, char **arguments, struct parameters *p) {
    static const struct option OPTIONS[] = {{"early", 1, 0, 'w'},     {"page", 1, 0, 'w'},  {"work", 1, 0, 'w'},
                                            {"page-work", 1, 0, 'w'}, {"queue", 1, 0, 'w'}, {"page-queue", 1, 0, 'w'},
                                            {"outside", 1, 0, 'o'},   {"spin", 1, 0, 's'},  {0, 0, 0, 0}};
    for (int option, which; (option = getopt_long(count, arguments, "", OPTIONS, &which)) != -1;) {
        const char *wrong = NULL;
        if (option == 'w')
            wrong = way_set(&device.way, OPTIONS[which].name, optarg);
        else if (option == 'o')
            wrong = feedback_set_outside(&device.feedback, optarg);
        else if (option == 's')
            read_spin(optarg);
        else
            exit(2);
        if (wrong)
            fail(optarg, wrong);
    }
    if (count - optind < 2)
        fail("usage", "devmodel FILE BACKING [--early NS,NS,NS] [--page NS,NS,NS] [--work NS,NS,NS] "
                      "[--page-work NS,NS,NS] [--queue OTHERS=WAITED,...] [--page-queue OTHERS=WAITED,...] "
                      "[--outside SHARE,SHARE,SHARE] [--spin NS] [KEY=VALUE...]");
    parameters_init(p);
    for (int i = optind + 2; i < count; i++) {
        const char *wrong = parameters_set(p, arguments[i]);
        if (wrong)
            fail(arguments[i], wrong);
    }
    const char *wrong = parameters_check(p);
    if (wrong)
        fail("parameters", wrong);
}

int main(int count, char **arguments) {
    struct parameters p;
    parse(count, arguments, &p);
    const char *file = arguments[optind];
    end_with_parent();
    device.counts = -1;
    feedback_init(&device.feedback);
    if (!realpath(file, device.file)) /* now: once mounted, this process would have to answer itself */
        fail(file, strerror(errno));
    open_backing(arguments[optind + 1]);
    device.model = model_new(&p, mounted_size);
    device.answer_bytes = aligned_alloc(PAGE, MAX_WRITE);
    char *options[] = {"devmodel", "-o", "fsname=devmodel,subtype=devmodel,default_permissions"};
    struct fuse_args fuse = FUSE_ARGS_INIT(3, options);
    device.session = fuse_session_new(&fuse, &OPERATIONS, sizeof OPERATIONS, NULL);
    if (!device.session || fuse_set_signal_handlers(device.session) || fuse_session_mount(device.session, file))
        fail(file, "cannot be mounted over");
    serve_promptly();
    stay_in_memory();
    keep_processors_awake();
    serve();
    /* Not unmounted: the path of FILE is how a loop device that is still on it can be found, and detached. */
    fuse_remove_signal_handlers(device.session);
    fuse_session_destroy(device.session);
    model_free(device.model);
    free(device.answer_bytes);
    return 0;
}
