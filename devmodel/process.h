/* What the programs of emulated devices have in common as processes. */
#ifndef DEVMODEL_PROCESS_H
#define DEVMODEL_PROCESS_H

/* Print both to standard error, and exit with code 2. */
void fail(const char *what, const char *why);

/* Ask the kernel to end this process (SIGTERM) when its parent ends; exits where it has already. */
void end_with_parent(void);

/* Sleep no longer than asked for, and never wait for memory that comes free only by writing to this device. */
void serve_promptly(void);

/* Keep idle processors awake, as long as this process lives; without the privilege they sleep. */
void keep_processors_awake(void);

#endif
