"""Which ends of a process tell of somebody else."""

import pytest

from knobscope.processes import find_sent_signal, find_system_error


@pytest.mark.parametrize(
    ("code", "name"),
    [(137, "SIGKILL"), (-9, "SIGKILL"), (143, "SIGTERM"), (130, "SIGINT"), (0, None), (1, None), (None, None)],
)
def test_signals_that_somebody_sends(code: int | None, name: str | None) -> None:
    assert find_sent_signal(code) == name


@pytest.mark.parametrize("code", [139, 134, -11])
def test_a_program_that_crashes_ended_itself(code: int) -> None:
    assert find_sent_signal(code) is None


def test_errors_of_the_system_are_found_in_the_words_of_dbmss() -> None:
    assert find_system_error('PANIC: could not write to file "x": No space left on device') == "no space left on device"
    assert find_system_error("[SQLITE_FULL] Insertion failed (database or disk is full)") == "database or disk is full"
    assert find_system_error("Could not create server TCP listening socket: bind: Address already in use") is not None
    assert find_system_error("FATAL: invalid value for parameter") is None
