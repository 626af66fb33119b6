"""The same question put to other libraries, each in an environment of its own, and to ours.

`make bench` fills `.venv-peers`; a library that cannot be installed is reported as such and nothing fails.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from _timing import Row
from peers.common import Columns, Job, Said, repeat

from discreet import Budget, Curator

HERE = Path(__file__).parent
PEERS = {"OpenDP": "opendp", "PipelineDP": "pipelinedp", "SmartNoise": "smartnoise"}
SPARE = 60.0  # seconds for imports, a plan and a first release that takes longer than the job allows
AMPLE = Budget(epsilon=10**6, delta="1e-3")  # of the account; each question names its own price
SQL = {"count": "COUNT(*)", "sum": "SUM({})", "mean": "AVG({})"}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a library answered, or why it did not."""

    releases: list[Columns] = field(default_factory=list)
    wall: float | None = None
    cpu: float | None = None
    said: Said = field(default_factory=dict)
    note: str = ""
    why: str = ""


@dataclass(frozen=True)
class Against(Row):
    """A claim against a peer that may have no figure, with the reason."""

    why: str = "not installed"

    @property
    def ratio(self) -> str:
        return self.why if self.peer is None else super().ratio


def ask_peer(peer: str, job: Job, worker: str = "ask") -> Reply:
    """Runs a peer's worker in the peer's environment."""
    name = PEERS[peer]
    python = HERE.parent / ".venv-peers" / name / "bin" / "python"
    if not (python.parent.parent / ".made").exists():
        return Reply(why="not installed")
    command = [str(python), str(HERE / "peers" / f"{worker}_{name}.py")]
    limit = job.seconds + SPARE
    try:
        done = subprocess.run(command, input=job.text(), capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Reply(why=f"over {limit:.0f} s")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Reply(why=f"failed: {last[:60]}")
    return Reply(**json.loads(done.stdout.splitlines()[-1]))


def sql_of(job: Job) -> str:
    parts = [f"{SQL[name].format(job.value)} AS {name}_" for name in job.aggregates]
    group = f" GROUP BY {job.key}" if job.key else ""
    return f"SELECT {', '.join([job.key] * bool(job.key) + parts)} FROM t{group}"


def protect(curator: Curator, job: Job, budget: Budget) -> None:
    """Declares the job's table as public facts allow."""
    curator.protect(
        job.path,
        name="t",
        unit=job.unit,
        budget=budget,
        bounds={job.value: (job.low, job.high)},
        keys={job.key: range(job.keys)} if job.key and job.keys else {},
        max_groups=job.groups if job.unit else 1,
        max_rows=job.rows if job.unit else 1,
    )


def ask_ours(job: Job) -> Reply:
    """The same job, each release by a curator that has never been asked before."""
    widths: Said = {}

    def ask(job: Job) -> Columns:
        with Curator() as curator:
            protect(curator, job, AMPLE)
            answer = curator.ask(sql_of(job), epsilon=job.epsilon, delta=job.delta)
        columns = {name: [row[f"{name}_"] for row in answer] for name in job.aggregates}
        if len(answer):
            for name in job.aggregates:
                half = (answer[0][f"{name}__high"] - answer[0][f"{name}__low"]) / 2
                widths[name] = f"95 %: +-{half:.4g}"
        return columns | {"key": [row[job.key] if job.key else None for row in answer]}

    return Reply(**repeat(job, ask), said=widths)
