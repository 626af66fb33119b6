"""Attacks on releases: each predicts its success, runs on raw and on protected releases, and shows the difference.

Every attack returns a `Finding`; its `compare(...)` runs it on a raw release, on ad-hoc defences and on private
releases at several epsilons. Attacks see what anybody sees; the data themselves only keep score.
"""

from discreet.attacks import answerers
from discreet.attacks.accusing import Tracing
from discreet.attacks.anonymity import Anonymity, k_anonymity
from discreet.attacks.attack import Attack
from discreet.attacks.ceiling import ceiling, compared, posterior
from discreet.attacks.coarsening import Anonymised, k_anonymised
from discreet.attacks.contamination import triggered, with_backdoor, with_flipped_labels, with_outliers
from discreet.attacks.differencing import difference
from discreet.attacks.genome_scores import correlations
from discreet.attacks.genomes import genome
from discreet.attacks.groups import group_bound, silent_after
from discreet.attacks.inference import Inference
from discreet.attacks.intersecting import Intersection, intersection
from discreet.attacks.isolating import Isolation, isolate
from discreet.attacks.knowing import known_ratings
from discreet.attacks.leverage_attack import leverage
from discreet.attacks.linking import Linkage, linkage
from discreet.attacks.lookup import Told
from discreet.attacks.models import Membership, membership
from discreet.attacks.pair_counts import genotypes_from_pairs
from discreet.attacks.population import HowUnique, how_unique, share_unique
from discreet.attacks.present import Presence
from discreet.attacks.private_model import PrivateBayes
from discreet.attacks.ratings import capped, smoothed
from discreet.attacks.rebuilding_curves import Curves, reconstruction_by_guarantee, reconstruction_by_noise
from discreet.attacks.reconstruction import Reconstruction, reconstruct
from discreet.attacks.refitting import Refit, refit
from discreet.attacks.robustness import Robustness, backdoor_under_privacy, labels_under_lies, location_under_outliers
from discreet.attacks.scoring import KnownItems, Scoreboard, scoreboard, scoreboard_by_items
from discreet.attacks.tracing import trace
from discreet.attacks.unique import Coarsened, Uniqueness, uniqueness
from discreet.report.finding import Comparison, Finding, Trial

__all__ = [
    "Anonymised",
    "Anonymity",
    "Attack",
    "Coarsened",
    "Comparison",
    "Curves",
    "Finding",
    "HowUnique",
    "Inference",
    "Intersection",
    "Isolation",
    "KnownItems",
    "Linkage",
    "Membership",
    "Presence",
    "PrivateBayes",
    "Reconstruction",
    "Refit",
    "Robustness",
    "Scoreboard",
    "Told",
    "Tracing",
    "Trial",
    "Uniqueness",
    "answerers",
    "backdoor_under_privacy",
    "capped",
    "ceiling",
    "compared",
    "correlations",
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
    "scoreboard",
    "scoreboard_by_items",
    "share_unique",
    "silent_after",
    "smoothed",
    "trace",
    "triggered",
    "uniqueness",
    "with_backdoor",
    "with_flipped_labels",
    "with_outliers",
]
