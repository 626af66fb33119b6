"""Many answers at once: the noise that suits all the questions together, and what follows from it for free."""

from discreet.workload.marginals import Marginals, MarginalsPlan
from discreet.workload.product_domain import Domain
from discreet.workload.released_tables import ReleasedTables

__all__ = ["Domain", "Marginals", "MarginalsPlan", "ReleasedTables"]
