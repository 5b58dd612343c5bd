"""Looks at pages in headless Chromium, in light and dark, on screen and on paper: what would a reader call broken?

`faults.js` answers that.
"""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_SCRIPT = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")
#: A page of A4 within the margins that Chromium leaves, in CSS pixels.
PAPER = 717
#: Without the last ones it talks to hosts far away.
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,900", "--dump-dom"),
    *("--disable-dev-shm-usage", "--disable-quic", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
#: A window is at least 500 pixels wide, a frame in it may be narrower.
_AROUND = """<!DOCTYPE html>
<pre id="told"></pre>
<iframe src="page.html" width="{width}" height="800"></iframe>
<script>
addEventListener("message", (told) => {{ document.getElementById("told").textContent = JSON.stringify(told.data); }});
</script>
"""


@dataclass(frozen=True)
class Seen:
    """What was looked at, and what is wrong with it."""

    width: int
    dark: bool
    texts: int
    faults: list[str]


def look_at(page: str, folder: Path, width: int, *, dark: bool = False, paper: bool = False) -> Seen:
    """Show a page, with everything unfolded, and return what is wrong with it.

    On paper the styles for print apply, and none of those for the screen.
    """
    assert CHROMIUM is not None
    if paper:
        page = page.replace("@media print", "@media all").replace("@media screen", "@media not all")
    (folder / "page.html").write_text(page.replace("</body>", f"<script>{_SCRIPT}</script></body>"), encoding="utf-8")
    (folder / "around.html").write_text(_AROUND.format(width=width), encoding="utf-8")
    scheme = ["--force-dark-mode"] if dark else []
    command = [CHROMIUM, *_OPTIONS, *scheme, f"--user-data-dir={folder / 'profile'}", (folder / "around.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    told = re.search('<pre id="told">(.+?)</pre>', done.stdout, re.DOTALL)
    assert told, f"the page does not answer: {done.stderr[-2000:]}"
    return Seen(**json.loads(html.unescape(told[1])))
