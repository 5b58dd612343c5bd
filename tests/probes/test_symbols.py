"""Addresses of kernel functions, as /proc/kallsyms tells them."""

from pathlib import Path

import kernel
import pytest
import wait_reasons


def test_functions_of_the_kernel_and_of_its_modules_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "kallsyms"
    table.write_text(
        "ffffffff81000010 T bio_chain_endio\n"
        "ffffffff81000020 t my_xlog_bio_end_io\n"
        "ffffffff81000030 t xlog_bio_end_io.cold\n"
        "ffffffffc0000040 t xlog_bio_end_io\t[xfs]\n"
        "0000000000000000 t xfs_buf_bio_end_io\t[xfs]\n"
    )
    monkeypatch.setattr(kernel, "_KALLSYMS", table)
    names = ("bio_chain_endio", "xlog_bio_end_io", "xfs_buf_bio_end_io", "missing")
    assert kernel._find_symbols(names) == {
        "bio_chain_endio": 0xFFFFFFFF81000010,
        "xlog_bio_end_io": 0xFFFFFFFFC0000040,
    }, "an address that the kernel hides is none"


def test_an_address_has_the_name_of_the_function_that_begins_last_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "kallsyms"
    table.write_text(
        "ffffffff81000010 t alias_a\n"
        "ffffffff81000010 T alias_b.constprop.0\n"
        "ffffffff81000020 d data\n"
        "ffffffffc0000040 t of_module\t[xfs]\n"
        "ffffffff81000030 T io_schedule\n"  # not in order: as modules and BPF programs are not
    )
    monkeypatch.setattr(wait_reasons, "_KALLSYMS", table)
    symbols = wait_reasons.Symbols()
    stack = (0xFFFFFFFF81000034, 0xFFFFFFFF81000028, 0xFFFFFFFFC0000040, 0x10)
    assert symbols.name_stack(stack) == ("alias_b", "of_module", "?")
