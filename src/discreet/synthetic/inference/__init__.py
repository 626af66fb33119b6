"""From noisy marginals to a model of the whole table: pure post-processing, which reads no private data."""

from discreet.synthetic.inference.belief_propagation import BeliefPropagation
from discreet.synthetic.inference.calibrated_tree import CalibratedTree
from discreet.synthetic.inference.estimation import GraphicalModel, Solver, fit, model_of
from discreet.synthetic.inference.factors import Attributes, Factor, Sizes
from discreet.synthetic.inference.junction_tree import JunctionTree, junction_tree, tree_size
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal, combine_marginals, estimated_total
from discreet.synthetic.inference.row_sampler import sample_rows

__all__ = [
    "Attributes",
    "BeliefPropagation",
    "CalibratedTree",
    "Factor",
    "GraphicalModel",
    "JunctionTree",
    "NoisyMarginal",
    "Sizes",
]
__all__ += [
    "Solver",
    "combine_marginals",
    "estimated_total",
    "fit",
    "junction_tree",
    "model_of",
    "sample_rows",
    "tree_size",
]
