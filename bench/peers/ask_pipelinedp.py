"""PipelineDP's engine on its local backend.

All metrics of a question are one `aggregate`. Four documented ways are weighed by the noise they announce: Laplace or
Gaussian noise, with the naive accountant and the optimal selection of partitions, or with the PLD accountant (which
announces itself as experimental) and the threshold of the same noise. If every row is a person of its own, the bounds
are declared as already enforced, which saves the engine the grouping by person.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow.parquet
from common import Columns, Job, Said, serve

try:
    import pydp  # noqa: F401 - whether the real one is there

    NOTE = ""
except ImportError:
    import pydp_stand_in

    pydp_stand_in.install()
    NOTE = "python-dp has no wheel for this processor; its laws are drawn by a stand-in"
import pipeline_dp as pdp
from pipeline_dp import dp_computations

METRICS = {"count": pdp.Metrics.COUNT, "sum": pdp.Metrics.SUM, "mean": pdp.Metrics.MEAN}
WAYS = tuple((noise, exact) for noise in ("LAPLACE", "GAUSSIAN") for exact in (False, True))
WORTH = 0.99  # the PLD accountant costs seconds: taken if it saves more than 1 % of the noise


def parameters(job: Job, noise: str, exact: bool) -> pdp.AggregateParams:
    values = set(job.aggregates) - {"count"}
    return pdp.AggregateParams(
        metrics=[METRICS[name] for name in job.aggregates],
        noise_kind=pdp.NoiseKind[noise],
        max_partitions_contributed=job.groups,
        max_contributions_per_partition=job.rows,
        min_value=job.low if values else None,
        max_value=job.high if values else None,
        contribution_bounds_already_enforced=job.unit is None,
        partition_selection_strategy=pdp.PartitionSelectionStrategy[
            f"{noise}_THRESHOLDING" if exact else "TRUNCATED_GEOMETRIC"
        ],
    )


def accountant(job: Job, noise: str, exact: bool) -> Any:
    delta = job.delta if job.private or exact or noise == "GAUSSIAN" else 0.0
    return (pdp.PLDBudgetAccountant if exact else pdp.NaiveBudgetAccountant)(job.epsilon, delta)


def rows_of(job: Job) -> list[tuple[Any, Any, Any]]:
    wanted = [job.unit or job.value, job.key or job.value, job.value]
    table = pyarrow.parquet.read_table(job.path, columns=sorted(set(wanted)))
    persons, keys, values = (table[name].to_pylist() for name in wanted)
    return list(zip(persons, keys if job.key else [0] * len(keys), values, strict=True))


def release(job: Job, rows: list[tuple[Any, Any, Any]], way: tuple[str, bool]) -> tuple[Iterator[Any], Any]:
    budget = accountant(job, *way)
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    public = None if job.private else list(range(job.keys or 1))
    engine = pdp.DPEngine(budget, pdp.LocalBackend())
    answer = engine.aggregate(rows, parameters(job, *way), extractors, public_partitions=public)
    budget.compute_budgets()
    return answer, budget


def spreads(job: Job, way: tuple[str, bool]) -> dict[str, float]:
    """The standard deviations of the noise, from the engine's own budgets and sensitivities."""
    _, budget = release(job, [(0, 0, 0)], way)
    found, params = {}, parameters(job, *way)
    for spec in budget.mechanism_specs:
        if spec.name == "PartitionSelection":
            continue
        sensitivities = {
            "MeanSum": dp_computations.compute_sensitivities_for_normalized_sum,
            "Sum": dp_computations.compute_sensitivities_for_sum,
        }.get(spec.name, dp_computations.compute_sensitivities_for_count)(params)
        found[spec.name] = float(dp_computations.create_additive_mechanism(spec, sensitivities).std)
    return found


@cache
def way_of(job: Job) -> tuple[str, bool]:
    noise = {way: math.prod(spreads(job, way).values()) / (1 if way[1] else 1 / WORTH) for way in WAYS}
    return min(noise, key=lambda way: noise[way])


def ask(job: Job) -> Columns:
    answer, _ = release(job, rows_of(job), way_of(job))
    columns: Columns = {name: [] for name in ("key", *job.aggregates)}
    for key, metrics in answer:
        columns["key"].append(key if job.key else None)
        for name in job.aggregates:
            columns[name].append(float(getattr(metrics, name)))
    return columns


def say(job: Job) -> Said:
    noise, exact = way_of(job)
    text = f"{noise.capitalize()}, {'PLD' if exact else 'naive'} accountant, std"
    return {name: f"{text} {std:.4g}" for name, std in spreads(job, (noise, exact)).items()}


if __name__ == "__main__":
    serve(ask, say, NOTE)
