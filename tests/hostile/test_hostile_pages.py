"""Pages with names of strangers: a browser runs none of them and fetches nothing."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from browser import CHROMIUM, look_at
from canaries import STUDY, Canaries, Forge, Open

pytestmark = [pytest.mark.real, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]


def evil(address: str) -> str:
    return (
        f'</title></style></script></svg><script>fetch("{address}")</script><img src="{address}" '
        f'onerror="fetch(&quot;{address}&quot;)"><style>@import url({address});</style>]]>" onload="fetch(1)'
    )


def test_a_page_that_obeys_names_is_found(canaries: Canaries, tmp_path: Path) -> None:
    """The canary answers nobody, so that this browser waits for it and has to be ended."""
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><html><body><p>{evil(canaries.address)}</p></body></html>")
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-background-networking"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    with (
        tempfile.TemporaryDirectory(
            prefix="knobscope-test-", ignore_cleanup_errors=True
        ) as own,  # killed, it leaves a socket
        subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": own}
        ) as browser,
    ):
        try:
            canaries.port.settimeout(120)
            canaries.port.accept()[0].close()
        finally:
            browser.kill()


def test_a_page_runs_and_fetches_nothing(
    forge: Forge, open_watched: Open, canaries: Canaries, run_folder: Path, honest: Path, tmp_path: Path
) -> None:
    text = evil(canaries.address)
    database = forge(
        *(f"UPDATE findings SET {name} = '{text}'" for name in ("sentence", "knob", "value", "cause", "confirmation")),
        *(f"UPDATE runs SET {name} = '{text}'" for name in ("machine", "dbms_version")),
        *(f"UPDATE effects SET {name} = '{text}' WHERE metric = 'throughput_ops'" for name in ("knob", "value")),
        f"UPDATE importance SET knob = '{text}'",
    )
    pages = [run_folder / "report.html", run_folder / "compared.html"]
    answers = open_watched(
        ["report", "--study", STUDY, "--database", database, "--out", pages[0]],
        ["compare", database, honest, "--out", pages[1]],
    )
    assert [answer.code for answer in answers] == [0, 0], answers
    for page in pages:
        content = page.read_text(encoding="utf-8")
        assert "&lt;script&gt;fetch(" in content
        look_at(content, tmp_path, 800, dark=False)
        canaries.check()
