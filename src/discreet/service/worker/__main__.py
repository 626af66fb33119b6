"""A worker as a fresh interpreter: python -m discreet.service.worker FD."""

import sys

from discreet.service.worker.life import live

if __name__ == "__main__":
    live(int(sys.argv[1]))
