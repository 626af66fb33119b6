"""Attacks on releases: each predicts its success, runs on raw and on protected releases, and shows the difference.

Every attack returns a `Finding`; its `compare(...)` runs it on a raw release, on ad-hoc defences and on private
releases at several epsilons. Attacks see what anybody sees; the data themselves only keep score.
"""

from discreet.attacks.attack import Attack, ceiling, compared, posterior
from discreet.attacks.contaminated_regression import regression_under_outliers
from discreet.attacks.linkage.attribute_disclosure import Disclosure
from discreet.attacks.linkage.intersection import Intersection, intersection
from discreet.attacks.linkage.k_anonymity import Anonymity, k_anonymity
from discreet.attacks.linkage.population import HowUnique, how_unique, share_unique
from discreet.attacks.linkage.presence import Presence
from discreet.attacks.linkage.ratings import capped, known_ratings, smoothed
from discreet.attacks.linkage.record_linkage import Linkage, linkage
from discreet.attacks.linkage.scoreboard import KnownItems, Scoreboard, scoreboard, scoreboard_by_items
from discreet.attacks.linkage.tables import Anonymised, k_anonymised
from discreet.attacks.linkage.uniqueness import Coarsened, Uniqueness, uniqueness
from discreet.attacks.membership.genome_scores import correlations
from discreet.attacks.membership.genomes import genome
from discreet.attacks.membership.score_threshold import Tracing
from discreet.attacks.membership.trace import trace
from discreet.attacks.membership.trained_model import Membership, membership
from discreet.attacks.reconstruction import subset_counts
from discreet.attacks.reconstruction.attribute_inference import Inference
from discreet.attacks.reconstruction.difference import difference, leverage
from discreet.attacks.reconstruction.isolation import Isolation, isolate
from discreet.attacks.reconstruction.linear_reconstruction import (
    Curves,
    Reconstruction,
    reconstruct,
    reconstruction_by_guarantee,
    reconstruction_by_noise,
)
from discreet.attacks.reconstruction.pair_counts import genotypes_from_pairs
from discreet.attacks.reconstruction.refit import Refit, refit
from discreet.attacks.robustness import (
    Robustness,
    backdoor_under_privacy,
    group_bound,
    labels_under_lies,
    location_under_outliers,
    silent_after,
    triggered,
    with_backdoor,
    with_flipped_labels,
    with_outliers,
)
from discreet.report.finding import Comparison, Finding, Trial

__all__ = ["Anonymised", "Anonymity", "Attack", "Coarsened", "Comparison", "Curves", "Disclosure", "Finding"]
__all__ += ["HowUnique", "Inference", "Intersection", "Isolation", "KnownItems", "Linkage", "Membership", "Presence"]
__all__ += ["Reconstruction", "Refit", "Robustness", "Scoreboard", "Tracing", "Trial", "Uniqueness"]
__all__ += ["backdoor_under_privacy", "capped", "ceiling", "compared", "correlations", "difference", "genome"]
__all__ += ["genotypes_from_pairs", "group_bound", "how_unique", "intersection", "isolate", "k_anonymised"]
__all__ += ["k_anonymity", "known_ratings", "labels_under_lies", "leverage", "linkage", "location_under_outliers"]
__all__ += ["membership", "posterior", "reconstruct", "reconstruction_by_guarantee", "reconstruction_by_noise", "refit"]
__all__ += [
    "regression_under_outliers",
    "scoreboard",
    "scoreboard_by_items",
    "share_unique",
    "silent_after",
    "smoothed",
    "subset_counts",
]
__all__ += ["trace", "triggered", "uniqueness", "with_backdoor", "with_flipped_labels", "with_outliers"]
