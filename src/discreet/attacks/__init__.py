"""Attacks on releases: each predicts its success, runs on raw and on protected releases, and shows the difference.

Every attack returns a `Finding`; its `compare(...)` runs it on a raw release, on ad-hoc defences and on private
releases at several epsilons. An attack sees only what is released; the data themselves only keep score. The classes of
findings are in the modules of their attacks.
"""

from discreet.attacks.attack import Attack, compare_trials, posterior
from discreet.attacks.contaminated_regression import regression_under_outliers
from discreet.attacks.linkage.attacker_tables import k_anonymised
from discreet.attacks.linkage.intersection import intersection
from discreet.attacks.linkage.k_anonymity import k_anonymity
from discreet.attacks.linkage.population import how_unique, share_unique
from discreet.attacks.linkage.ratings import known_ratings
from discreet.attacks.linkage.record_linkage import linkage
from discreet.attacks.linkage.scoreboard import scoreboard, scoreboard_by_items
from discreet.attacks.linkage.uniqueness import uniqueness
from discreet.attacks.membership.genomes import genome
from discreet.attacks.membership.trace import trace
from discreet.attacks.membership.trained_model import membership
from discreet.attacks.reconstruction import subset_counts
from discreet.attacks.reconstruction.difference import difference, leverage
from discreet.attacks.reconstruction.isolation import isolate
from discreet.attacks.reconstruction.linear_reconstruction import (
    reconstruct,
    reconstruction_by_guarantee,
    reconstruction_by_noise,
)
from discreet.attacks.reconstruction.pair_counts import genotypes_from_pairs
from discreet.attacks.reconstruction.refit import refit
from discreet.attacks.robustness import (
    backdoor_under_privacy,
    group_bound,
    labels_under_lies,
    location_under_outliers,
    silent_after,
)
from discreet.report.attack_finding import Comparison, Finding

__all__ = [
    "Attack",
    "Comparison",
    "Finding",
    "backdoor_under_privacy",
    "compare_trials",
    "difference",
    "genome",
    "genotypes_from_pairs",
    "group_bound",
    "how_unique",
    "intersection",
    "isolate",
    "k_anonymised",
    "k_anonymity",
    "known_ratings",
    "labels_under_lies",
    "leverage",
    "linkage",
    "location_under_outliers",
    "membership",
    "posterior",
    "reconstruct",
    "reconstruction_by_guarantee",
    "reconstruction_by_noise",
    "refit",
    "regression_under_outliers",
    "scoreboard",
    "scoreboard_by_items",
    "share_unique",
    "silent_after",
    "subset_counts",
    "trace",
    "uniqueness",
]
