"""docs/reference/security.md says who can do what, and which test holds it: each of those tests exists."""

import re

from canaries import ROOT

TABLE = (ROOT / "docs/reference/security.md").read_text(encoding="utf-8").partition("## Who can do what")[2]
ROWS = [line for line in TABLE.splitlines() if line.startswith("|")][2:]


def test_each_line_names_tests_that_exist() -> None:
    (short,) = re.findall(r"`H` is `([^`]+)`", TABLE)
    assert len(ROWS) > 25
    for row in ROWS:
        named = re.findall(r"`((?:tests/|H::)[^`]+)`", row.split("|")[-2])
        assert named, row
        for name in named:
            file, _, test = name.replace("H::", f"{short}::").partition("::")
            assert (ROOT / file).is_file(), name
            assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), name
