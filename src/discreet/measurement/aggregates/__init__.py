"""Aggregations, one file each: what to compute, how far a row moves it, how to finish it; and all of a question's."""

from discreet.measurement.aggregates.count import distinct_form, rows_form, units_form, values_form
from discreet.measurement.aggregates.form import Form, Joint, Ratio, Recipe, Size, Total, Variance
from discreet.measurement.aggregates.layout import Layout, Needs, centred, paired
from discreet.measurement.aggregates.linear import Linear
from discreet.measurement.aggregates.mean import centred_form, paired_form
from discreet.measurement.aggregates.mode import (
    Candidates,
    candidates_of,
    checked_candidates,
    range_l1,
    range_l2_squared,
)
from discreet.measurement.aggregates.quantile import counted, shift_of, steps_of
from discreet.measurement.aggregates.steps import Steps
from discreet.measurement.aggregates.sum import sum_form
from discreet.measurement.aggregates.variance import centred_spread_form, paired_spread_form

__all__ = [
    "Candidates",
    "Form",
    "Joint",
    "Layout",
    "Linear",
    "Needs",
    "Ratio",
    "Recipe",
    "Size",
    "Steps",
    "Total",
    "Variance",
    "candidates_of",
    "centred",
    "centred_form",
    "centred_spread_form",
    "checked_candidates",
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
