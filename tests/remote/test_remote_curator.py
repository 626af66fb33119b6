"""A curator behind HTTP gives what the curator gives: the same answers, the same errors, the same charges."""

import inspect
import json
from fractions import Fraction

import pytest

import discreet
from discreet import errors
from discreet.curator import Answer, Curator
from discreet.errors import InvalidParameter
from discreet.learn import DecisionTreeClassifier
from discreet.ledger import Appointment, Caller, Role
from discreet.plan.model.schema import Limits
from discreet.presentation.documents.synthesis_documents import SYNTHETIC_TABLE
from discreet.privacy import ApproxDP, Budget
from discreet.remote import RemoteCurator
from discreet.remote.http_transport import Transport, read_address
from discreet.requests.table_requests import Synthesize
from discreet.service.api.response_models import (
    BudgetsModel,
    CertificateModel,
    HistoryModel,
    JobModel,
    TablesModel,
)
from tests.curator.clinic import DECLARED, visits
from tests.remote.served import Served

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(charge) AS mean FROM visits GROUP BY ward"


def test_an_answer_is_an_answer(ana: RemoteCurator, service: Served) -> None:
    answer = ana.ask(BY_WARD, epsilon=Fraction(1, 3), limits=Limits(2, 3), confidence=0.9)
    assert type(answer) is Answer
    again = service.desk.curator.ask(
        BY_WARD, epsilon=Fraction(1, 3), limits=Limits(2, 3), confidence=0.9, analyst="ana"
    )
    assert again.replayed
    assert (answer.columns, answer.records, answer.event) == (again.columns, again.records, again.event)
    assert answer.cost.details == Budget(epsilon="1/3")
    assert answer.to_pandas().equals(again.to_pandas())
    assert answer.chart()
    with pytest.raises(InvalidParameter):
        answer.adjusted()


def test_the_analyst_is_who_has_the_key(ana: RemoteCurator, service: Served) -> None:
    ana.ask(COUNT, epsilon=1)
    (charge,) = [each for each in service.desk.curator.history("visits") if each.kind == "charge"]
    assert charge.who == "ana"
    with pytest.raises(InvalidParameter) as refused:
        ana.ask(COUNT, epsilon=1, analyst="stella")
    assert refused.value.name == "analyst"


def test_questions_are_asked_together_explained_rehearsed_and_compared(ana: RemoteCurator, service: Served) -> None:
    own = service.desk.curator
    assert len(ana.ask_many([COUNT, BY_WARD], epsilon=1)) == 2
    told = ana.explain("SELECT SUM(charge) AS total FROM visits", epsilon="0.5")
    assert str(told) == str(own.explain("SELECT SUM(charge) AS total FROM visits", epsilon="0.5", analyst="ana"))
    assert told.cost.details == Budget(epsilon="0.5")
    assert ana.explain(COUNT, epsilon="0.1").free
    assert not ana.rehearse(COUNT).private
    assert ana.choose_epsilon(COUNT, ["0.1", 1]) == own.choose_epsilon(COUNT, ["0.1", 1])
    assert [c.budget for c in ana.choose_epsilon(COUNT, [Budget(epsilon="0.3")]).choices] == [Budget(epsilon="0.3")]


def test_parameters_of_a_question(ana: RemoteCurator) -> None:
    asked = ana.ask("SELECT COUNT(*) AS n FROM visits WHERE age >= ? AND ward = ?", parameters=[18, "A"], epsilon=1)
    named = ana.ask(
        "SELECT COUNT(*) AS n FROM visits WHERE age >= :a AND ward = :w", parameters={"a": 18, "w": "A"}, epsilon=1
    )
    assert named.replayed
    assert asked.records == named.records


def test_other_documents_are_what_the_description_says(ana: RemoteCurator) -> None:
    JobModel.model_validate(ana._transport.send("POST", "/v1/ask", {"sql": COUNT, "epsilon": 1, "wait": False}))
    ana.ask(COUNT, epsilon=1)
    TablesModel.model_validate(ana._get("/v1/tables"))
    HistoryModel.model_validate(ana._get("/v1/history"))
    BudgetsModel.model_validate(ana._get("/v1/budget"))
    CertificateModel.model_validate(ana.certificate(ana.history()[0].sequence))


def test_profiles_and_models_are_followed_as_jobs(ana: RemoteCurator) -> None:
    stages: list[str] = []
    profile = ana.profile("visits", epsilon=1, progress=stages.append)
    assert profile.table == "visits"
    assert "Profile of visits" in str(profile)
    assert stages == ["Reading visits", "Adding noise"]
    learner, rows = DecisionTreeClassifier(epsilon=2), "SELECT age, charge, ward FROM visits"
    assert ana.plan_fit(learner, rows, target="ward").cost.details == Budget(epsilon=2)
    model = ana.fit(learner, rows, target="ward")
    assert model.predict([[5, 5.0]]).shape == (1,)
    assert model.cost_.details == Budget(epsilon=2)
    assert ana.fit(learner, rows, target="ward").replayed_


def test_a_stream_that_breaks_off_is_looked_up_again(ana: RemoteCurator, service: Served) -> None:
    service.desk.drop = 1
    assert ana.ask(COUNT, epsilon=1, progress=lambda _: None).columns == ("n", "n_low", "n_high")


def test_errors_are_the_curators_own(ana: RemoteCurator) -> None:
    with pytest.raises(errors.UnsupportedQuery) as refused:
        ana.ask("SELECT charge FROM visits", epsilon=1)
    assert refused.value.position
    with pytest.raises(errors.UnknownTable):
        ana.explain("SELECT COUNT(*) FROM vists", epsilon=1)
    with pytest.raises(errors.InsufficientBudget) as short:
        ana.ask(COUNT, epsilon=1000)
    assert short.value.requested == Budget(epsilon=1000)
    with pytest.raises(errors.InsufficientBudget):
        ana.ask(COUNT, epsilon=1000, progress=lambda _: None)
    ana.ask(COUNT, epsilon=1, key="k")
    with pytest.raises(errors.KeyConflict):
        ana.ask(BY_WARD, epsilon=1, key="k")
    with pytest.raises(errors.NotPermitted):
        ana.amend("patients", budget=Budget(epsilon=100))


def test_the_ledger(ana: RemoteCurator, stella: RemoteCurator, service: Served) -> None:
    ana.ask(COUNT, epsilon=1)
    own = service.desk.curator
    assert ana.tables() == {"visits": "patients"}
    assert stella.budget("visits") == own.budget("visits")
    assert ana.budget("patients").spent == Budget(epsilon=1)
    assert [each.kind for each in ana.history("visits")] == ["charge"]
    assert len(stella.history()) == len(own.entries())
    sequence = ana.history()[0].sequence
    assert ana.certificate(sequence)["sequence"] == sequence
    assert stella.verify() == stella.anchor() == own.verify()
    with pytest.raises(InvalidParameter):
        ana.budget("nothing")
    with pytest.raises(errors.UnknownEntry):
        ana.certificate(1)


def test_stewards_act(stella: RemoteCurator, service: Served) -> None:
    own = service.desk.curator
    assert stella.amend("patients", budget=Budget(epsilon=60), note="more").total == Budget(epsilon=60)
    assert stella.budget("patients") == own.budget("patients")
    assert stella.renew("patients").period == 2
    assert stella.unlock("patients") == stella.unlock() == own.balance("patients")
    share = stella.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="1/3"))
    assert share == own.budget("patients").people[0]
    assert own.analyst_cap("ana", account="patients") == Budget(epsilon="1/3")
    assert stella.appoint("ana", "auditor") == Appointment(name="ana", role=Role.AUDITOR, cap=None)
    assert (stella.allot("flu", account="patients", cap=Budget(epsilon=1)),) == own.budget("patients").projects
    assert stella.allot("flu", cap=Budget(epsilon=2)).cap == Budget(epsilon=2)
    assert {each.who for each in own.history("patients") if each.kind == "amend"} == {"stella"}


def test_a_revoked_key_is_refused_at_once(ana: RemoteCurator, service: Served) -> None:
    ana.tables()
    key = service.keys["ana"].split("_")[1]
    service.identities.revoke_key(service.identities.local, key)
    with pytest.raises(errors.NotAuthenticated):
        ana.tables()


class Flaky:
    """A transport whose first tries end like a lost connection."""

    def __init__(self, failures: int) -> None:
        self.failures, self.sent, self.pauses = failures, list[str | None](), list[float]()

    def once(self, method: str, path: str, body: object, key: str | None) -> object:
        del method, path, body
        self.sent.append(key)
        if len(self.sent) <= self.failures:
            raise errors.ServiceUnavailable("Lost", retry_after=7)
        return {}


@pytest.mark.parametrize(
    ("how", "tries"), [({"key": "k"}, 3), ({"repeatable": True}, 3), ({}, 1)], ids=["key", "free", "charged"]
)
def test_only_what_has_a_key_or_is_free_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, object], tries: int
) -> None:
    flaky = Flaky(5)
    monkeypatch.setattr(Transport, "_once", lambda _, *what: flaky.once(*what))
    transport = Transport(address=read_address("https://data.example"), key="k", pause=flaky.pauses.append)
    with pytest.raises(errors.ServiceUnavailable):
        transport.send("POST", "/v1/ask", {}, **how)  # type: ignore[arg-type]  # by name
    assert len(flaky.sent) == tries
    assert flaky.pauses == [7] * (tries - 1)


def test_a_charge_without_a_key_gets_one_of_its_own(ana: RemoteCurator, service: Served) -> None:
    ana.ask(COUNT, epsilon=1)
    ana.ask(BY_WARD, epsilon=1)
    words = [work.key for _, work in service.desk.seen]
    assert len(set(words)) == 2
    assert all(word and word.startswith("once-") for word in words)


@pytest.mark.parametrize(
    "url",
    [
        "http://data.example",
        "http://10.0.0.1:8642",
        "http://localhost.evil.example",
        "ftp://data.example",
        "data.example",
        "https://",
        "https://user:secret@data.example",
        "https://data.example?key=secret",
        "ftp://user:secret@data.example",
        "https://user:secret@data.example:99999",
        "https://data.example:99999?key=secret",
        "https://data.example:99999",
        "https://data.example:0",
        "",
    ],
)
def test_addresses_that_are_none_or_not_safe(url: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        discreet.connect(url, key="k")
    assert refused.value.name == "url"
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.1", "http://[::1]:5", "https://a.example/sub/"])
def test_addresses_that_are(url: str) -> None:
    discreet.connect(url, key="k")


@pytest.mark.parametrize("key", ["", " ", "a\nb", "a\r\nHost: x", "ü", None])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        discreet.connect("https://data.example", key=key)
    assert refused.value.name == "key"


def test_the_key_is_shown_nowhere(ana: RemoteCurator, service: Served) -> None:
    assert service.keys["ana"] not in repr(ana) + repr(ana._transport) + str(vars(ana))


def test_nobody_there_is_told_in_a_sentence() -> None:
    transport = Transport(address=read_address("http://127.0.0.1:1"), key="k", pause=lambda _: None)
    with pytest.raises(errors.ServiceUnavailable, match="cannot be reached"):
        RemoteCurator(transport).tables()


def test_plans_and_budgets_that_do_not_travel_are_refused(ana: RemoteCurator) -> None:
    with pytest.raises(InvalidParameter):
        ana.ask(5, epsilon=1)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidParameter):
        ana.choose_epsilon(COUNT, [ApproxDP(1, "1e-6")])
    with pytest.raises(InvalidParameter):
        ana.ask(COUNT, epsilon=1, analyst="ben")


def test_methods_are_those_of_the_curator() -> None:
    own = {name for name, each in inspect.getmembers(RemoteCurator, inspect.isfunction) if not name.startswith("_")}
    more = {"perform_document", "table_facts", "certificate", "anchor"}
    assert own - more <= set(dir(Curator))
    assert own >= {"ask", "ask_many", "explain", "rehearse", "choose_epsilon", "profile", "fit", "plan_fit", "verify"}


def test_a_synthetic_table_travels_with_its_model(ana: RemoteCurator, service: Served) -> None:
    sql, how = "SELECT age, ward FROM stays", {"epsilon": 1, "generator": "independent", "rows": 40}
    declared = {**DECLARED, "unit": "patient", "max_rows": 3, "identity": "stays"}
    budget = Budget(epsilon=50, delta="1e-6")
    service.desk.curator.protect(visits(3, 60), name="stays", account="stays", budget=budget, **declared)
    service.desk.curator.appoint("ana", "analyst", account="stays")
    asked = Synthesize.of(table=sql, **how)
    plan = ana.plan_synthesize(sql, epsilon=1, generator="independent")
    assert (plan.generator, plan.free, plan.refusal) == ("Independent", False, None)
    made = ana.perform(asked, Caller(key="made"))
    assert (made.table.num_rows, made.table.column_names, made.replayed) == (40, ["age", "ward"], False)
    again, here = ana.perform(asked), service.desk.curator.perform(asked, Caller(analyst="ana"))
    assert again.replayed
    assert again.table.equals(made.table)
    assert here.table.equals(made.table)
    assert (here.event, here.notes, str(here)) == (again.event, again.notes, str(again))
    assert ana.perform_document(asked) == json.loads(json.dumps(SYNTHETIC_TABLE.write(here)))


def test_only_requests_of_a_service_travel(ana: RemoteCurator) -> None:
    with pytest.raises(InvalidParameter, match="to be supported by a service"):
        ana.stream("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", epsilon=1)
