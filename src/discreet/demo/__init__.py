"""The story that `make demo` and `discreet demo` tell, and its report."""

from discreet.demo.pages import write_report
from discreet.demo.show import show
from discreet.demo.story import FOLDER, Story, tell

__all__ = ["FOLDER", "Story", "show", "tell", "write_report"]
