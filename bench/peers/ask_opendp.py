"""OpenDP's Context on Polars.

COUNT is `dp.len`, AVG is `dp.mean`, SUM is `dp.sum`; one query is one `agg`, and the context splits the budget between
its parts. Pure noise is Laplace, zCDP noise Gaussian: the law with the smaller standard deviations is taken, rho by
OpenDP's own conversion. Persons are truncated with `keep="first"`, because `keep="sample"` fails in 0.16 when the
groups are those of a column (two fields of one name).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import opendp.prelude as dp
import polars as pl
from common import Columns, Job, Said, serve

dp.enable_features("contrib")


@cache
def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose (epsilon, delta) curve passes below the point asked for."""
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)

    def spent(rho: float) -> float:
        noise = dp.m.make_gaussian(*space, scale=math.sqrt(0.5 / rho))
        return float(dp.c.make_zCDP_to_approxDP(noise).map(1).epsilon(delta))

    low, high = 1e-6, 10.0
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low


def loss(job: Job, law: str) -> Any:
    if law == "laplace":
        return dp.loss_of(epsilon=job.epsilon, delta=job.delta) if job.private else dp.loss_of(epsilon=job.epsilon)
    if job.private:  # one half of delta for keys, the other for the conversion
        return dp.loss_of(rho=rho_of(job.epsilon, job.delta / 2), delta=job.delta / 2)
    return dp.loss_of(rho=rho_of(job.epsilon, job.delta))


def margins(job: Job) -> list[Any]:
    known: list[Any] = [dp.polars.Margin(max_length=job.public_rows)]
    if job.keys is not None:
        known.append(dp.polars.Margin(by=[job.key], max_length=job.public_rows, max_groups=job.keys))
    return known


def aggregates(job: Job, is_float: bool) -> list[pl.Expr]:
    zero: Any = float(job.middle) if is_float else job.middle
    value = pl.col(job.value).fill_null(zero)
    bounds: tuple[Any, Any] = (float(job.low), float(job.high)) if is_float else (job.low, job.high)
    if is_float:
        value = value.fill_nan(zero)
    around = (value.clip(*bounds) - zero).dp.sum((bounds[0] - zero, bounds[1] - zero)).alias("around")
    known = {
        "count": dp.len(signed=True).alias("count"),
        "sum": value.dp.sum(bounds).alias("sum"),
        "mean": around if job.by_hand else value.dp.mean(bounds).alias("mean"),
    }
    return [known[name] for name in job.aggregates]


def query(job: Job, law: str) -> Any:
    frame = pl.scan_parquet(job.path)
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=job.unit) if job.unit else dp.unit_of(contributions=1),
        privacy_loss=loss(job, law),
        split_evenly_over=1,
        margins=margins(job),
    )
    asked = context.query()
    by = [job.key] if job.key else []
    if job.unit:
        asked = asked.truncate_per_group(job.rows, by=by, keep="first")
        asked = asked.truncate_num_groups(job.groups, by=by, keep="first") if by else asked
    parts = aggregates(job, frame.collect_schema()[job.value].is_float())
    if not by:
        return asked.select(*parts)
    grouped = asked.group_by(job.key).agg(*parts)
    if job.keys is None:
        return grouped
    return grouped.with_keys(pl.LazyFrame({job.key: range(job.keys)}, schema={job.key: pl.Int64}))


@cache
def measurement(job: Job, law: str) -> Any:
    """What the context calibrates by search, which takes longer than to read the data."""
    return query(job, law).resolve()


def spreads(job: Job, law: str) -> list[float]:
    factor = math.sqrt(2) if law == "laplace" else 1.0  # of a Laplace scale
    return [factor * scale for scale in dp.summarize_polars_measurement(measurement(job, law))["scale"]]


@cache
def law_of(job: Job) -> str:
    return min(("laplace", "gaussian"), key=lambda law: math.prod(spreads(job, law)))


def ask(job: Job) -> Columns:
    law = law_of(job)
    if job.timed:
        answer = query(job, law).release().collect()
    else:
        answer = measurement(job, law)(pl.scan_parquet(job.path)).collect()
    if job.by_hand:
        mean = job.middle + pl.col("around") / pl.max_horizontal(pl.col("count"), 1)
        answer = answer.with_columns(mean.alias("mean"))
    columns = {name: answer[name].to_list() for name in job.aggregates}
    return columns | {"key": answer[job.key].to_list() if job.key else [None]}


def say(job: Job) -> Said:
    law = law_of(job)
    rows = dp.summarize_polars_measurement(measurement(job, law)).iter_rows(named=True)
    return {f"{row['column']}: {row['aggregate']}": f"{law} scale {row['scale']:.4g}" for row in rows}


if __name__ == "__main__":
    serve(ask, say)
