"""Many answers at once: the noise that suits all the questions together, and what follows from it for free."""

from discreet.mechanisms.strategy import Contribution
from discreet.workload.marginals import Marginals, MarginalsPlan
from discreet.workload.product_domain import ProductDomain
from discreet.workload.query_structures import Each, Matrix, Prefixes, Product, Ranges, Total, Union
from discreet.workload.released_answers import ReleasedAnswers
from discreet.workload.released_tables import ReleasedTables
from discreet.workload.span_reuse import PastRelease, ReusedAnswers, reuse
from discreet.workload.workload import Workload, WorkloadPlan

__all__ = ["Contribution", "Each", "Marginals", "MarginalsPlan", "Matrix", "PastRelease", "Prefixes", "ProductDomain"]
__all__ += ["Product", "Ranges", "ReleasedAnswers", "ReleasedTables", "ReusedAnswers", "Total", "Union", "Workload"]
__all__ += ["WorkloadPlan", "reuse"]
