"""Attacks on releases: each predicts its success, runs on raw and on protected releases, and shows the difference.

Every attack returns a `Finding`; its `compare(...)` runs it on a raw release, on ad-hoc defences and on private
releases at several epsilons. Attacks see what anybody sees; the data themselves only keep score.
"""

from discreet.attacks.attack import Attack
from discreet.attacks.ceiling import ceiling, compared, posterior
from discreet.report.finding import Comparison, Finding, Trial

__all__ = ["Attack", "Comparison", "Finding", "Trial", "ceiling", "compared", "posterior"]
