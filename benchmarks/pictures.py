"""Makes the pictures of the docs in headless Chromium, each from the page of a finished study.

Run as `python benchmarks/pictures.py` from the checkout, or as `make pictures`, before a release. A picture whose page
is not there stays as it is; the command that makes the page is printed, and the exit code is 1. The same command is
next to the picture in the docs (`tests/test_documents.py`).
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass(frozen=True)
class Picture:
    """The top of a page, or of one of its sections alone, in pixels of the window."""

    file: str
    page: str
    command: str  # what makes the page
    width: int
    height: int
    section: str = ""


PICTURES = (
    Picture("report.png", "results/quickstart/report.html", "make study", 1200, 1838),
    Picture(
        "compare.png",
        "results/compared.html",
        "knobscope compare results/pg-nvme-consumer results/pg-nvme-datacenter --out results/compared.html",
        1160,
        2262,
    ),
    Picture(
        "tuning.png",
        "results/postgresql-tune/report.html",
        "snakemake --cores 2 --config study=specs/studies/postgresql-tune.yaml",
        1000,
        900,
        section="tuning",
    ),
)


def show(picture: Picture) -> str:
    """Return the text of the page, of which all but the section is hidden where the picture names one."""
    text = (ROOT / picture.page).read_text(encoding="utf-8")
    hidden = f"body > :not(main), main > :not(#{picture.section}) {{ display: none }}"
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


def main() -> int:
    """Write all pictures whose pages are there."""
    if CHROMIUM is None:
        print("no Chromium; setup/system-packages.sh chromium installs one", file=sys.stderr)
        return 1
    absent = [picture for picture in PICTURES if not (ROOT / picture.page).is_file()]
    for picture in PICTURES:
        if picture in absent:
            print(f"docs/images/{picture.file} stays: no {picture.page}; made by: {picture.command}", file=sys.stderr)
        else:
            take(picture)
            print(f"docs/images/{picture.file}, from {picture.page}")
    return 1 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
