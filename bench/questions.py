"""How many of two hundred realistic questions each system answers.

The questions are those of `tests/corpus/realistic`: SQL as analysts write it, over four small worlds of several tables,
written before anybody knew which would be answered. Ours is measured: a question counts if the curator accepts it and
its answer without noise is that of plain SQL, which the tests check one by one (those in `pending.txt` do not count).

SmartNoise is measured too where it is installed: its own parser, checks and prices, one question at a time. The others
are judged by what their documentation says they have, applied to the features of each question, which a walk through
its syntax tree finds. The judgement is in their favour: with a builder in Python or on Spark every function of one row
counts as there, sorting, cutting and arithmetic after the release likewise, and so does folding one person's rows.

    python bench/questions.py
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sqlglot
from rich.console import Console
from rich.table import Table as Shown
from sqlglot import exp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from discreet.errors import DiscreetError  # noqa: E402
from tests.corpus.features import features  # noqa: E402 - the corpus lies beside this folder
from tests.corpus.questions import PENDING, REALISTIC, Asked  # noqa: E402
from tests.corpus.world import Table  # noqa: E402
from tests.corpus.worlds.every import WORLDS  # noqa: E402

ROWWISE = {
    *("where", "case", "coalesce", "text", "like", "ilike", "left", "split_part", "concatenation", "power"),
    *("date_trunc", "parts of dates", "date difference", "interval", "strftime", "weekday", "position"),
    *("key from floor", "float key of a public table", "comments", "nested select", "with", "union"),
    *("group by", "group by all", "position in a nested group by"),
}
SORTED = {"having", "order by", "limit"}
WINDOWS = {"window within a person", "qualify"}
AFTERWARDS = SORTED | {"window over released groups", "aggregate of aggregates", "scalar subquery"}
PER_PERSON = {"fold per person", "distinct rows"}
COUNTED = {"count", "count of people", "sum", "avg", "filter", "count_if"}
JOINED = {
    *("join", "left join", "comma join", "join with a public table", "join of protected tables", "self join"),
    *("in a subquery", "in a subquery inside case", "exists", "intersect", "bounds of a public column"),
}


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A system and the features it is known to have.

    Attributes:
        has: tags of `tests.corpus.features`.
        because: what of its documentation the set follows.
    """

    has: frozenset[str]
    because: str


PEERS: dict[str, Peer] = {
    "OpenDP 0.16 (Polars)": Peer(
        has=frozenset(ROWWISE | AFTERWARDS | PER_PERSON | COUNTED | {"count distinct", "quantile", "width_bucket"}),
        because="len, n_unique, sum, mean, quantile; no joins",
    ),
    "Tumult Analytics 0.21": Peer(
        has=frozenset(
            ROWWISE | AFTERWARDS | PER_PERSON | COUNTED | JOINED
            | {"count distinct", "quantile", "variance", "min, max", "width_bucket"} | WINDOWS
        ),
        because="count, sum, average, variance, quantile, min, max; public and private joins; no covariance, no mode",
    ),
    "PipelineDP 0.3.1": Peer(
        has=frozenset(ROWWISE | AFTERWARDS | PER_PERSON | COUNTED | {"quantile", "variance", "width_bucket"}),
        because="count, privacy id count, sum, mean, variance, percentile; no joins",
    ),
    "Qrlew 0.9.27": Peer(
        has=frozenset(ROWWISE | PER_PERSON | COUNTED | JOINED | SORTED | {"variance", "count distinct"}),
        because="SQL with count, sum, avg, variance and joins along keys; no quantiles, no windows",
    ),
}  # fmt: skip
SMARTNOISE = "SmartNoise SQL 1.0.10"
ONE_TABLE = Peer(
    has=frozenset(ROWWISE | COUNTED - {"filter", "count_if"} | SORTED | {"variance"}),
    because="SQL over one table with count, sum, avg, variance; joins are disabled",
)
KINDS = {"text": "string", "bool": "boolean", "date": "datetime", "timestamp": "datetime"}


def ours() -> set[str]:
    """Questions that the curator accepts and the tests compare."""
    curators = {name: world.curator() for name, world in WORLDS.items()}
    answered = set()
    for asked in REALISTIC:
        try:
            curators[asked.world].explain(asked.sql, epsilon=1, delta="1e-6")
        except DiscreetError:
            continue
        if asked.name not in PENDING:
            answered.add(asked.name)
    return answered


def judged(peer: Peer, needs: Mapping[str, frozenset[str]]) -> set[str]:
    """Questions whose every feature a system has, but for those that ask about single people."""
    answerable = {asked.name for asked in REALISTIC if not asked.refused}
    return {name for name, tags in needs.items() if name in answerable and tags <= peer.has}


def smartnoise() -> set[str] | None:
    """Questions that the library itself takes; None if it is not installed."""
    place = HERE.parent / ".venv-peers" / "smartnoise"
    if not (place / ".made").exists():
        return None
    jobs = [job for asked in REALISTIC if (job := one_table(asked)) is not None]
    command = [str(place / "bin" / "python"), str(HERE / "peers" / "answer_smartnoise.py")]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return None
    return {name for name, why in json.loads(done.stdout.splitlines()[-1]).items() if not why}


def one_table(asked: Asked) -> dict[str, object] | None:
    """A question about one protected table, as SmartNoise names it; it takes no other."""
    tree = sqlglot.parse_one(asked.sql, dialect="duckdb")
    defined = {cte.alias for cte in tree.find_all(exp.CTE)}
    names = {table.name for table in tree.find_all(exp.Table)} - defined
    if len(names) != 1:
        return None
    declared = WORLDS[asked.world].table(names.pop())
    text = re.sub(rf"(?i)\b(from|join)\s+{declared.name}\b", rf"\1 db.{declared.name}", " ".join(asked.sql.split()))
    return {"name": asked.name, "sql": text, "table": declared.name, "columns": columns(declared)}


def columns(table: Table) -> dict[str, object]:
    found: dict[str, object] = {"max_ids": 1, "sample_max_ids": True, "censor_dims": True, "rows": 1000}
    for name, kind in table.types.items():
        entry: dict[str, object] = {"type": KINDS.get(kind, kind)}
        if name in table.bounds and kind in ("int", "float"):  # it takes no bounds of days
            entry |= dict(zip(("lower", "upper"), table.bounds[name], strict=True))
        if name == table.unit:
            entry["private_id"] = True
        found[name] = entry
    return found


def show(found: Mapping[str, tuple[set[str], str]]) -> None:
    table = Shown(title=f"{len(REALISTIC)} realistic questions: how many are answered")
    for head in ("system", *WORLDS, "all", "share", "ours over theirs", "measured, or judged (at most)"):
        table.add_column(head)
    best = len(found["Discreet"][0])
    for name, (answered, how) in found.items():
        by_world = [str(sum(one.partition("/")[0] == world for one in answered)) for world in WORLDS]
        ratio = f"{best / len(answered):.2f}x" if answered else "-"
        table.add_row(name, *by_world, str(len(answered)), f"{len(answered) / len(REALISTIC):.0%}", ratio, how)
    Console(width=160).print(table)


def lacking(needs: Mapping[str, frozenset[str]]) -> None:
    """What each judged system lacks most often."""
    for name, peer in PEERS.items():
        absent = Counter(tag for tags in needs.values() for tag in tags - peer.has)
        print(f"{name} lacks: " + ", ".join(f"{tag} ({count})" for tag, count in absent.most_common(6)))


def main() -> None:
    needs = {asked.name: features(asked.sql, WORLDS[asked.world]) for asked in REALISTIC}
    found = {"Discreet": (ours(), "measured: asked, and compared with plain SQL by the tests")}
    found |= {name: (judged(peer, needs), f"judged: {peer.because}") for name, peer in PEERS.items()}
    taken = smartnoise()
    if taken is None:
        found[SMARTNOISE] = judged(ONE_TABLE, needs), f"judged, as it is not installed: {ONE_TABLE.because}"
    else:
        found[SMARTNOISE] = taken, "measured: its own parser, checks and prices"
    show(found)
    lacking(needs)
    refused = sum(bool(asked.refused) for asked in REALISTIC)
    print(f"{refused} of the questions are rightly refused by everybody: they ask for rows, ids or texts of people.")


if __name__ == "__main__":
    main()
