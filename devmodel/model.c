#include "model.h"

#include "disk.h"
#include "flash.h"
#include "heap.h"
#include "memory.h"

#include <stdlib.h>

struct model {
    struct heap answers;
    struct flash *flash; /* one of the two */
    struct disk *disk;
};

struct model *model_new(const struct parameters *p, uint64_t size) {
    struct model *m = allocate(1, sizeof *m);
    if (p->kind == DISK)
        m->disk = disk_new(p, size);
    else
        m->flash = flash_new(p);
    return m;
}

void model_free(struct model *m) {
    if (m->disk)
        disk_free(m->disk);
    else
        flash_free(m->flash);
    heap_free(&m->answers);
    free(m);
}

void model_submit(struct model *m, uint64_t now, enum operation op, uint64_t offset, uint32_t length, void *owner) {
    if (m->disk)
        disk_submit(m->disk, &m->answers, now, op, offset, length, owner);
    else
        heap_push(&m->answers, flash_submit(m->flash, now, op, offset, length), owner);
}

uint64_t model_next(const struct model *m) {
    uint64_t answer = m->answers.count ? m->answers.items[0].time : NEVER;
    uint64_t event = m->disk ? disk_next(m->disk) : NEVER;
    return answer < event ? answer : event;
}

bool model_take(struct model *m, uint64_t now, void **owner, uint64_t *time) {
    if (m->disk)
        disk_advance(m->disk, &m->answers, now);
    if (!m->answers.count || m->answers.items[0].time > now)
        return false;
    struct due answered = heap_pop(&m->answers);
    *owner = answered.owner;
    *time = answered.time;
    return true;
}
