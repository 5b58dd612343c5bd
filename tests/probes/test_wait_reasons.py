"""Why a thread slept, by stacks as kernels have shown them."""

import pytest
from wait_reasons import name_reason

_FAULT = ("handle_mm_fault", "exc_page_fault", "asm_exc_page_fault")
_READ = 1  # of a request: its operation + 1


@pytest.mark.parametrize(
    ("stack", "reason"),
    [
        (("folio_wait_bit_common", "__folio_lock_or_retry", "do_swap_page", "__handle_mm_fault", *_FAULT), "swap"),
        (("folio_wait_bit_common", "filemap_fault", "__do_fault", "__handle_mm_fault", *_FAULT), "fault"),
        (("rwsem_down_read_slowpath", "down_read", "do_user_addr_fault", *_FAULT), "lock"),
    ],
)
def test_a_page_fault_waits_for_swap_a_file_or_a_lock(stack: tuple[str, ...], reason: str) -> None:
    assert name_reason(0, None, stack, is_io=True, request=_READ) == reason
