"""OpenDP's quantile on Polars: a noisy choice among candidates, which the caller lists."""

from __future__ import annotations

from functools import cache
from typing import Any

import opendp.prelude as dp
import polars as pl
from common import Columns, Job, Said, serve

dp.enable_features("contrib")


@cache
def measurement(job: Job) -> Any:
    by = [job.key] if job.key else []
    public = {"invariant": "keys", "max_groups": job.keys} if job.key else {}
    context = dp.Context.compositor(
        data=pl.scan_parquet(job.path),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=job.epsilon),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=job.public_rows, **public)],
    )
    width = job.high - job.low
    candidates = [job.low + width * i / job.candidates for i in range(job.candidates + 1)]
    value = pl.col(job.value).fill_null(float(job.low)).fill_nan(float(job.low))
    chosen = value.dp.quantile(job.quantile, candidates=candidates).alias("quantile")
    query = context.query()
    return (query.group_by(by).agg(chosen) if by else query.select(chosen)).resolve()


def ask(job: Job) -> Columns:
    """One number for the whole table, or for each group."""
    found = measurement(job)(pl.scan_parquet(job.path)).collect()
    keys = found[job.key].to_list() if job.key else [None]
    return {"quantile": found["quantile"].to_list(), "key": keys}


def say(job: Job) -> Said:
    return {"quantile": f"{job.candidates:,} candidates"}


if __name__ == "__main__":
    serve(ask, say)
