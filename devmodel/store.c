#include "store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int store_read(int file, void *bytes, size_t length, off_t offset) {
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(file, (char *)bytes + done, length - done, offset + (off_t)done);
        if (got < 0 && errno != EINTR)
            return errno;
        if (got == 0) { /* beyond the end */
            memset((char *)bytes + done, 0, length - done);
            return 0;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int store_write(int file, const void *bytes, size_t length, off_t offset) {
    for (size_t done = 0; done < length;) {
        ssize_t put = pwrite(file, (const char *)bytes + done, length - done, offset + (off_t)done);
        if (put < 0 && errno != EINTR)
            return errno;
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}
