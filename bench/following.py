"""How much of the library one follows from a call to its result: files, and calls from one room into another.

A file counts when one of its functions runs, in any process, between the call and its result. A room change is a
function of one room (`curator`, `ledger`, ...) that calls one of another, counted once. `ask`, `fit` and `synthesize`
run in one process; HTTP and wire go through `discreet serve --demo`, whose owner of the ledger and workers are other
processes. Each is followed after another request of its kind, so that what runs when modules are first loaded does not
count. Pass --list to see the files, and --source PATH/src to follow another version.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _followed import HERE, Call, listening, open_window, prepare

COUNT = "SELECT COUNT(*) AS n FROM visits"
VERBS, SERVED = ("ask", "fit", "synthesize"), ("HTTP ask", "wire query")


def main() -> None:
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="also print the files")
    parser.add_argument("--source", type=Path, default=HERE, help="the folder src of a version")
    parser.add_argument("--verbs", type=Path, help="ask, fit and synthesize in this process, in a folder")
    given = parser.parse_args()
    if given.verbs:
        run_verbs(given.verbs)
        return
    print(f"{'way':12} {'files':>6} {'rooms':>6} {'room changes':>13}")
    for way, seen in {**in_process(given.source), **served(given.source)}.items():
        print(f"{way:12} {len(files(seen)):6} {len(rooms(seen)):6} {len(room_changes(seen)):13}")
        if given.list:
            print(*(f"    {file}" for file in sorted(files(seen))), sep="\n")


def files(seen: set[Call]) -> set[str]:
    return {call.called.partition(":")[0] for call in seen}


def rooms(seen: set[Call]) -> set[str]:
    return {_room(call.called) for call in seen}


def room_changes(seen: set[Call]) -> set[Call]:
    return {call for call in seen if call.caller and _room(call.caller) != _room(call.called)}


def _room(function: str) -> str:
    return function.partition(":")[0].partition("/")[0]


def in_process(source: Path) -> dict[str, set[Call]]:
    """Follows what a curator does by itself."""
    with tempfile.TemporaryDirectory() as name:
        env = prepare(Path(name), source)
        with listening(Path(name)) as found:
            subprocess.run([sys.executable, __file__, "--verbs", name], env=env, check=True)
        return by_way(VERBS, found)


def run_verbs(folder: Path) -> None:
    """Asks, fits and synthesizes, each in a window of its own."""
    import discreet  # noqa: PLC0415 - the version that is followed, in a process of its own

    table = folder / "visits.csv"
    table.write_text("patient,ward,age,ill\n" + "".join(f"{i},{'AB'[i % 2]},{i % 90},{i % 2}\n" for i in range(200)))
    curator = discreet.Curator(str(folder / "clinic.ledger"), anchor=str(folder / "clinic.anchor"))
    curator.protect(
        str(table),
        name="visits",
        unit="patient",
        max_rows=1,
        budget=discreet.Budget(epsilon=50, delta=1e-3),
        types={"patient": "int", "ward": "text", "age": "int", "ill": "int"},
        bounds={"age": (0, 100), "ill": (0, 1)},
        keys={"ward": ["A", "B"]},
    )
    tree = discreet.learn.DecisionTreeClassifier(epsilon=1, bounds=(0, 100), classes=[0, 1])
    ways = {
        "ask": lambda: curator.ask(COUNT, epsilon=0.5),
        "fit": lambda: curator.fit(tree, "SELECT age, ill FROM visits", target="ill"),
        "synthesize": lambda: curator.synthesize("SELECT ward, ill FROM visits", epsilon=1, generator="independent"),
    }
    curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 9", epsilon=0.25)
    curator.fit(tree, "SELECT age, ill FROM visits WHERE age > 9", target="ill")
    curator.synthesize("SELECT ward FROM visits", epsilon=1, generator="independent")
    for number, way in enumerate(VERBS, start=1):
        open_window(folder, number)
        ways[way]()
        open_window(folder, 0)


def by_way(ways: Iterable[str], found: Iterable[Call]) -> dict[str, set[Call]]:
    """Returns what was noted in each window, by its name."""
    return {way: {call for call in found if call.window == str(number)} for number, way in enumerate(ways, start=1)}


def served(source: Path) -> dict[str, set[Call]]:
    """Follows a query over HTTP and one over the wire, each after another query that fills caches."""
    with tempfile.TemporaryDirectory() as name:
        env = prepare(Path(name), source)
        with listening(Path(name)) as found, _service(Path(name), env) as told:
            _ask_served(Path(name), told)
        return by_way(SERVED, found)


def _ask_served(folder: Path, told: dict[str, Any]) -> None:
    import psycopg  # noqa: PLC0415 - an extra

    def ask(epsilon: str) -> None:
        body = json.dumps({"sql": COUNT, "epsilon": epsilon}).encode()
        headers = {"Authorization": f"Bearer {told['analyst_key']}", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{told['url']}/v1/ask", body, headers)) as reply:
            reply.read()

    def query(epsilon: str) -> None:
        connection.execute(f"SET discreet.epsilon = '{epsilon}'")
        connection.execute(COUNT).fetchall()

    with psycopg.connect(told["pg"], autocommit=True) as connection:
        for number, work in enumerate((ask, query), start=1):
            work(f"0.{number}")
            open_window(folder, number)
            work(f"0.{number}5")
            open_window(folder, 0)


@contextmanager
def _service(folder: Path, env: dict[str, str]) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "discreet", "serve", "--demo", "--folder", str(folder / "clinic"), "--json"]
    command += ["--port", "0", "--pg", "0"]
    env = {**env, "XDG_STATE_HOME": str(folder / "state")}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
