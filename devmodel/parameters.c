#include "parameters.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHANNELS 65536

static const struct {
    const char *name;
    size_t offset;
} NUMBERS[] = {
#define NUMBER(name) {#name, offsetof(struct parameters, name)}
    NUMBER(read),
    NUMBER(write),
    NUMBER(bus),
    NUMBER(cache),
    NUMBER(flush),
    NUMBER(jitter),
    NUMBER(channels),
    NUMBER(sequential_read),
    NUMBER(read_while_draining),
    NUMBER(drain),
    NUMBER(random_write),
    NUMBER(sequential_write),
    NUMBER(unit),
    NUMBER(fill),
    NUMBER(merge),
    NUMBER(stall),
    NUMBER(stall_every),
    NUMBER(seek),
    NUMBER(track_seek),
    NUMBER(rotation),
    NUMBER(media),
    NUMBER(track),
    NUMBER(queue),
    NUMBER(write_bus),
#undef NUMBER
};

void parameters_init(struct parameters *p) {
    memset(p, 0, sizeof *p);
    p->kind = FLASH;
    p->channels = 1;
    p->queue = 1;
    p->seed = 1;
    p->sequential_read = -1; /* not given: as any read */
}

static const char *set_number(double *number, const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(value) || value < 0)
        return "expected a number that is not negative";
    *number = value;
    return NULL;
}

static const char *set_word(struct parameters *p, const char *name, const char *value) {
    if (!strcmp(name, "kind")) {
        if (strcmp(value, "flash") && strcmp(value, "disk"))
            return "expected flash or disk";
        p->kind = strcmp(value, "disk") ? FLASH : DISK;
        return NULL;
    }
    if (!strcmp(name, "protected")) {
        if (strcmp(value, "0") && strcmp(value, "1"))
            return "expected 0 or 1";
        p->protected = *value == '1';
        return NULL;
    }
    if (!strcmp(name, "seed")) {
        double seed;
        const char *wrong = set_number(&seed, value);
        if (!wrong)
            p->seed = (uint64_t)seed;
        return wrong;
    }
    return "unknown parameter";
}

const char *parameters_set(struct parameters *p, const char *assignment) {
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return "expected key=value";
    size_t length = (size_t)(equals - assignment);
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (strlen(NUMBERS[i].name) == length && !strncmp(NUMBERS[i].name, assignment, length))
            return set_number((double *)((char *)p + NUMBERS[i].offset), equals + 1);
    char name[32];
    if (length >= sizeof name)
        return "unknown parameter";
    memcpy(name, assignment, length);
    name[length] = 0;
    return set_word(p, name, equals + 1);
}

const char *parameters_check(const struct parameters *p) {
    if (p->kind == DISK && (p->rotation <= 0 || p->media <= 0))
        return "a disk needs rotation and media";
    if (p->kind == DISK && p->track_seek > p->seek)
        return "track_seek is longer than the mean seek";
    if (p->channels < 1 || p->channels > MAX_CHANNELS)
        return "channels is not between 1 and 65536";
    if (p->queue < 1)
        return "queue is less than 1";
    if (p->unit != 0 && (p->unit < 512 || fmod(p->unit, 512) != 0))
        return "unit is no multiple of 512";
    if (p->stall > 0 && p->stall_every <= 0)
        return "stall needs stall_every";
    return NULL;
}
