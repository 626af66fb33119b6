"""Descriptions of releases: what an accountant needs to know, and nothing about how it was computed.

The law of evolution:

1. An event describes and never computes. Its docstring is its mathematical definition; prices live in `accounting`.
2. The meaning of an event never changes, nor do its fields, its defaults and its name in JSON. A new meaning is a new
   class with a new name, and the old one stays.
3. Ledgers written by any earlier version replay: `tests/privacy/events_v1.json` holds texts of version 1 for ever.
4. What is not understood is refused: an unknown kind, version or field is never skipped and never guessed.

The words of every definition: two datasets are *neighbours* if they differ in one unit, in the sense (`Neighbours`)
of the account that is charged. "One unit moves v by at most s" speaks of any two neighbours. Noise is drawn afresh
for each event, independently of the data and of all other noise, from the exact law that is named. Post-processing of
a release, which reads no data, is described by the same event.
"""

from discreet.privacy.events.event_kinds import (
    Approx,
    BoundedRange,
    Calibrated,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    RandomizedResponse,
    Repeated,
    strip_calibration,
)
from discreet.privacy.events.text import KINDS, from_json, to_json

__all__ = ["KINDS", "Approx", "BoundedRange", "Calibrated", "Composed", "Concentrated", "DiscreteGaussian"]
__all__ += ["DiscreteLaplace", "Event", "Gaussian", "Laplace", "PoissonSampled", "Pure", "RandomizedResponse"]
__all__ += ["Repeated", "from_json", "strip_calibration", "to_json"]
