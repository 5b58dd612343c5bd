"""Requests of a trace by the operation that their thread was at."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from knobscope.watch.event_operations import OperationNamer


def records(*submitted: tuple[int, int, int]) -> "NDArray[Any]":
    """Return records of (thread, issue, wait before it)."""
    return np.array(list(submitted), [("thread", "u4"), ("issued_at", "u8"), ("wait", "u8")])


def name(operations: list[tuple[int, str, int, int]], *submitted: tuple[int, int, int]) -> list[str | None]:
    named = OperationNamer(operations).name(records(*submitted))
    return [value if isinstance(value, str) else None for value in named]


def test_a_request_belongs_to_what_its_thread_was_at_when_it_submitted_it() -> None:
    payments = [(7, "PAYMENT", 100, 200), (7, "DELIVERY", 250, 400), (8, "PAYMENT", 150, 300)]
    assert name(payments, (7, 100, 0), (7, 200, 0), (7, 260, 0), (8, 260, 0)) == [
        "PAYMENT", "PAYMENT", "DELIVERY", "PAYMENT",
    ]  # fmt: skip
    assert name(payments, (7, 255, 60)) == ["PAYMENT"]  # issued in the next one


def test_requests_between_operations_and_of_other_threads_belong_to_none() -> None:
    payments = [(7, "PAYMENT", 300, 400), (7, "PAYMENT", 100, 200)]
    assert name(payments, (7, 99, 0), (7, 201, 0), (7, 401, 0), (9, 150, 0), (0, 150, 0)) == [None] * 5


def test_an_operation_without_an_end_lasts() -> None:
    assert name([(7, "PAYMENT", 100, (1 << 63) - 1)], (7, 10**18, 0)) == ["PAYMENT"]


def test_without_operations_nothing_is_named() -> None:
    assert name([], (7, 100, 0)) == [None]
