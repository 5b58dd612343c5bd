"""JDBC drivers that a spec names by their Maven coordinates, and where they lie once they were fetched."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from knobscope.specs.models.programs import fleet_directory

#: The command that fetches the drivers of all specs.
FETCH_DRIVERS = "knobscope drivers"

#: group:artifact:version
Driver = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*){2}$")]


def driver_directory(driver: str) -> Path:
    """Return the directory of a driver's jars; it is made when they are all there."""
    return fleet_directory() / "drivers" / driver.replace(":", "+")


def find_driver(driver: str) -> list[Path]:
    """Return the jars of a driver and of all that it needs, none when it was not fetched."""
    return sorted(driver_directory(driver).glob("*.jar"))
