"""What a system call waits for when its thread sleeps in it, and which calls wake threads that sleep in others."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WAIT_CALLS", "WaitCall"]

(_IN_KERNEL, _FOR_THREAD, _FOR_PEER, _FOR_TIME, _FOR_REQUESTS, _ENDS_THREAD) = range(6)  # as the enum in the program
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


def _on(x86_64: int, aarch64: int | None) -> dict[str, int]:
    return {"x86_64": x86_64} | ({} if aarch64 is None else {"aarch64": aarch64})


#: Name -> call; every other one is _IN_KERNEL.
WAIT_CALLS: dict[str, WaitCall] = {
    "futex": WaitCall(_on(202, 98), _FOR_THREAD),
    "futex_waitv": WaitCall(_on(449, 449), _FOR_THREAD),
    "futex_wake": WaitCall(_on(454, 454), _FOR_THREAD),
    "futex_wait": WaitCall(_on(455, 455), _FOR_THREAD),
    "semop": WaitCall(_on(65, 193), _FOR_THREAD),
    "semtimedop": WaitCall(_on(220, 192), _FOR_THREAD),
    "poll": WaitCall(_on(7, None), _FOR_PEER, **_TIMED),
    "ppoll": WaitCall(_on(271, 73), _FOR_PEER, **_TIMED),
    "select": WaitCall(_on(23, None), _FOR_PEER, **_TIMED),
    "pselect6": WaitCall(_on(270, 72), _FOR_PEER, **_TIMED),
    "epoll_wait": WaitCall(_on(232, None), _FOR_PEER, **_TIMED),
    "epoll_pwait": WaitCall(_on(281, 22), _FOR_PEER, **_TIMED),
    "epoll_pwait2": WaitCall(_on(441, 441), _FOR_PEER, **_TIMED),
    "rt_sigtimedwait": WaitCall(_on(128, 137), _FOR_PEER, **_TIMED),
    "rt_sigsuspend": WaitCall(_on(130, 133), _FOR_PEER),
    "pause": WaitCall(_on(34, None), _FOR_PEER),
    "wait4": WaitCall(_on(61, 260), _FOR_PEER),
    "waitid": WaitCall(_on(247, 95), _FOR_PEER),
    "recvfrom": WaitCall(_on(45, 207), _FOR_PEER),
    "recvmsg": WaitCall(_on(47, 212), _FOR_PEER),
    "recvmmsg": WaitCall(_on(299, 243), _FOR_PEER),
    "accept": WaitCall(_on(43, 202), _FOR_PEER),
    "accept4": WaitCall(_on(288, 242), _FOR_PEER),
    "connect": WaitCall(_on(42, 203), _FOR_PEER),
    "sendto": WaitCall(_on(44, 206), _FOR_PEER, is_signal=True),
    "sendmsg": WaitCall(_on(46, 211), _FOR_PEER, is_signal=True),
    "write": WaitCall(_on(1, 64), _IN_KERNEL, is_signal=True, **_PLAIN),
    "writev": WaitCall(_on(20, 66), _IN_KERNEL, is_signal=True, **_PLAIN),
    "pwrite64": WaitCall(_on(18, 68), _IN_KERNEL, **_PLAIN),
    "pwritev": WaitCall(_on(296, 70), _IN_KERNEL, **_PLAIN),
    "pwritev2": WaitCall(_on(328, 287), _IN_KERNEL, **_PLAIN),
    "read": WaitCall(_on(0, 63), _IN_KERNEL, **_PLAIN),
    "pread64": WaitCall(_on(17, 67), _IN_KERNEL, **_PLAIN),
    "readv": WaitCall(_on(19, 65), _IN_KERNEL, **_PLAIN),
    "preadv": WaitCall(_on(295, 69), _IN_KERNEL, **_PLAIN),
    "preadv2": WaitCall(_on(327, 286), _IN_KERNEL, **_PLAIN),
    "kill": WaitCall(_on(62, 129), _IN_KERNEL, is_signal=True),
    "tkill": WaitCall(_on(200, 130), _IN_KERNEL, is_signal=True),
    "tgkill": WaitCall(_on(234, 131), _IN_KERNEL, is_signal=True),
    "rt_sigqueueinfo": WaitCall(_on(129, 138), _IN_KERNEL, is_signal=True),
    "rt_tgsigqueueinfo": WaitCall(_on(297, 240), _IN_KERNEL, is_signal=True),
    "pidfd_send_signal": WaitCall(_on(424, 424), _IN_KERNEL, is_signal=True),
    "nanosleep": WaitCall(_on(35, 101), _FOR_TIME),
    "clock_nanosleep": WaitCall(_on(230, 115), _FOR_TIME),
    "io_getevents": WaitCall(_on(208, 4), _FOR_REQUESTS),
    "io_pgetevents": WaitCall(_on(333, 292), _FOR_REQUESTS),
    "io_uring_enter": WaitCall(_on(426, 426), _FOR_REQUESTS),
    "exit": WaitCall(_on(60, 93), _ENDS_THREAD),
    "exit_group": WaitCall(_on(231, 94), _ENDS_THREAD),
}
