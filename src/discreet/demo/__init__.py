"""The story that `make demo` and `discreet demo` tell, its report, and the lab of attacks."""

from discreet.demo.lab import Exhibit, exhibits
from discreet.demo.lab_page import write_lab
from discreet.demo.pages import write_report
from discreet.demo.robust import contaminated, write_robust
from discreet.demo.show import show
from discreet.demo.story import FOLDER, Story, tell

__all__ = [
    "FOLDER",
    "Exhibit",
    "Story",
    "contaminated",
    "exhibits",
    "show",
    "tell",
    "write_lab",
    "write_report",
    "write_robust",
]
