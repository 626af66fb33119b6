"""A table moves on to new data: what is asked anew, what stays free, and who follows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.curator.catalog.data_versions import FollowedVersions, may_grow
from discreet.engines.folders.folder import Folder
from discreet.errors import DeclarationChanged, InsufficientBudget, InvalidParameter, NotPermitted, UnknownTable
from discreet.learn import DecisionTreeClassifier
from discreet.ledger import Entry, journal
from discreet.ledger.journal import DeclaredTable
from discreet.noise import SeededBits
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.presentation.documents.result_documents import result_of
from discreet.privacy import Budget, PureDP
from discreet.requests.request import arguments
from discreet.requests.verb_table import VERBS
from discreet.requests.version_requests import count_answers, tables_of

COUNT = "SELECT COUNT(*) AS n FROM visits"
OLD = "SELECT COUNT(*) AS n FROM visits WHERE age > 30"
STAYS = "SELECT COUNT(*) AS n FROM stays"
BOTH = "SELECT COUNT(*) AS n FROM visits JOIN stays ON visits.patient = stays.patient"
DECLARED: dict[str, Any] = {
    "unit": "patient",
    "account": "patients",
    "max_rows": 1,
    "types": {"patient": "int", "age": "int"},
    "bounds": {"age": (0, 100)},
    "budget": Budget(epsilon=1000),
}
CHANGED = "may have changed since"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


def write(folder: Path, *, without: int | None = None, people: int = 60) -> None:
    lines = "".join(f"{who},{who % 90}\n" for who in range(people) if who != without)
    for name in ("visits", "stays"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "first.csv").write_text(f"patient,age\n{lines}")


def clinic(folder: Path, *, seed: int = 5, version: str = "2026-11", **declared: Any) -> Curator:
    """Two tables of the same people, each a folder of files."""
    curator = Curator.for_tests(str(folder / "book"), bits=SeededBits(seed))
    for name in ("visits", "stays"):
        curator.protect(str(folder / name), name=name, **{**DECLARED, **declared, "version": version})
    return curator


def kinds(curator: Curator) -> list[str]:
    return [entry.kind for entry in curator.entries()]


# ---------------------------------------------------------------------------------- what is asked anew, what stays free


def test_answers_are_free_before_and_asked_anew_after(folder: Path) -> None:
    curator = clinic(folder)
    first = curator.ask(COUNT, epsilon=20)
    assert curator.ask(COUNT, epsilon=20).replayed
    (folder / "visits" / "second.csv").write_text("patient,age\n" + "".join(f"{who},50\n" for who in range(1000, 1400)))
    assert curator.ask(COUNT, epsilon=20).records == first.records  # nobody said that the data are new
    curator.advance("visits", version="2026-12")
    after = curator.ask(COUNT, epsilon=20)
    assert not after.replayed
    assert after[0]["n"] > 400 > first[0]["n"]
    assert curator.ask(COUNT, epsilon=20).records == after.records
    assert curator.budget("patients").spent == PureDP(40)
    curator.verify()


def test_answers_of_other_tables_stay_free_and_those_of_both_do_not(folder: Path) -> None:
    curator = clinic(folder)
    for sql in (COUNT, STAYS, BOTH):
        curator.ask(sql, epsilon=1)
    curator.advance("visits", version="2026-12")
    assert [curator.ask(sql, epsilon=1).replayed for sql in (STAYS, COUNT, BOTH)] == [True, False, False]


def test_the_document_says_what_changed_and_what_was_spent(folder: Path) -> None:
    curator = clinic(folder)
    for sql in (COUNT, OLD, STAYS, BOTH):
        curator.ask(sql, epsilon=1)
    curator.ask_many([COUNT, STAYS], epsilon=2)  # stored already, and asked with more: one charge
    before = curator.verify().sequence
    told = curator.advance("visits", version="2026-12", note="the files of December")
    assert (told.table, told.account, told.before, told.version) == ("visits", "patients", "2026-11", "2026-12")
    assert curator.verify().sequence == before + 1
    assert told.since == curator.entries()[-1].time
    assert (told.asked_anew, told.free) == (sum(map(_reads_visits, charged(curator))), 1)
    assert (told.spent, told.spent_share) == (
        curator.budget("patients").lifetime,
        curator.budget("patients").spent_share,
    )
    again = curator.advance("visits", version="2027-01")
    assert (again.asked_anew, again.free, again.spent) == (0, 1, told.spent)
    form = result_of(VERBS["advance"])
    document = json.loads(json.dumps(form.write(told)))
    assert form.read(document) == told
    assert "% of the budget" in str(told)


def charged(curator: Curator) -> list[Entry]:
    return [each for each in curator.entries() if each.kind == "charge" and "beside" not in each.content]


def _reads_visits(entry: Entry) -> bool:
    return "visits" in tables_of(entry.content["question"])


@pytest.mark.ci
def test_counts_are_those_of_what_is_replayed(folder: Path) -> None:
    """Each stored answer is asked for again: as many as the document says cost nothing."""
    curator = clinic(folder)
    asked = [COUNT, OLD, STAYS, BOTH, f"{STAYS} WHERE age > 3"]
    for sql in asked:
        curator.ask(sql, epsilon=1)
    told = curator.advance("stays", version="2")
    free = [curator.ask(sql, epsilon=1).replayed for sql in asked]
    assert (free.count(False), free.count(True)) == (told.asked_anew, told.free) == (3, 2)


@pytest.mark.ci
def test_everything_that_was_bought_of_a_version_is_bought_anew(folder: Path) -> None:
    """Profiles, private bounds, models and synthetic tables are keyed by the version as answers are."""
    curator = clinic(folder, budget=Budget(epsilon=1000, delta="1e-4"))
    learner = DecisionTreeClassifier(epsilon=1)
    bought: dict[str, Callable[[], Any]] = {
        "profile": lambda: curator.profile("visits", epsilon=1),
        "fit": lambda: curator.fit(learner, "SELECT age, age > 40 AS old FROM visits", target="old").replayed_,
        "synthesize": lambda: curator.synthesize("SELECT age FROM visits", epsilon=1, generator="independent").replayed,
    }
    for name, buy in bought.items():
        buy()
        spent = kinds(curator).count("charge")
        buy()
        assert kinds(curator).count("charge") == spent, name
    curator.advance("visits", version="2")
    for name, buy in bought.items():
        spent = kinds(curator).count("charge")
        buy()
        assert kinds(curator).count("charge") > spent, name


def test_a_ledger_in_which_nothing_was_advanced_is_what_it_was(folder: Path) -> None:
    """Its keys, its states and its version on disk are those of before."""
    with clinic(folder) as curator:
        curator.ask(COUNT, epsilon=1)
        assert "advanced" not in curator._ledger.origins()["visits"]
    with clinic(folder) as curator:
        assert curator.ask(COUNT, epsilon=1).replayed
        curator.verify()


# ---------------------------------------------------------------------------------------------------------- who follows


def test_other_curators_follow_with_their_next_question(folder: Path) -> None:
    one, other = clinic(folder), clinic(folder, seed=6)
    one.ask(COUNT, epsilon=1)
    assert other.ask(COUNT, epsilon=1).replayed
    one.advance("visits", version="2026-12")
    asked = other.ask(COUNT, epsilon=1)
    assert (asked.replayed, asked.versions[0].version) == (False, "2026-12")
    assert one.ask(COUNT, epsilon=1).records == asked.records


PROGRAM = """
import sys
from pathlib import Path
from tests.curator.test_advance import COUNT, clinic

with clinic(Path(sys.argv[1])) as curator:
    for line in sys.stdin:
        answer = curator.ask(COUNT, epsilon=1)
        print(answer.versions[0].version, answer.replayed, flush=True)
"""


@pytest.mark.ci
def test_a_curator_in_another_process_follows(folder: Path) -> None:
    with clinic(folder) as curator:
        curator.ask(COUNT, epsilon=1)
        command = [sys.executable, "-c", PROGRAM, str(folder)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            told = []
            for version in ("2026-12", "2027-01"):
                for _ in range(2):
                    child.stdin.write("ask\n")
                    child.stdin.flush()
                    told.append(child.stdout.readline().split())
                curator.advance("visits", version=version)
            child.stdin.close()
        assert told == [["2026-11", "True"]] * 2 + [["2026-12", "False"], ["2026-12", "True"]]
        curator.verify()


def test_a_file_keeps_its_first_label(folder: Path) -> None:
    with clinic(folder) as curator:
        curator.ask(COUNT, epsilon=1)
        curator.advance("visits", version="2026-12")
        asked = curator.ask(COUNT, epsilon=1)
        entries = len(curator.entries())
    with clinic(folder) as curator:  # with the label of November, as the file has it
        assert len(curator.entries()) == entries
        again = curator.ask(COUNT, epsilon=1)
        assert (again.replayed, again.records) == (True, asked.records)
        assert [each.version for each in again.versions] == ["2026-12"]
    with clinic(folder, version="2026-12") as curator:  # or with the one of the advance
        assert curator.ask(COUNT, epsilon=1).replayed
        assert curator._ledger.origins()["visits"]["versions"] == ["2026-11", "2026-12"]
    with clinic(folder, version="a new label") as curator:  # which attaches, as it always did
        assert not curator.ask(COUNT, epsilon=1).replayed
        assert curator._ledger.origins()["visits"]["versions"][-1] == "a new label"
        curator.verify()
    with clinic(folder) as curator:  # the others stay at the advance
        assert [each.version for each in curator.ask(COUNT, epsilon=1).versions] == ["2026-12"]


def test_a_declaration_that_is_replaced_stays_at_its_version(folder: Path) -> None:
    curator = clinic(folder)
    curator.advance("visits", version="2026-12")
    wider = {**DECLARED, "bounds": {"age": (0, 120)}, "version": "2026-11"}
    curator.protect(str(folder / "visits"), name="visits", **wider, change=True)
    assert curator.entries()[-1].content["version"] == "2026-12"
    assert curator._ledger.origins()["visits"]["versions"] == ["2026-11", "2026-12"]
    assert curator.ask(COUNT, epsilon=1).versions[0].version == "2026-12"
    curator.verify()


def test_a_curator_that_was_declared_otherwise_is_refused_as_before(folder: Path) -> None:
    one, other = clinic(folder), clinic(folder, seed=6)
    one.advance("visits", version="2")
    wider = {**DECLARED, "bounds": {"age": (0, 120)}, "version": "2"}
    one.protect(str(folder / "visits"), name="visits", **wider, change=True)
    with pytest.raises(DeclarationChanged):
        other.ask(COUNT, epsilon=1)


def test_a_question_that_has_begun_stays_with_its_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is planned, charged and stored at the version before; who asks next pays for the new one."""
    one, other = clinic(folder), clinic(folder, seed=6)
    admit, moved = type(one._ledger).admit, list[Any]()

    def admit_late(ledger: Any, *given: Any, **more: Any) -> Any:
        if not moved and ledger is one._ledger:
            moved.append(other.advance("visits", version="2026-12"))
        return admit(ledger, *given, **more)

    monkeypatch.setattr(type(one._ledger), "admit", admit_late)
    begun = one.ask(COUNT, epsilon=1)
    assert (begun.replayed, begun.versions[0].version, begun.versions[0].since < moved[0].since) == (
        False,
        "2026-11",
        True,
    )
    charges = kinds(one).count("charge")
    after = one.ask(COUNT, epsilon=1)
    assert (after.replayed, after.versions[0].version, kinds(one).count("charge")) == (False, "2026-12", charges + 1)
    one.verify()


def test_a_batch_is_at_one_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An advance between two of its questions: all of them are about the new version."""
    one, other = clinic(folder), clinic(folder, seed=6)
    read, moved = type(one._catalog).read, list[Any]()

    def read_and_advance(catalog: Any, *given: Any, **more: Any) -> Any:
        found = read(catalog, *given, **more)
        if not moved:
            moved.append(other.advance("visits", version="2026-12"))
        return found

    monkeypatch.setattr(type(one._catalog), "read", read_and_advance)
    answers = one.ask_many([COUNT, OLD], epsilon=1)
    assert [each.version for answer in answers for each in answer.versions] == ["2026-12", "2026-12"]


# -------------------------------------------------------------------------------------------- what is found privately


PRIVATE: dict[str, Any] = {"limits": "private", "limits_epsilon": 1, "max_rows": None}


def test_private_limits_are_found_anew(folder: Path) -> None:
    one, other = clinic(folder, **PRIVATE), clinic(folder, seed=6, **PRIVATE)
    for curator in (one, other):
        curator.ask(COUNT, epsilon=1)
    one.advance("visits", version="2")
    charges = kinds(one).count("charge")
    assert "chosen privately" in str(other.ask(COUNT, epsilon=1).notes)  # limits, and the question
    assert kinds(one).count("charge") == charges + 2
    assert one.ask(COUNT, epsilon=1).replayed
    assert kinds(one).count("charge") == charges + 2
    one.verify()


def test_limits_that_were_found_meanwhile_are_not_those_of_the_next_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An advance between the release of the limits and the question: both are bought for the new version."""
    one, other = clinic(folder, **PRIVATE), clinic(folder, seed=6, **PRIVATE)
    store, moved = type(one._ledger).store_answer, list[Any]()

    def store_and_advance(ledger: Any, *given: Any, **more: Any) -> Any:
        found = store(ledger, *given, **more)
        if not moved:
            moved.append(other.advance("visits", version="2"))
        return found

    monkeypatch.setattr(type(one._ledger), "store_answer", store_and_advance)
    answer = one.ask(COUNT, epsilon=1)
    assert answer.versions[0].version == "2"
    assert len([note for note in answer.notes if "chosen privately" in note]) == 2
    assert kinds(one).count("charge") == 3
    assert other.ask(COUNT, epsilon=1).replayed
    one.verify()


@pytest.mark.ci
def test_a_profile_finds_limits_of_the_present_version_alone(folder: Path) -> None:
    one, other = clinic(folder, **PRIVATE), clinic(folder, seed=6, **PRIVATE)
    one.advance("visits", version="2")
    other.profile("visits", epsilon=1)
    assert kinds(one).count("charge") == 2  # limits of the new version, and the profile
    one.ask(COUNT, epsilon=1)
    assert kinds(one).count("charge") == 3


# ------------------------------------------------------------------------------------------------------ what is said


def test_answers_say_which_version_they_are_about_and_since_when(folder: Path) -> None:
    curator = clinic(folder)
    attached = next(entry for entry in curator.entries() if entry.kind == "attach")
    answer = curator.ask(COUNT, epsilon=1)
    (told,) = answer.versions
    assert (told.table, told.version, told.since) == ("visits", "2026-11", attached.time)
    curator.advance("visits", version="2026-12")
    moved = curator.entries()[-1].time
    both = curator.ask(BOTH, epsilon=1)
    assert [(each.table, each.version, each.since) for each in both.versions] == [
        ("stays", "2026-11", next(e.time for e in curator.entries() if e.content.get("table") == "stays")),
        ("visits", "2026-12", moved),
    ]
    line = f"Data version: {both.versions[0]}; {both.versions[1]}"
    assert line in str(both)
    assert line in both._repr_html_()
    document = json.loads(json.dumps(ANSWER.write(both)))
    assert [each["version"] for each in document["versions"]] == ["2026-11", "2026-12"]
    assert ANSWER.read(document).versions == both.versions
    assert curator.ask_many([COUNT, STAYS], epsilon=1)[0].versions[0].since == moved
    assert curator.rehearse(COUNT).versions == ()


def test_without_a_version_nothing_is_said_of_it(folder: Path) -> None:
    curator = clinic(folder, version="")
    answer = curator.ask(COUNT, epsilon=1)
    assert answer.versions == ()
    assert "version" not in str(answer) + answer._repr_html_()


def test_a_stored_answer_about_many_files_names_the_command(folder: Path) -> None:
    curator = clinic(folder)
    assert CHANGED not in str(curator.ask(COUNT, epsilon=1))
    again = curator.ask(COUNT, epsilon=1)
    assert "discreet advance visits --version LABEL" in str(again)
    curator.advance("visits", version="2026-12")
    assert CHANGED not in str(curator.ask(COUNT, epsilon=1))
    assert CHANGED in str(curator.ask(COUNT, epsilon=1))  # nobody advanced it since


def test_the_note_does_not_depend_on_what_files_do(folder: Path) -> None:
    curator = clinic(folder)
    curator.ask(COUNT, epsilon=1)
    unchanged = curator.ask(COUNT, epsilon=1).notes
    (folder / "visits" / "more.csv").write_text("patient,age\n9999,3\n")
    assert curator.ask(COUNT, epsilon=1).notes == unchanged
    (folder / "visits" / "first.csv").unlink()
    assert curator.ask(COUNT, epsilon=1).notes == unchanged


def test_one_file_and_a_frame_say_nothing_of_files(folder: Path) -> None:
    curator = Curator.for_tests(str(folder / "other"), bits=SeededBits(1))
    curator.protect(str(folder / "visits" / "first.csv"), name="visits", **DECLARED)
    curator.protect(pa.table({"patient": [1, 2], "age": [3, 4]}), name="stays", **{**DECLARED, "types": None})
    for sql in (COUNT, STAYS):
        curator.ask(sql, epsilon=1)
        assert CHANGED not in str(curator.ask(sql, epsilon=1).notes)


def test_folders_patterns_and_lists_may_grow(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("patient\n1\n")
    growing = [tmp_path, str(tmp_path), str(tmp_path / "*.csv"), [tmp_path / "a.csv", tmp_path / "b.csv"]]
    growing.append(Folder(path=tmp_path, suffix=".png", shape=(1, 2, 2)))
    assert all(may_grow(source) for source in growing)
    fixed = [tmp_path / "a.csv", [tmp_path / "a.csv"], pa.table({"a": [1]}), [{"a": 1}, {"a": 2}]]
    fixed += ["postgresql://db.example/clinic/visits", "spark://host:7077/clinic.visits"]
    assert not any(may_grow(source) for source in fixed)


# --------------------------------------------------------------------------------------------------- what is refused


def test_an_analyst_moves_nothing_on(folder: Path) -> None:
    curator = clinic(folder)
    curator.appoint("ana", "analyst", account="patients")
    entries = len(curator.entries())
    with pytest.raises(NotPermitted):
        curator.advance("visits", version="2", by="ana")
    with pytest.raises(UnknownTable):
        curator.advance("vists", version="2")
    with pytest.raises(InvalidParameter, match="version"):
        curator.advance("visits", version="2026-11")
    assert len(curator.entries()) == entries


def test_an_analyst_chooses_no_version() -> None:
    """No request but the steward's own has one."""
    offering = [name for name, verb in VERBS.items() if any(a.name == "version" for a in arguments(verb.request))]
    assert offering == ["advance"]


def test_what_is_proposed_for_a_label_is_accepted(folder: Path) -> None:
    curator = clinic(folder)
    with pytest.raises(InvalidParameter) as refused:
        curator.advance("visits", version="2026-11")
    proposed = re.search(r"version=(\S+)\.$", str(refused.value.hint))
    assert proposed is not None
    assert curator.advance("visits", version=proposed[1]).version == proposed[1]


def test_what_is_proposed_for_a_table_in_memory_works(folder: Path) -> None:
    curator = Curator.for_tests(str(folder / "other"), bits=SeededBits(1))
    declared = {**DECLARED, "types": None}
    curator.protect(pa.table({"patient": [*range(9)], "age": [40] * 9}), name="visits", **declared)
    curator.ask(COUNT, epsilon=1)
    with pytest.raises(InvalidParameter) as refused:
        curator.advance("visits", version="2")
    assert "Protect the new data under the same name, at this version" in str(refused.value)
    curator.protect(pa.table({"patient": [*range(900)], "age": [40] * 900}), name="visits", version="2", **declared)
    answer = curator.ask(COUNT, epsilon=1)
    assert (answer.replayed, answer[0]["n"] > 500) == (False, True)


def test_an_advance_gives_no_budget(folder: Path) -> None:
    curator = clinic(folder, budget=Budget(epsilon=1))
    curator.ask(COUNT, epsilon=1)
    told = curator.advance("visits", version="2")
    assert told.spent == PureDP(1)
    assert told.spent_share == 1
    with pytest.raises(InsufficientBudget):
        curator.ask(COUNT, epsilon=1)


# ---------------------------------------------------------------------------------------------- neighbours and mutants


def told_of(folder: Path, without: int | None) -> Iterator[Any]:
    """Everything that an advance shows, on a table with or without a person."""
    folder.mkdir()
    write(folder, without=without)
    curator = clinic(folder)
    curator.ask(COUNT, epsilon=1)
    yield curator.ask(COUNT, epsilon=1).notes
    told = curator.advance("visits", version="2", note="new")
    moment = told.since[:19].replace("T", " ")
    yield told.before, told.asked_anew, told.free, told.spent, str(told).replace(moment, "")
    yield curator.ask(COUNT, epsilon=1).notes
    yield [(each.table, each.version) for each in curator.ask(COUNT, epsilon=1).versions]
    for bad in ("1", "2", ""):
        try:
            curator.advance("visits", version=bad)
        except InvalidParameter as error:
            yield str(error)
    yield [(entry.kind, entry.who) for entry in curator.entries()]


def test_neighbours_show_the_same(tmp_path: Path) -> None:
    one, other = list(told_of(tmp_path / "one", None)), list(told_of(tmp_path / "other", 7))
    assert one == other


def test_an_advance_reads_no_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = clinic(folder)
    curator.ask(COUNT, epsilon=1)
    for name in ("visits", "stays"):
        (folder / name / "first.csv").unlink()
        (folder / name).rmdir()
    monkeypatch.setattr(type(curator._engine), "read", lambda *_: pytest.fail("data were read"))
    assert curator.advance("visits", version="2").asked_anew == 1


def test_a_curator_that_does_not_follow_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the test above fails on it."""
    monkeypatch.setattr(DeclaredTable, "current", lambda _, declared: declared)
    with pytest.raises(AssertionError):
        test_other_curators_follow_with_their_next_question(folder)


def test_a_version_that_is_taken_from_the_data_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the label has the size of the file in it, so that one person more is another label."""
    follow = FollowedVersions.follow

    def by_content(self: FollowedVersions, schema: Any, present: DeclaredTable) -> Any:
        size = sum(path.stat().st_size for path in (tmp_path / "one" / "visits").rglob("*.csv"))
        return replace(follow(self, schema, present), version=f"{schema.version.partition('/')[0]}/{size}")

    monkeypatch.setattr(FollowedVersions, "follow", by_content)
    (tmp_path / "one").mkdir()
    write(tmp_path / "one")
    curator = clinic(tmp_path / "one")
    curator.ask(COUNT, epsilon=1)
    write(tmp_path / "one", without=7)
    with pytest.raises(AssertionError):
        assert curator.ask(COUNT, epsilon=1).replayed


def test_an_act_without_its_check_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: anybody may."""
    monkeypatch.setattr("discreet.ledger.policy.require_steward", lambda *_: None)
    with pytest.raises(pytest.fail.Exception):
        test_an_analyst_moves_nothing_on(folder)


def test_declared_tables_are_read_once_while_nothing_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question parses no declaration again: there may be a million keys in it."""
    curator, reads = clinic(folder), list[str]()
    curator.ask(COUNT, epsilon=1)
    read = vars(journal)["_read_declared"]

    def read_and_note(rows: Any, table: str) -> Any:
        reads.append(table)
        return read(rows, table)

    monkeypatch.setattr(journal, "_read_declared", read_and_note)
    for _ in range(3):
        curator.ask(COUNT, epsilon=1)
    assert reads == []
    curator.advance("visits", version="2")
    for _ in range(3):
        curator.ask(COUNT, epsilon=1)
    assert reads == ["visits"]


# -------------------------------------------------------------------------------------------------------- counting


def entry(sequence: int, kind: str, about: int = 0, account: str = "a", **content: Any) -> Entry:
    return Entry(sequence, "", kind, account, "owner", "", "", about, json.dumps(content), "")


def asked(sequence: int, *tables: str, joined: int = 1, account: str = "a", **more: Any) -> Entry:
    question = json.dumps({"table": tables[0], "source": ["join", *(["table", name, None] for name in tables)]})
    return entry(sequence, "charge", account=account, question=question, joined=joined, **more)


def test_answers_are_counted_by_what_they_read() -> None:
    attach = [entry(1, "attach", table="v", version="1", declaration="d")]
    attach += [entry(2, "attach", table="w", version="", declaration="d")]
    paid = [asked(3, "v"), entry(4, "answer", 3), asked(5, "w"), entry(6, "answer", 5)]
    paid += [asked(7, "w", "v"), entry(8, "answer", 7)]
    failed = [asked(9, "v"), entry(10, "fail", 9), asked(11, "v")]
    beside = [asked(12, "v", beside=11), entry(13, "answer", 12)]
    advance = entry(20, "advance", table="v", version="2")
    before = [*attach, *paid, *failed, *beside]
    assert count_answers([*before, advance, asked(21, "v"), entry(22, "answer", 21)], "a", advance) == (2, 1)
    again = entry(14, "attach", table="v", version="1", declaration="d")  # from another file
    assert count_answers([*before, again], "a", advance) == (2, 1)
    for version, declaration in (("1", "e"), ("3", "d")):
        changed = entry(14, "attach", table="v", version=version, declaration=declaration)
        assert count_answers([*before, changed], "a", advance) == (0, 1)
    assert count_answers([*before, entry(14, "advance", table="w", version="3")], "a", advance) == (1, 0)


def test_answers_of_several_accounts_belong_to_all_of_them() -> None:
    joined = [asked(2, "v", "x", joined=2, account="a"), asked(3, "v", "x", joined=2, account="b")]
    entries = [entry(1, "attach", table="v", version="1", declaration="d"), *joined, entry(4, "answer", 2)]
    advance = entry(5, "advance", table="v", version="2", account="b")
    assert [count_answers(entries, account, advance) for account in "ab"] == [(1, 0), (1, 0)]


@pytest.mark.parametrize("question", ["{}", "no json", "[" * 10_000, '"visits"', '{"table":["visits"]}', '{"count":1}'])
def test_questions_of_other_programs_are_read_without_an_error(question: str) -> None:
    assert tables_of(question) == frozenset()


def test_a_plan_names_its_tables(folder: Path) -> None:
    curator = clinic(folder)
    for sql, names in ((COUNT, {"visits"}), (BOTH, {"visits", "stays"})):
        curator.ask(sql, epsilon=1)
        assert tables_of(charged(curator)[-1].content["question"]) == names
