"""Aggregations, one file each: what to compute, how far a row moves it, how to finish it; and all of a question's."""

from discreet.plan.aggregates.count import distinct_form, rows_form, units_form, values_form
from discreet.plan.aggregates.form import Form, Joint, Ratio, Recipe, Size, Total, Variance
from discreet.plan.aggregates.layout import Layout, Needs, centred, paired
from discreet.plan.aggregates.linear import Linear
from discreet.plan.aggregates.mean import centred_form, paired_form
from discreet.plan.aggregates.mode import Ballot, ballot, ballot_of, range_l1, range_l2_squared
from discreet.plan.aggregates.quantile import Parts, Target, counted, shift_of, steps_of
from discreet.plan.aggregates.spread import centred_spread_form, paired_spread_form
from discreet.plan.aggregates.steps import Steps
from discreet.plan.aggregates.sum import sum_form

__all__ = [
    "Ballot",
    "Form",
    "Joint",
    "Layout",
    "Linear",
    "Needs",
    "Parts",
    "Ratio",
    "Recipe",
    "Size",
    "Steps",
    "Target",
    "Total",
    "Variance",
    "ballot",
    "ballot_of",
    "centred",
    "centred_form",
    "centred_spread_form",
    "counted",
    "distinct_form",
    "paired",
    "paired_form",
    "paired_spread_form",
    "range_l1",
    "range_l2_squared",
    "rows_form",
    "shift_of",
    "steps_of",
    "sum_form",
    "units_form",
    "values_form",
]
