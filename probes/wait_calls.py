"""What a system call waits for when its thread sleeps in it, and which calls wake threads that sleep in others."""

from __future__ import annotations

from dataclasses import dataclass

from calls import CALLS, number_call

(_IN_KERNEL, _FOR_THREAD, _FOR_PEER, FOR_TIME, _FOR_REQUESTS, _ENDS_THREAD) = range(6)  # as the enum in the program
_TIMED = {"has_timeout": True}
_PLAIN = {"is_plain": True}


@dataclass(frozen=True)
class WaitCall:
    """A system call. `kind` _IN_KERNEL: the kernel's stack tells; `is_signal`: it wakes who waits for a peer."""

    numbers: dict[str, int]  # machine -> number; some machines lack a call
    kind: int
    is_signal: bool = False
    has_timeout: bool = False
    is_plain: bool = False  # a wait for I/O in it is for the request that ends it
    count_in: int = 0  # argument, from 1 on, with the number of descriptors that it waits for
    is_epoll: bool = False  # its first argument is an epoll descriptor


#: Name -> call; every other one is _IN_KERNEL.
WAIT_CALLS: dict[str, WaitCall] = {
    "futex": WaitCall(number_call(202, 98), _FOR_THREAD),
    "futex_waitv": WaitCall(number_call(449, 449), _FOR_THREAD),
    "futex_wake": WaitCall(number_call(454, 454), _FOR_THREAD),
    "futex_wait": WaitCall(number_call(455, 455), _FOR_THREAD),
    "semop": WaitCall(number_call(65, 193), _FOR_THREAD),
    "semtimedop": WaitCall(number_call(220, 192), _FOR_THREAD),
    "poll": WaitCall(number_call(7, None), _FOR_PEER, **_TIMED, count_in=2),
    "ppoll": WaitCall(number_call(271, 73), _FOR_PEER, **_TIMED, count_in=2),
    "select": WaitCall(number_call(23, None), _FOR_PEER, **_TIMED, count_in=1),
    "pselect6": WaitCall(number_call(270, 72), _FOR_PEER, **_TIMED, count_in=1),
    "epoll_wait": WaitCall(number_call(232, None), _FOR_PEER, **_TIMED, is_epoll=True),
    "epoll_pwait": WaitCall(number_call(281, 22), _FOR_PEER, **_TIMED, is_epoll=True),
    "epoll_pwait2": WaitCall(number_call(441, 441), _FOR_PEER, **_TIMED, is_epoll=True),
    "rt_sigtimedwait": WaitCall(number_call(128, 137), _FOR_PEER, **_TIMED),
    "rt_sigsuspend": WaitCall(number_call(130, 133), _FOR_PEER),
    "pause": WaitCall(number_call(34, None), _FOR_PEER),
    "wait4": WaitCall(number_call(61, 260), _FOR_PEER),
    "waitid": WaitCall(number_call(247, 95), _FOR_PEER),
    "recvfrom": WaitCall(number_call(45, 207), _FOR_PEER),
    "recvmsg": WaitCall(number_call(47, 212), _FOR_PEER),
    "recvmmsg": WaitCall(number_call(299, 243), _FOR_PEER),
    "accept": WaitCall(number_call(43, 202), _FOR_PEER),
    "accept4": WaitCall(number_call(288, 242), _FOR_PEER),
    "connect": WaitCall(number_call(42, 203), _FOR_PEER),
    "sendto": WaitCall(number_call(44, 206), _FOR_PEER, is_signal=True),
    "sendmsg": WaitCall(number_call(46, 211), _FOR_PEER, is_signal=True),
    "write": WaitCall(CALLS["write"].numbers, _IN_KERNEL, is_signal=True, **_PLAIN),
    "writev": WaitCall(CALLS["writev"].numbers, _IN_KERNEL, is_signal=True, **_PLAIN),
    "pwrite64": WaitCall(CALLS["pwrite64"].numbers, _IN_KERNEL, **_PLAIN),
    "pwritev": WaitCall(CALLS["pwritev"].numbers, _IN_KERNEL, **_PLAIN),
    "pwritev2": WaitCall(CALLS["pwritev2"].numbers, _IN_KERNEL, **_PLAIN),
    "read": WaitCall(CALLS["read"].numbers, _IN_KERNEL, **_PLAIN),
    "pread64": WaitCall(CALLS["pread64"].numbers, _IN_KERNEL, **_PLAIN),
    "readv": WaitCall(CALLS["readv"].numbers, _IN_KERNEL, **_PLAIN),
    "preadv": WaitCall(CALLS["preadv"].numbers, _IN_KERNEL, **_PLAIN),
    "preadv2": WaitCall(CALLS["preadv2"].numbers, _IN_KERNEL, **_PLAIN),
    "fsync": WaitCall(CALLS["fsync"].numbers, _IN_KERNEL, **_PLAIN),
    "fdatasync": WaitCall(CALLS["fdatasync"].numbers, _IN_KERNEL, **_PLAIN),
    "sync_file_range": WaitCall(CALLS["sync_file_range"].numbers, _IN_KERNEL, **_PLAIN),
    "syncfs": WaitCall(CALLS["syncfs"].numbers, _IN_KERNEL, **_PLAIN),
    "sync": WaitCall(CALLS["sync"].numbers, _IN_KERNEL, **_PLAIN),
    "msync": WaitCall(CALLS["msync"].numbers, _IN_KERNEL, **_PLAIN),
    "kill": WaitCall(number_call(62, 129), _IN_KERNEL, is_signal=True),
    "tkill": WaitCall(number_call(200, 130), _IN_KERNEL, is_signal=True),
    "tgkill": WaitCall(number_call(234, 131), _IN_KERNEL, is_signal=True),
    "rt_sigqueueinfo": WaitCall(number_call(129, 138), _IN_KERNEL, is_signal=True),
    "rt_tgsigqueueinfo": WaitCall(number_call(297, 240), _IN_KERNEL, is_signal=True),
    "pidfd_send_signal": WaitCall(number_call(424, 424), _IN_KERNEL, is_signal=True),
    "nanosleep": WaitCall(number_call(35, 101), FOR_TIME),
    "clock_nanosleep": WaitCall(number_call(230, 115), FOR_TIME),
    "io_getevents": WaitCall(CALLS["io_getevents"].numbers, _FOR_REQUESTS),
    "io_pgetevents": WaitCall(CALLS["io_pgetevents"].numbers, _FOR_REQUESTS),
    "io_uring_enter": WaitCall(CALLS["io_uring_enter"].numbers, _FOR_REQUESTS),
    "exit": WaitCall(number_call(60, 93), _ENDS_THREAD),
    "exit_group": WaitCall(number_call(231, 94), _ENDS_THREAD),
}
