"""The story that `make demo` and `discreet demo` tell, its report, and the lab of attacks."""

from discreet.demo.lab import Exhibit, exhibits, write_lab
from discreet.demo.robustness_page import run_contamination, write_robust
from discreet.demo.story import FOLDER, Story, tell
from discreet.demo.story_page import show, write_report

__all__ = ["FOLDER", "Exhibit", "Story"]
__all__ += ["exhibits", "run_contamination", "show", "tell", "write_lab", "write_report", "write_robust"]
