"""Tables of objects: the answers of files, nothing seen of a bucket, no secret in a ledger, only listed places."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.curator.served import open_curator
from discreet.engines import DuckDB
from discreet.engines.objects import object_store, query_view
from discreet.engines.objects.object_store import Retries
from discreet.errors import InsufficientBudget, InvalidParameter, QueryFailed
from discreet.ledger import Ledger
from discreet.privacy import Budget
from tests.curator.test_many_files import QUESTIONS, ROWS, STAGES, clinic, told
from tests.engines.lakes import parquet, partitioned, scattered
from tests.object_server import PROFILE, ObjectServer, put_folder

BUCKET = "canary-lake"
SOURCE = f"s3://{BUCKET}/secretive/#profile={PROFILE}"


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets retries come at once."""
    monkeypatch.setattr(object_store, "RETRIES", Retries(sleep=lambda _: None))


def fill(server: ObjectServer, folder: Path, rows: list[Any] = ROWS) -> str:
    put_folder(server, scattered(rows, folder, "parquet", 2), f"{BUCKET}/secretive")
    return SOURCE


# -------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.ci
def test_answers_are_those_of_a_file(lake: ObjectServer, tmp_path: Path) -> None:
    parquet(ROWS, tmp_path / "one")
    source = fill(lake, tmp_path / "lake")
    assert told(source, QUESTIONS[1:2]) == told(tmp_path / "one.parquet", QUESTIONS[1:2])


@pytest.mark.ci
def test_neighbours_differ_in_nothing_but_what_noise_covers(lake: ObjectServer, tmp_path: Path) -> None:
    made = iter(range(10**6))

    def curator_of(rows: list[Any]) -> Curator:
        name = f"{next(made)}"
        put_folder(lake, partitioned(rows, tmp_path / name, "parquet"), f"{BUCKET}/{name}")
        return clinic(f"s3://{BUCKET}/{name}/#profile={PROFILE}")

    rows = [dict(row) for row in ROWS if row["patient"] < 3]
    found = audit.query(curator_of, [QUESTIONS[3]], rows, neighbours=1, delta=1e-7)
    assert found.passed, found.summary()


# --------------------------------------------------------------------------------------------------- one list per query


def _grows(server: ObjectServer, content: bytes) -> list[int]:
    """Lets a bucket gain an object after each time that it is listed; returns how many there were each time."""
    seen = list[int]()

    def hook(owner: ObjectServer, method: str, name: str) -> int | None:
        if (method, name) == ("GET", BUCKET):
            seen.append(len(owner.objects))
            threaded = f"{BUCKET}/secretive/more{len(seen)}.parquet"
            owner.after = lambda: owner.objects.__setitem__(threaded, content)
        return None

    server.hook = hook
    return seen


def _stages_are_about_the_same_rows(server: ObjectServer, folder: Path) -> None:
    with clinic(fill(server, folder), bounds={}) as curator:
        seen = _grows(server, server.objects[f"{BUCKET}/secretive/part1.parquet"])
        curator.ask(STAGES, epsilon=20)  # finds bounds first
        assert seen == [2]


def test_a_query_lists_once(lake: ObjectServer, tmp_path: Path) -> None:
    _stages_are_about_the_same_rows(lake, tmp_path / "lake")


@pytest.mark.ci
def test_a_list_for_every_stage_is_caught(lake: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful:
        def get(self) -> None:
            return None

        def set(self, view: object) -> None:
            del view

        def reset(self, token: object) -> None:
            del token

    monkeypatch.setattr(query_view, "_VIEW", Forgetful())
    with pytest.raises(AssertionError):
        _stages_are_about_the_same_rows(lake, tmp_path / "lake")


def test_nothing_is_requested_before_the_charge(lake: ObjectServer, tmp_path: Path) -> None:
    with clinic(fill(lake, tmp_path / "lake")) as curator:
        lake.asked.clear()
        curator.explain(QUESTIONS[1], epsilon=1)
        with pytest.raises(InsufficientBudget):
            curator.ask(QUESTIONS[1], epsilon=1000)
        assert lake.asked == []
        answer = list(curator.ask(QUESTIONS[1], epsilon=1))
        asked = len(lake.asked)
        assert asked > 0
        assert list(curator.ask(QUESTIONS[1], epsilon=1)) == answer  # a replay
        assert len(lake.asked) == asked


# -------------------------------------------------------------------------------------------------------------- silence


def _breaks(server: ObjectServer, name: str) -> Iterator[None]:
    """Lets a server fail in every way that a reader may notice."""
    for status in (400, 403, 404, 500):
        server.hook = lambda owner, method, asked, status=status: status  # noqa: ARG005
        yield
    server.hook = None
    before = server.objects.pop(name)
    server.objects[name] = b"PAR1CANARY"
    yield
    del server.objects[name]
    server.objects[f"{BUCKET}/secretive/CANARY.arrow"] = b"ARROW1CANARY"
    yield
    del server.objects[f"{BUCKET}/secretive/CANARY.arrow"]
    server.objects.clear()
    yield
    server.objects[name] = before


@pytest.mark.ci
def test_a_failure_says_nothing(
    lake: ObjectServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    put_folder(lake, scattered(ROWS, tmp_path / "lake", "parquet", 1), f"{BUCKET}/secretive")
    texts, shown = set(), list[str]()
    with clinic(SOURCE, tmp_path / "book.ledger") as curator:
        for _ in _breaks(lake, f"{BUCKET}/secretive/part0.parquet"):
            with pytest.raises(QueryFailed) as caught:
                curator.ask(QUESTIONS[0], epsilon=1, progress=shown.append)
            texts.add(f"{caught.value} {caught.value.__cause__} {caught.value.__context__}")
            curator.unlock("visits", note="mended")
        answer = curator.ask(QUESTIONS[0], epsilon=1, progress=shown.append)
        shown += [str(answer), *answer.notes]
        shown += [str(entry.content) for entry in curator.history("visits") if entry.kind != "attach"]
    assert len(texts) == 1
    seen = "".join(texts) + caplog.text + "".join(capfd.readouterr()) + "".join(shown)
    for private in ("CANARY", "canary-lake", "secretive", str(lake.port), "part0", "Bucket", "AWS"):
        assert private not in seen
    assert b"SECRET" not in (tmp_path / "book.ledger").read_bytes()


def test_a_failure_of_the_web_says_nothing(
    web: ObjectServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    put_folder(web, scattered(ROWS, tmp_path / "lake", "parquet", 1), "secretive")
    with clinic(f"https://{web.host}/secretive/part0.parquet#profile={PROFILE}", tmp_path / "book.ledger") as curator:
        curator.ask(QUESTIONS[0], epsilon=1)
        for status in (403, 404, 500, 302):
            web.hook = lambda owner, method, asked, status=status: status  # noqa: ARG005
            with pytest.raises(QueryFailed) as caught:
                curator.ask(QUESTIONS[2], epsilon=1)
            assert str(caught.value) == str(QueryFailed())
            curator.unlock("visits", note="mended")
    seen = caplog.text + "".join(capfd.readouterr())
    for private in ("CANARY", "secretive", str(web.port), "part0"):
        assert private not in seen
    assert b"SECRET" not in (tmp_path / "book.ledger").read_bytes()


# -------------------------------------------------------------------------------------------------------------- protect


@pytest.mark.parametrize(
    "address",
    [
        "s3://AKIA:s3cret@lake/v/",
        "s3://AKIA:s3/cret@lake/v/",
        "s3://s3cret@lake/v/",
        "https://ana:s3cret@data.example/v.csv",
        "https://data.example/v.csv?token=s3cret",
        "https://data.example/v.csv?s3cret",
        "az://lake@account:s3cret/v/",
        "abfs://lake:s3cret@account.dfs.core.windows.net/v/",
        "gs://lake/v/#s3cret",
        "s3://lake/v/?s3cret",
        "s3://lake/v/#profile=a&key=s3cret",
        "http://data.example/s3cret.csv",
        "https://data.example/../s3cret.csv",
        "https://data.example/open/%2e%2e/s3cret.csv",
        "https://data.example/open%2F..%2Fs3cret.csv",
        "https://data.example/s3cret\n.csv",
        "s3a://lake/s3cret.csv",
    ],
)
def test_addresses_with_secrets_are_refused_and_not_repeated(address: str) -> None:
    curator = Curator(engine=DuckDB(threads=1))
    for given in (address, [address, "https://data.example/a.csv"]):
        with pytest.raises(InvalidParameter) as caught:
            curator.protect(given, name="v", budget=Budget(epsilon=1), types={"n": "int"})
        assert "s3cret" not in str(caught.value)
    assert not curator.accounts()


def _refusal(source: Any, **declared: Any) -> str:
    with pytest.raises(InvalidParameter) as caught:
        clinic(source, **declared)
    return str(caught.value)


def test_a_steward_hears_what_to_check(lake: ObjectServer, tmp_path: Path, web: ObjectServer) -> None:
    del web  # whose profile is in force
    assert "to be a setting of such addresses" in _refusal(SOURCE)
    (tmp_path / "profiles.toml").write_text(f'[tests]\nendpoint_override = "{lake.host}"\nscheme = "http"\n')
    assert "there is no such bucket or object" in _refusal(SOURCE)
    lake.hook = lambda *_: 403
    assert "Check the credentials" in _refusal(SOURCE)
    lake.hook = lambda *_: 500
    refused = _refusal(SOURCE)
    assert "Check the name, the network" in refused
    assert "CANARY" not in refused
    assert "DISCREET_PROFILES" in _refusal(SOURCE.replace("=tests", "=other"))
    (tmp_path / "profiles.toml").write_text('[tests]\nendpoint_override = "lake.example:80"\nscheme = "http"\n')
    assert "Leave it out" in _refusal(SOURCE)
    (tmp_path / "profiles.toml").write_text("[tests\nSECRET")
    assert "SECRET" not in _refusal(SOURCE)


def test_a_server_of_the_web_must_say_what_is_read(web: ObjectServer) -> None:
    address = f"https://{web.host}/v.csv#profile={PROFILE}"
    web.objects["v.csv"] = b"n\n1\n"
    declared: dict[str, Any] = {"types": {"patient": "int"}, "bounds": {}, "keys": {}}
    with clinic(address, **declared):
        pass
    web.headers = {"ETag"}
    with clinic(address, **declared):
        pass
    web.headers = {"ETag", "Last-Modified"}
    assert "to be readable from here" in _refusal(address, **declared)
    web.headers = set()
    web.hook = lambda *_: 302
    assert "to be readable from here" in _refusal(address, **declared)
    assert "Web servers have no lists" in _refusal(f"https://{web.host}/open/", **declared)


def test_texts_need_types_and_the_refusal_names_the_columns(lake: ObjectServer) -> None:
    lake.objects[f"{BUCKET}/secretive/a.csv"] = b"patient,age\n1,2\n"
    with pytest.raises(InvalidParameter, match='"age": "text"') as caught:
        clinic(SOURCE, types=None, bounds={}, keys={})
    assert "ward" not in str(caught.value)


def test_columns_stay_as_they_were_declared(lake: ObjectServer, tmp_path: Path) -> None:
    source, ledger = fill(lake, tmp_path / "lake"), tmp_path / "book.ledger"
    with clinic(source, ledger, types=None) as curator:
        before = curator.verify()
    lake.objects[f"{BUCKET}/secretive/other.csv"] = b"patient,more,age\nx,1,old\n"
    with clinic(source, ledger, types=None) as curator:
        assert curator.verify() == before
        assert curator.ask(QUESTIONS[1], epsilon=1)


def test_a_delta_table_in_a_bucket_is_refused(lake: ObjectServer) -> None:
    lake.objects[f"{BUCKET}/secretive/_delta_log/0.json"] = b"{}"
    assert "Write its rows to Parquet from Delta" in _refusal(SOURCE)


@pytest.mark.ci
def test_the_same_objects_have_one_budget(lake: ObjectServer, tmp_path: Path) -> None:
    with clinic(fill(lake, tmp_path / "lake")) as curator:
        below = SOURCE.partition("#")[0]
        for again in (
            f"{below}*.parquet",
            f"{below}part1.parquet",
            f"s3://{BUCKET}",
            below[:-1],
            [f"{below}part0.parquet"],
        ):
            with pytest.raises(InvalidParameter, match="has a budget"):
                curator.protect(
                    f"{again}#profile={PROFILE}" if isinstance(again, str) else [f"{again[0]}#profile={PROFILE}"],
                    name="again",
                    unit="patient",
                    budget=Budget(epsilon=1),
                    max_rows=1,
                )


def test_one_file_of_the_web_has_one_budget_however_it_is_written(web: ObjectServer) -> None:
    web.objects["a b.csv"] = b"n\n1\n"
    curator = Curator(engine=DuckDB(threads=1))
    told_of = {"budget": Budget(epsilon=1), "types": {"n": "int"}}
    curator.protect(f"https://{web.host}/a%20b.csv#profile={PROFILE}", name="one", **told_of)  # type: ignore[arg-type]
    other = f"HTTPS://{web.host}/%61%20b.csv#profile={PROFILE}"
    with pytest.raises(InvalidParameter, match="has a budget"):
        curator.protect(other, name="two", **told_of)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------------- places

_FILE = """
{objects}
[budgets.visits]
epsilon = 1
[tables.visits]
source = "{source}"
unit = ""
types = {{ age = "int" }}
"""


def _served(tmp_path: Path, source: str, objects: str = "") -> Curator:
    path = tmp_path / "discreet.toml"
    path.write_text(_FILE.format(objects=objects, source=source))
    return open_curator(path, Ledger(), engine=DuckDB(threads=1))


def test_a_service_reads_what_its_owner_lists(lake: ObjectServer, tmp_path: Path) -> None:
    source = fill(lake, tmp_path / "lake")
    with pytest.raises(InvalidParameter) as caught:
        _served(tmp_path, source)
    assert lake.asked == []
    remedy = caught.value.hint.rpartition(": ")[2]
    assert remedy == f'objects = ["s3://{BUCKET}"]'
    _served(tmp_path, source, remedy).close()  # what is proposed is accepted
    _served(tmp_path, source, f'objects = ["gs://{BUCKET}", "s3://{BUCKET}/secretive/"]').close()
    places = (f"s3://{BUCKET}/secret", f"s3://{BUCKET}/secretive/deep", "s3://canary", f"gs://{BUCKET}")
    for other in (*places, "https://canary-lake"):
        with pytest.raises(InvalidParameter, match="to be in a listed bucket"):
            _served(tmp_path, source, f'objects = ["{other}"]')


def test_a_list_holds_for_a_library_too_where_there_is_one(lake: ObjectServer, tmp_path: Path) -> None:
    source, path = fill(lake, tmp_path / "lake"), tmp_path / "discreet.toml"
    path.write_text(_FILE.format(objects='objects = ["s3://other"]', source=source))
    with pytest.raises(InvalidParameter, match="to be in a listed bucket"):
        Curator.from_config(path)
    path.write_text(_FILE.format(objects="", source=source))
    Curator.from_config(path).close()


def test_a_place_that_is_no_address_is_refused(tmp_path: Path) -> None:
    for wrong in ('["lake"]', '"s3://lake"', "[1]", '["s3://key:s3cret@lake"]'):
        with pytest.raises(InvalidParameter) as caught:
            _served(tmp_path, "visits.csv" if wrong else "", f"objects = {wrong}")
        assert "s3cret" not in str(caught.value)
