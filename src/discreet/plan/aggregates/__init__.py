"""Aggregations, one file each: what to compute, how far a row moves it, how to finish it."""

from discreet.plan.aggregates.count import count_forms, count_units_forms, count_values_forms
from discreet.plan.aggregates.form import Finished, Form, Noised, Scaled
from discreet.plan.aggregates.mean import CentredMean, PairedMean, mean_forms
from discreet.plan.aggregates.steps import Steps
from discreet.plan.aggregates.sum import sum_forms

__all__ = [
    "CentredMean",
    "Finished",
    "Form",
    "Noised",
    "PairedMean",
    "Scaled",
    "Steps",
    "count_forms",
    "count_units_forms",
    "count_values_forms",
    "mean_forms",
    "sum_forms",
]
