#include "units.h"

#include "memory.h"

#include <stdlib.h>

/* A unit is looked at in 64 pieces at most: one bit for each that was written. */
#define PIECES 64

struct unit {
    uint64_t number, written, age; /* in use when `age` is that of the table: so a flush need not clear it */
};

/* Open addressing with linear probing, at most half full. */
struct units {
    uint64_t size, piece, whole, age;
    size_t limit, count, mask;
    struct unit *table;
};

struct units *units_new(uint64_t size, size_t limit) {
    struct units *u = allocate(1, sizeof *u);
    u->size = size;
    u->piece = ((size + PIECES - 1) / PIECES + 511) / 512 * 512;
    uint64_t pieces = (size + u->piece - 1) / u->piece;
    u->whole = pieces == 64 ? UINT64_MAX : (UINT64_C(1) << pieces) - 1;
    u->limit = limit ? limit : 1;
    u->age = 1;
    size_t slots = 64;
    while (slots < 2 * u->limit)
        slots *= 2;
    u->mask = slots - 1;
    u->table = allocate(slots, sizeof *u->table);
    return u;
}

void units_free(struct units *u) {
    free(u->table);
    free(u);
}

static size_t home(const struct units *u, uint64_t number) {
    return (size_t)((number * 0x9e3779b97f4a7c15) >> 32) & u->mask;
}

/* Return the slot of a unit, or the free one where it would be. */
static size_t find(const struct units *u, uint64_t number) {
    size_t i = home(u, number);
    while (u->table[i].age == u->age && u->table[i].number != number)
        i = (i + 1) & u->mask;
    return i;
}

/* Free a slot; units behind it that only stood there because it was taken move up. */
static void erase(struct units *u, size_t hole) {
    for (size_t i = (hole + 1) & u->mask; u->table[i].age == u->age; i = (i + 1) & u->mask) {
        size_t wanted = home(u, u->table[i].number);
        if (((i - wanted) & u->mask) >= ((i - hole) & u->mask)) {
            u->table[hole] = u->table[i];
            hole = i;
        }
    }
    u->table[hole].age = 0;
    u->count--;
}

static void write_unit(struct units *u, uint64_t number, uint64_t written) {
    size_t i = find(u, number);
    struct unit *unit = &u->table[i];
    if (unit->age != u->age) {
        if (written == u->whole || u->count == u->limit)
            return;
        *unit = (struct unit){number, 0, u->age};
        u->count++;
    }
    unit->written |= written;
    if (unit->written == u->whole)
        erase(u, i);
}

void units_write(struct units *u, uint64_t offset, uint32_t length) {
    uint64_t end = offset + length;
    for (uint64_t number = offset / u->size; number * u->size < end; number++) {
        uint64_t start = number * u->size;
        uint64_t from = offset > start ? offset - start : 0, to = end - start < u->size ? end - start : u->size;
        uint64_t first = from / u->piece, last = (to + u->piece - 1) / u->piece;
        uint64_t written = (last - first == 64 ? UINT64_MAX : (UINT64_C(1) << (last - first)) - 1) << first;
        write_unit(u, number, written);
    }
}

size_t units_flush(struct units *u) {
    size_t partly = u->count;
    u->count = 0;
    u->age++;
    return partly;
}
