"""Synthetic tables: models of noisy marginals, and rows drawn from them, under differential privacy.

A generator measures private rows within a budget and fits a model, from which rows are drawn for free. What values
columns may have is declared in public, as a `Domain`.
"""

from discreet.synthetic.aim import AIM
from discreet.synthetic.all_pairs import AllPairs
from discreet.synthetic.domain import Bins, Calendar, Domain, Keys, UnknownKeys
from discreet.synthetic.fitted_model import Model
from discreet.synthetic.independent import Independent
from discreet.synthetic.mst import MST
from discreet.synthetic.steward_evaluation import Evaluation, evaluate

__all__ = ["AIM", "MST", "AllPairs", "Bins", "Calendar", "Domain", "Evaluation", "Independent", "Keys", "Model"]
__all__ += ["UnknownKeys", "evaluate"]
