"""JSON from outside the process is looked at once, before it has a type."""

from pathlib import Path

import pytest

from knobscope.durable_files import DamagedFileError, write_sealed
from knobscope.errors import UserError
from knobscope.tables import RunRecord, check_document, read_document
from knobscope.watch import Profile


def test_a_run_may_lack_tables_and_have_keys_of_other_versions(tmp_path: Path) -> None:
    content = {"run": {"run_id": "r"}, "intervals": [{"ops": 1}], "of_another_version": 1}
    write_sealed(tmp_path / "r.json", content)
    assert read_document(tmp_path / "r.json", RunRecord) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"intervals": []}, "found no 'run'"),
        ({"run": {}, "intervals": {"ops": 1}}, "'intervals' is no list of rows"),
        ({"run": {}, "intervals": [1]}, "'intervals' is no list of rows"),
    ],
)
def test_a_stored_file_that_is_no_run_is_damaged(tmp_path: Path, content: dict[str, object], message: str) -> None:
    write_sealed(tmp_path / "r.json", content)
    with pytest.raises(DamagedFileError, match=message):
        read_document(tmp_path / "r.json", RunRecord)


def test_an_answer_that_is_no_profile_is_refused() -> None:
    with pytest.raises(UserError, match="found no 'duration_s'; expected an answer of the monitor"):
        check_document(Profile, {"monitor": "bpf"}, "an answer of the monitor")
    with pytest.raises(UserError, match="found no keys with values; expected a profile"):
        check_document(Profile, [], "a profile")
