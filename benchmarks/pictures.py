"""Makes the pictures of the docs in headless Chromium, each from the page of finished studies.

Run as `python benchmarks/pictures.py` from the checkout, or as `make pictures`, before a release. It runs the studies
first; those that are finished cost nothing, those on modelled devices need root. The commands are next to the pictures
in the docs (`tests/test_documents.py`).
"""

import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def run_study(study: str) -> str:
    """Return the command of a study."""
    return f".venv/bin/snakemake --cores 2 --config study=specs/studies/{study}.yaml"


@dataclass(frozen=True)
class Picture:
    """The top of a page, or of one of its sections alone (from a heading on), in pixels of the window."""

    file: str
    page: str
    commands: tuple[str, ...]  # what make the page, in this order
    width: int
    height: int
    section: str = ""
    heading: str = ""


PICTURES = (
    Picture("report.png", "results/quickstart-drives/report.html", ("make study",), 1200, 1560),
    Picture(
        "budget.png",
        "results/quickstart-drives/report.html",
        ("make study",),
        1000,
        738,
        section="effects",
        heading="budgets",
    ),
    Picture(
        "compare.png",
        "results/compared.html",
        (
            run_study("sqlite-consumer"),
            run_study("sqlite-datacenter"),
            ".venv/bin/knobscope compare sqlite-consumer sqlite-datacenter --out results/compared.html",
        ),
        1160,
        2262,
    ),
    Picture("tuning.png", "results/sqlite-tune/report.html", (run_study("sqlite-tune"),), 1000, 840, section="tuning"),
)


def show(picture: Picture) -> str:
    """Return the text of the page, of which all but the section is hidden where the picture names one."""
    text = (ROOT / picture.page).read_text(encoding="utf-8")
    hidden = f"body > :not(main), main > :not(#{picture.section}) {{ display: none }}"
    if picture.heading:
        hidden += f"#{picture.section} > :not(#{picture.heading}, #{picture.heading} ~ *) {{ display: none }}"
    return text.replace("</head>", f"<style>{hidden}</style></head>") if picture.section else text


def take(picture: Picture) -> None:
    """Write the picture."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(show(picture), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        options += [f"--user-data-dir={folder}/profile", f"--window-size={picture.width},{picture.height}"]
        command = [CHROMIUM, *options, f"--screenshot={FOLDER / picture.file}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)


def _succeeds(line: str) -> bool:
    return subprocess.run(shlex.split(line), cwd=ROOT, check=False).returncode == 0


def main() -> int:
    """Make the pages and write the pictures; a picture whose page could not be made stays as it is."""
    if CHROMIUM is None:
        print("no Chromium; setup/system-packages.sh chromium installs one", file=sys.stderr)
        return 1
    failed = 0
    for picture in PICTURES:
        broken = next((line for line in picture.commands if not _succeeds(line)), "")
        if broken:
            failed += 1
            print(f"docs/images/{picture.file} stays: failed: {broken}", file=sys.stderr)
        else:
            take(picture)
            print(f"docs/images/{picture.file}, from {picture.page}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
