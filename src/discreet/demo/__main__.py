"""`python -m discreet.demo`."""

from pathlib import Path

from rich.console import Console

from discreet.demo.show import show
from discreet.demo.story import FOLDER

if __name__ == "__main__":
    show(Console(), Path(FOLDER))
