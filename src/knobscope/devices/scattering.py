"""Where ext4 puts new files: directories that come and go spoil their block group for each other."""

import array
import errno
import fcntl
import os
from pathlib import Path

#: FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_TOPDIR_FL of linux/fs.h (64 bit).
_GET_FLAGS, _SET_FLAGS, _TOP_DIRECTORY = 0x80086601, 0x40086602, 0x00020000
_NO_SUCH_FLAG = {errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EACCES}


def make_scattering_directory(path: Path) -> None:
    """Make a directory whose directories ext4 spreads over the device, by their names; elsewhere it is a plain one.

    ext4 does not use an inode again for some seconds after its file was removed, and looks at each such inode anew for
    every file that it makes in the block group. A thousand files that are removed and made again every few seconds then
    take ten times as long to make.
    """
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = array.array("l", [0])
        fcntl.ioctl(descriptor, _GET_FLAGS, flags)
        if not flags[0] & _TOP_DIRECTORY:
            flags[0] |= _TOP_DIRECTORY
            fcntl.ioctl(descriptor, _SET_FLAGS, flags)
    except OSError as error:
        if error.errno not in _NO_SUCH_FLAG:
            raise
    finally:
        os.close(descriptor)
