// Threads whose waits are known: each repeats one step, so that whatever it
// waits for belongs to that.
//
//     waits SECONDS FILE STEP:THREADS [STEP:THREADS...]
//
// Prints one line per thread: its number, its step, how often, and in ns what
// it lived (without a pause at its end), computed and waited for a processor;
// the rest it was blocked. The last two are the kernel's own account
// (/proc/self/task/TID/schedstat), which has nothing to do with tracepoints.
//
// Steps: cpu, sleep, doze (the same by select), fsync, read (direct), write (direct), writeback, fault,
// pipe (to a child and back), naps (the same, and the child sleeps so often that
// nobody remembers all of it), lock (a mutex whose holder sleeps), group
// (commits: the first who comes flushes for all who wait), leader (holds the
// mutex of followers while it flushes), follower, aio (reads by libaio).
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
#define FILE_BYTES (64 << 20)
#define MAX_THREADS 256
#define PAUSE_NS 100000000

struct thread {
    pthread_t handle;
    const char *step;
    int number, file, direct, pipes[4];
    uint64_t steps, born, lived, computed, queued;
    char *buffer, *mapped;
    aio_context_t context;
    int ring;
    struct io_uring_sqe *entries;
    unsigned *submitted, *indexes, *completed;
};

static struct thread threads[MAX_THREADS];
static volatile int is_over;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, group_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t flushed = PTHREAD_COND_INITIALIZER;
static uint64_t written, durable;
static int is_flushing;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t get_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void read_account(int file, uint64_t *computed, uint64_t *queued)
{
    char text[128] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%lu %lu", computed, queued) != 2)
        fail("schedstat");
}

static void pause_for(long ns)
{
    struct timespec t = {0, ns};
    nanosleep(&t, NULL);
}

static void compute(uint64_t ns)
{
    for (uint64_t end = get_time() + ns; get_time() < end;)
        ;
}

static long choose_offset(struct thread *t)
{
    return random() % (FILE_BYTES / BLOCK / MAX_THREADS) * BLOCK + (long)t->number * (FILE_BYTES / MAX_THREADS);
}

// Whoever finds no flush under way flushes for all that were written before;
// the others wait for one that covers theirs.
static void commit(struct thread *t)
{
    pthread_mutex_lock(&group_mutex);
    if (pwrite(t->file, t->buffer, BLOCK, choose_offset(t)) != BLOCK)
        fail("pwrite");
    uint64_t mine = ++written;
    while (durable < mine) {
        if (is_flushing) {
            pthread_cond_wait(&flushed, &group_mutex);
            continue;
        }
        uint64_t covered = written;
        is_flushing = 1;
        pthread_mutex_unlock(&group_mutex);
        fdatasync(t->file);
        pthread_mutex_lock(&group_mutex);
        is_flushing = 0;
        durable = covered;
        pthread_cond_broadcast(&flushed);
    }
    pthread_mutex_unlock(&group_mutex);
}

static void write_and_flush(struct thread *t)
{
    if (pwrite(t->file, t->buffer, BLOCK, choose_offset(t)) != BLOCK || fdatasync(t->file))
        fail("fdatasync");
}

static void read_by_aio(struct thread *t)
{
    struct iocb block = {.aio_fildes = t->direct,
                    .aio_lio_opcode = IOCB_CMD_PREAD,
                    .aio_buf = (uint64_t)t->buffer,
                    .aio_nbytes = BLOCK,
                    .aio_offset = choose_offset(t)},
                *blocks = &block;
    struct io_event event;
    if (syscall(SYS_io_submit, t->context, 1, &blocks) != 1 || syscall(SYS_io_getevents, t->context, 1, 1, &event, NULL) != 1)
        fail("libaio");
}

static void start_ring(struct thread *t)
{
    struct io_uring_params p = {};
    t->ring = syscall(SYS_io_uring_setup, 1, &p);
    size_t indexes = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    size_t entries = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *rings = mmap(NULL, entries > indexes ? entries : indexes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, t->ring,
        IORING_OFF_SQ_RING);  // older kernels refuse to map more than there is
    t->entries =
        mmap(NULL, sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, t->ring, IORING_OFF_SQES);
    if (t->ring < 0 || rings == MAP_FAILED || t->entries == MAP_FAILED)
        fail("io_uring");
    t->submitted = (unsigned *)(rings + p.sq_off.tail);
    t->indexes = (unsigned *)(rings + p.sq_off.array);
    t->completed = (unsigned *)(rings + p.cq_off.head);
}

static void read_by_uring(struct thread *t)
{
    *t->entries = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .fd = t->direct, .addr = (uint64_t)t->buffer, .len = BLOCK, .off = choose_offset(t)};
    t->indexes[0] = 0;
    __atomic_store_n(t->submitted, *t->submitted + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, t->ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
        fail("io_uring");
    __atomic_store_n(t->completed, *t->completed + 1, __ATOMIC_RELEASE);
}

static void hold(void (*action)(struct thread *), struct thread *t)
{
    pthread_mutex_lock(&mutex);
    action(t);
    pthread_mutex_unlock(&mutex);
    if (action == write_and_flush)
        pause_for(50000);
}

static void sleep_a_little(struct thread *t)
{
    (void)t;
    pause_for(2000000);
}

// As PostgreSQL's pg_usleep until version 15: a select of no descriptor.
static void doze(struct thread *t)
{
    struct timeval a_little = {.tv_usec = 2000};
    (void)t;
    select(0, NULL, NULL, NULL, &a_little);
}

static void do_nothing(struct thread *t)
{
    (void)t;
}

static void take_step(struct thread *t)
{
    const char *step = t->step;
    long offset = choose_offset(t);
    if (!strcmp(step, "cpu"))
        compute(1000000);
    else if (!strcmp(step, "sleep"))
        sleep_a_little(t);
    else if (!strcmp(step, "doze"))
        doze(t);
    else if (!strcmp(step, "fsync"))
        write_and_flush(t);
    else if (!strcmp(step, "read") && pread(t->direct, t->buffer, BLOCK, offset) != BLOCK)
        fail("pread");
    else if (!strcmp(step, "write") && pwrite(t->direct, t->buffer, BLOCK, offset) != BLOCK)
        fail("pwrite");
    else if (!strcmp(step, "writeback")) {
        if (pwrite(t->file, t->buffer, BLOCK, offset) != BLOCK || sync_file_range(t->file, offset, BLOCK, 7))
            fail("sync_file_range");
    } else if (!strcmp(step, "fault")) {
        madvise(t->mapped + offset, BLOCK, MADV_DONTNEED);
        posix_fadvise(t->file, offset, BLOCK, POSIX_FADV_DONTNEED);
        t->buffer[0] += t->mapped[offset];
    } else if (!strcmp(step, "pipe") || !strcmp(step, "naps")) {
        if (write(t->pipes[1], t->buffer, 1) != 1 || read(t->pipes[2], t->buffer, 1) != 1)
            fail("pipe");
    } else if (!strcmp(step, "lock"))
        hold(sleep_a_little, t);
    else if (!strcmp(step, "leader"))
        hold(write_and_flush, t);
    else if (!strcmp(step, "follower"))
        hold(do_nothing, t);
    else if (!strcmp(step, "group"))
        commit(t);
    else if (!strcmp(step, "aio"))
        read_by_aio(t);
    else if (!strcmp(step, "uring"))
        read_by_uring(t);
}

static void start_echo(struct thread *t)
{
    if (pipe(t->pipes) || pipe(t->pipes + 2))
        fail("pipe");
    if (fork())
        return;
    close(t->pipes[1]);
    for (char byte; read(t->pipes[0], &byte, 1) == 1;) {
        for (int naps = strcmp(t->step, "naps") ? 0 : 300; naps > 0; naps--)
            pause_for(20000);
        pause_for(1000000);
        if (write(t->pipes[3], &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static void *run(void *argument)
{
    struct thread *t = argument;
    char path[64];
    pthread_setname_np(pthread_self(), t->step);
    snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", (long)gettid());
    int account = open(path, O_RDONLY);
    while (!is_over) {
        take_step(t);
        t->steps += 1;
    }
    pause_for(PAUSE_NS);
    // Of all its life: on a busy machine a thread waits for a processor before its first step, and after its pause.
    read_account(account, &t->computed, &t->queued);
    t->lived = get_time() - t->born - PAUSE_NS;
    printf("%d %s %lu %lu %lu %lu\n", gettid(), t->step, t->steps, t->lived, t->computed, t->queued);
    fflush(stdout);
    return NULL;
}

static void prepare(struct thread *t, const char *path)
{
    t->file = open(path, O_RDWR);
    t->direct = open(path, O_RDWR | O_DIRECT);
    t->mapped = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, t->file, 0);
    if (t->file < 0 || t->direct < 0 || t->mapped == MAP_FAILED || posix_memalign((void **)&t->buffer, BLOCK, BLOCK))
        fail(path);
    madvise(t->mapped, FILE_BYTES, MADV_RANDOM);
    if (fdatasync(t->file) || posix_fadvise(t->file, 0, 0, POSIX_FADV_DONTNEED))  // pages come back one by one
        fail(path);
    memset(t->buffer, 1, BLOCK);
    if (!strcmp(t->step, "pipe") || !strcmp(t->step, "naps"))
        start_echo(t);
    if (!strcmp(t->step, "uring"))
        start_ring(t);
    if (!strcmp(t->step, "aio") && syscall(SYS_io_setup, 1, &t->context))
        fail("io_setup");
}

int main(int count, char **arguments)
{
    int all = 0;
    if (count < 4)
        return 2;
    for (int i = 3; i < count; i++) {
        char *colon = strchr(arguments[i], ':');
        int number = colon ? atoi(colon + 1) : 1;
        if (colon)
            *colon = 0;
        for (; number > 0 && all < MAX_THREADS; number--, all++) {
            threads[all].step = arguments[i];
            threads[all].number = all;
            prepare(&threads[all], arguments[2]);
        }
    }
    for (int i = 0; i < all; i++) {
        threads[i].born = get_time();
        if (pthread_create(&threads[i].handle, NULL, run, &threads[i]))
            fail("pthread_create");
    }
    struct timespec window = {atoi(arguments[1]), 0};
    nanosleep(&window, NULL);
    is_over = 1;
    for (int i = 0; i < all; i++)
        pthread_join(threads[i].handle, NULL);
    for (int i = 0; i < all; i++)
        if (threads[i].pipes[1])
            close(threads[i].pipes[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
