"""`discreet synthesize`: a file to hand on, what was spent and what remains, and refusals that cost nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.cli.clinic import run
from tests.report.reader import Page

QUICK = ("synthesize", "visits", "--epsilon", "1", "--generator", "independent")


def told_history() -> str:
    return " ".join(run("history").out.split())


@pytest.mark.ci
def test_a_page_is_written_beside_the_table(clinic: Path) -> None:
    told = run(*QUICK, "--out", "fake.csv", "--report", "fake.html")
    assert told.code == 0, told.err
    assert "What the tables are good for, and what not: fake.html." in told.out
    page = Page((clinic / "fake.html").read_text(encoding="utf-8"))
    assert all(link.startswith("#") for link in page.fetched)
    assert "Synthetic table visits" in page.text("h1")
    again = run(*QUICK, "--out", "again.csv", "--report", "again.html")
    assert "cost: nothing, it was stored" in again.out
    assert (clinic / "again.html").read_bytes() == (clinic / "fake.html").read_bytes()


@pytest.mark.ci
def test_a_table_is_written_and_again_for_free(clinic: Path) -> None:
    told = run(*QUICK, "--out", "fake.parquet")
    assert told.code == 0, told.err
    assert "written to fake.parquet" in told.out
    assert "cost: epsilon=1, 24.28 % of the budget" in told.out
    assert "remaining: 75.72 %" in told.out
    first = pyarrow.parquet.read_table(clinic / "fake.parquet")
    assert first.column_names == ["ward", "age", "charge"]
    again = run(*QUICK, "--out", "again.parquet")
    assert "cost: nothing, it was stored" in again.out
    assert pyarrow.parquet.read_table(clinic / "again.parquet").equals(first)
    assert run(*QUICK, "--out", "fake.csv", "--rows", "17").code == 0
    assert pyarrow.csv.read_csv(clinic / "fake.csv").num_rows == 17
    assert "charge synthetic table by Independent of SELECT ward, age, charge FROM visits" in told_history()
    assert run("report", "report.html").code == 0
    assert run("verify").code == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--out", "fake.xlsx"), 2),
        (("--out", "no/where.csv"), 2),
        (("--out", "fake.csv", "--generator", "gan"), 2),
        (("--out", "fake.csv", "--domain", "none.toml"), 2),
        (("--out", "fake.csv", "--epsilon", "100"), 3),
        (("--out", "fake.csv", "--report", "fake.pdf"), 2),
        (("--out", "fake.csv", "--report", "no/where.html"), 2),
    ],
)
@pytest.mark.usefixtures("clinic")
def test_mistakes_cost_nothing(arguments: tuple[str, ...], code: int) -> None:
    before = run("verify").out
    assert run(*QUICK, *arguments).code == code
    assert run("verify").out == before


def test_a_file_of_domains(clinic: Path) -> None:
    (clinic / "domain.toml").write_text('ward = ["A", "B"]\n[age]\nbins = [0, 40, 120]\n', encoding="utf-8")
    told = run(*QUICK, "--out", "fake.csv", "--domain", "domain.toml")
    assert told.code == 0, told.err


def test_places_within_bins_and_keys_that_are_found_are_asked_for_in_a_file(clinic: Path) -> None:
    declared = 'ward = {unknown_keys = 5, other = "elsewhere"}\nage = {bins = [0, 40, 120], within = "histogram"}\n'
    (clinic / "domain.toml").write_text(declared, encoding="utf-8")
    told = run(*QUICK, "--out", "fake.csv", "--domain", "domain.toml")
    assert told.code == 0, told.err
    assert "found by a private selection" in told.out
    assert set(pyarrow.csv.read_csv(clinic / "fake.csv").column("ward").to_pylist()) <= {"A", "B", "C", "elsewhere", ""}


@pytest.mark.parametrize(
    "declared",
    ["ward = 3", "ward = {bins = [0, 1], keys = ['A']}", "ward = {keys = ['A'], years = [2, 3]}"],
)
def test_a_file_that_declares_something_else_is_refused(clinic: Path, declared: str) -> None:
    (clinic / "domain.toml").write_text(f"{declared}\n", encoding="utf-8")
    told = run(*QUICK, "--out", "fake.csv", "--domain", "domain.toml")
    assert (told.code, "unknown_keys = 100" in " ".join(told.err.split())) == (2, True)


@pytest.mark.ci
def test_people_and_their_events_are_written_together(clinic: Path) -> None:
    declared = (clinic / "discreet.toml").read_text(encoding="utf-8")
    rows = "".join(f"p{n},{'FM'[n % 2]}\n" for n in range(120))
    (clinic / "people.csv").write_text(f"patient_id,sex\n{rows}", encoding="utf-8")
    more = '[tables.people]\nsource = "people.csv"\nunit = "patient_id"\nmax_rows = 1\naccount = "patients"\n'
    more += 'types = { patient_id = "text", sex = "text" }\nkeys = { sex = ["F", "M"] }\n'
    (clinic / "discreet.toml").write_text(f"{declared}\n{more}", encoding="utf-8")
    assert run("protect", "--yes").code == 0
    both = ("synthesize", "people", "--events", "visits", "--epsilon", "1", "--generator", "independent")
    half = run(*both, "--out", "fake.csv")
    assert (half.code, "--events-out" in half.err) == (2, True)
    assert run(*both, "--out", "fake.csv", "--events-out", "e.csv", "--report", "p.pdf").code == 2
    assert run(*both, "--out", "fake.csv", "--events-out", "e.xlsx").code == 2
    made = run(*both, "--out", "fake.csv", "--events-out", "e.csv")
    assert made.code == 0, made.err
    people, events = (pyarrow.csv.read_csv(clinic / name) for name in ("fake.csv", "e.csv"))
    assert people.column_names[1:] == ["sex"]
    assert set(events.column(0).to_pylist()) <= set(people.column(0).to_pylist())
    again = run(*both, "--out", "fake.csv", "--events-out", "e.csv", "--report", "p.html")
    assert "nothing, it was stored" in again.out
    assert "visits-pairs" in (clinic / "p.html").read_text(encoding="utf-8")
    (clinic / "domain.toml").write_text('sex = ["F", "M"]\n', encoding="utf-8")
    flat = run(*both, "--out", "fake.csv", "--events-out", "e.csv", "--domain", "domain.toml")
    assert (flat.code, "section for each" in " ".join(flat.err.split())) == (2, True)
