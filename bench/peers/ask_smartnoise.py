"""SmartNoise SQL over a pandas frame.

It takes an epsilon for every noisy column of the rewritten query, so the library's own price of the query decides the
epsilon and the delta it is given: their total is the job's. A person's rows are bounded in all, not by group, so the
bound is groups times rows. Keys are public if nothing is censored.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd
from common import Columns, Job, Said, serve
from snsql import Privacy, from_connection

SQL = {"count": "COUNT(*)", "sum": "SUM({})", "mean": "AVG({})"}


def text(job: Job) -> str:
    parts = [f"{SQL[name].format(job.value)} AS {name}_" for name in job.aggregates]
    return f"SELECT {', '.join([job.key] * bool(job.key) + parts)} FROM db.t" + (
        f" GROUP BY {job.key}" if job.key else ""
    )


def metadata(job: Job, rows: int, kind: str) -> dict[str, Any]:
    bounds = (job.low, job.high) if kind == "int" else (float(job.low), float(job.high))
    table: dict[str, Any] = {
        "max_ids": job.groups * job.rows,
        "row_privacy": job.unit is None,
        "sample_max_ids": job.unit is not None,
        "censor_dims": job.private,
        "clamp_counts": False,
        "clamp_columns": True,
        "rows": rows,
        job.value: {"type": kind, "lower": bounds[0], "upper": bounds[1]},
    }
    table |= {job.key: {"type": "int"}} if job.key else {}
    table |= {job.unit: {"type": "int", "private_id": True}} if job.unit else {}
    return {"": {"db": {"t": table}}}


def reader(job: Job, frame: pd.DataFrame, privacy: Privacy) -> Any:
    kind = "float" if frame[job.value].dtype.kind == "f" else "int"
    return from_connection(frame, privacy=privacy, metadata=metadata(job, len(frame), kind))


@cache
def price(job: Job) -> tuple[float, float]:
    """What the query costs at epsilon 1 and the job's delta."""
    frame = pd.read_parquet(job.path).head(10)
    epsilon, delta = reader(job, frame, Privacy(epsilon=1.0, delta=job.delta)).get_privacy_cost(text(job))
    return float(epsilon), float(delta)


def privacy_of(job: Job) -> Privacy:
    epsilon, delta = price(job)
    return Privacy(epsilon=job.epsilon / epsilon, delta=job.delta * min(1.0, job.delta / delta))


def ask(job: Job) -> Columns:
    wanted = [name for name in (job.unit, job.key, job.value) if name]
    frame = pd.read_parquet(job.path, columns=wanted)
    header, *rows = reader(job, frame, privacy_of(job)).execute(text(job))
    table = {name: [row[place] for row in rows] for place, name in enumerate(header)}
    columns = {name: [None if x is None else float(x) for x in table[f"{name}_"]] for name in job.aggregates}
    return columns | {"key": [int(key) for key in table[job.key]] if job.key else [None]}


def say(job: Job) -> Said:
    frame = pd.read_parquet(job.path).head(10)
    widths = reader(job, frame, privacy_of(job)).get_simple_accuracy(text(job), 0.05)
    widths = widths[1:] if job.key else widths
    shares = f"epsilon {job.epsilon / price(job)[0]:.3g} for each of its columns"
    said = dict(zip(job.aggregates, widths, strict=True))
    return {name: ("" if width is None else f"95 %: +-{width:.4g}, ") + shares for name, width in said.items()}


if __name__ == "__main__":
    serve(ask, say)
