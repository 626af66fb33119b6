"""`python -m discreet.demo`."""

from rich.console import Console

from discreet.demo.story import tell

if __name__ == "__main__":
    tell(Console())
