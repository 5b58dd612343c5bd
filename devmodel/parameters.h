/* What a device model is told: numbers in nanoseconds, bytes, and bytes per second. */
#ifndef DEVMODEL_PARAMETERS_H
#define DEVMODEL_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

enum kind { FLASH, DISK };

/*
 * A time of 0 costs nothing, a rate of 0 has no limit, a size of 0 means that there is no such thing. Flash and disk
 * have parameters of their own; the others are ignored.
 */
struct parameters {
    enum kind kind;
    /* both */
    double read;    /* ns: a read of any size, until its bytes go over the bus */
    double write;   /* ns: the same for a write that the cache takes */
    double bus;     /* bytes/s between host and device */
    double cache;   /* bytes of written data that the device has answered and not yet stored */
    double flush;   /* ns that a flush takes beyond storing what is in the cache */
    bool protected; /* power-loss protection: a flush need not store anything */
    double jitter;  /* standard deviation of the logarithm of each latency */
    uint64_t seed;  /* of the jitter */
    /* flash */
    double write_bus;           /* bytes/s to the device, when writes do not share the bus with reads */
    double channels;            /* reads at a time (and writes, without a cache) */
    double sequential_read;     /* ns: a read that begins where another one ended */
    double read_while_draining; /* ns: a read while the cache is being stored, when that is longer */
    double drain;               /* bytes/s at which the cache is stored */
    double random_write;        /* ns by which a random write delays storing, beyond its bytes */
    double sequential_write;    /* ns by which a sequential write does */
    double unit;                /* bytes of the write unit */
    double fill;                /* ns to fill a unit that was written in part */
    double merge;               /* bytes that a layer above gathers: until then a flush takes a write */
    double stall;               /* ns of garbage collection, in which nothing is answered */
    double stall_every;         /* bytes stored between two stalls */
    /* disk */
    double seek;       /* ns: the mean over random pairs of positions */
    double track_seek; /* ns: to the next track */
    double rotation;   /* ns: one turn */
    double media;      /* bytes/s to and from the platters */
    double track;      /* bytes of a track; 0: what passes under the head in one turn */
    double queue;      /* requests among which the disk chooses the nearest */
};

void parameters_init(struct parameters *p);

/* Set one parameter from "key=value"; returns NULL, or what is wrong with it. */
const char *parameters_set(struct parameters *p, const char *assignment);

/* Returns NULL, or what is wrong with the parameters taken together. */
const char *parameters_check(const struct parameters *p);

#endif
