"""`python -m discreet`: the command line, where its script is not on the path."""

from discreet.cli import run_alone

if __name__ == "__main__":
    run_alone()
