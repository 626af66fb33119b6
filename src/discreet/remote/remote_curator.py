"""A curator behind HTTP: the methods of `Curator` that make sense from elsewhere, with the same answers and errors."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from discreet import check
from discreet.curator.asking.answer import Answer
from discreet.curator.asking.choices import Choices
from discreet.curator.training.trainer import FitPlan
from discreet.errors import DiscreetError, InvalidParameter, ServiceUnavailable
from discreet.ledger import Balance, Entry, Head, Role
from discreet.ledger.serialization import write_loss
from discreet.noise.tokens import token
from discreet.plan.model.schema import Limits
from discreet.presentation.documents import (
    learner_document,
    read_answer,
    read_answers,
    read_balance,
    read_choices,
    read_entry,
    read_error,
    read_fit_plan,
    read_model,
    read_standing,
)
from discreet.presentation.documents.json_values import write_parameters
from discreet.privacy import ApproxDP, Loss, PureDP
from discreet.progress import Progress
from discreet.remote.http_transport import TIMEOUT, Address, Transport
from discreet.remote.told_plans import ToldExplanation, ToldProfile, read_explanation, read_profile
from discreet.sql.parameters import Parameters

Document = Mapping[str, Any]
_ENDED = ("done", "failed", "cancelled")
_PAGE = 500


def connect(url: str, *, key: str, timeout: float = TIMEOUT, ca_file: str | Path | None = None) -> RemoteCurator:
    """Returns a curator that is a service elsewhere.

    Args:
        url: of the service, as "https://data.example"; "http://localhost:8642" on this machine.
        key: that a steward gave; it decides who asks.
        timeout: seconds without a word after which a connection is given up.
        ca_file: certificates to trust instead of the system's.

    Raises:
        InvalidParameter: if the address is none, or would send the key for everybody to read.

    >>> connect("https://data.example", key="dk_3f9a_5ec7e7")
    RemoteCurator(https://data.example)
    """
    address = Address.of(url)
    shown: object = key
    if not (isinstance(shown, str) and shown.isascii() and shown.isprintable() and shown.strip()):
        raise InvalidParameter("key", "this one", "to be a key of the service", "Pass what a steward gave you.")
    context = None if ca_file is None else ssl.create_default_context(cafile=str(ca_file))
    waited = float(check.positive(timeout=timeout))
    return RemoteCurator(Transport(address=address, key=key.strip(), timeout=waited, context=context))


class RemoteCurator:
    """Asks a service; see `Curator` for what its methods mean. Who asks is who has the key.

    Args:
        transport: to the service.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        where = self._transport.address
        port = "" if where.port is None else f":{where.port}"
        return f"RemoteCurator({where.scheme}://{where.host}{port}{where.path})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is held: every request has a connection of its own."""

    # ---------------------------------------------------------------------------------------------------- questions

    def ask(
        self,
        question: str,
        *,
        parameters: Parameters = None,
        key: str | None = None,
        progress: Progress | None = None,
        **how: Any,
    ) -> Answer:
        """Returns a private answer; see `Curator.ask` for all that it takes but `analyst`, and for its errors."""
        return read_answer(self.ask_document(question, parameters=parameters, key=key, progress=progress, **how))

    def ask_document(
        self,
        question: str,
        *,
        parameters: Parameters = None,
        key: str | None = None,
        progress: Progress | None = None,
        **how: Any,
    ) -> Document:
        """Returns the same as JSON, in which columns have their types."""
        body = {"sql": _text(question), **_given(parameters=write_parameters(parameters), **how)}
        found: Document = self._charged("/v1/ask", body, key, progress)
        return found

    def ask_many(
        self, questions: Sequence[str], *, key: str | None = None, progress: Progress | None = None, **how: Any
    ) -> list[Answer]:
        """Returns an answer to each question, for one charge; see `Curator.ask_many`."""
        body = {"questions": [_text(each) for each in questions], **_given(**how)}
        return read_answers(self._charged("/v1/ask-many", body, key, progress))

    def explain(self, question: str, *, parameters: Parameters = None, **how: Any) -> ToldExplanation:
        """Explains what would be read and spent; see `Curator.explain`."""
        body = {"sql": _text(question), **_given(parameters=write_parameters(parameters), **how)}
        return read_explanation(self._free("/v1/explain", body))

    def rehearse(self, question: str, *, parameters: Parameters = None, **how: Any) -> Answer:
        """Returns the shape of an answer, on rows that are made up; see `Curator.rehearse`."""
        body = {"sql": _text(question), **_given(parameters=write_parameters(parameters), **how)}
        return read_answer(self._free("/v1/rehearse", body))

    def choose_epsilon(
        self, question: str, candidates: Sequence[Any] | None = None, *, parameters: Parameters = None, **how: Any
    ) -> Choices:
        """Compares budgets; see `Curator.choose_epsilon`."""
        tried = None if candidates is None else [_epsilon(each) for each in candidates]
        given = _given(parameters=write_parameters(parameters), **how)
        body = {"sql": _text(question), **given, **({} if tried is None else {"candidates": tried})}
        return read_choices(self._free("/v1/choose-epsilon", body))

    def profile(
        self,
        table: str,
        *,
        epsilon: check.Number,
        columns: Sequence[str] | None = None,
        by: Sequence[str | Sequence[str]] | None = None,
        key: str | None = None,
        progress: Progress | None = None,
        project: str = "",
    ) -> ToldProfile:
        """Returns a paid portrait of a table; see `Curator.profile`."""
        sets = None if by is None else [[one] if isinstance(one, str) else list(one) for one in by]
        named = None if columns is None else list(columns)
        body = {"table": table, "epsilon": str(epsilon), "columns": named, "by": sets, "project": project}
        return read_profile(self._job("/v1/profile", body, key, progress))

    def fit(
        self,
        estimator: Any,
        question: str,
        *,
        target: str | None = None,
        key: str | None = None,
        progress: Progress | None = None,
        project: str = "",
        rows_per_unit: int = 1,
    ) -> Any:
        """Returns a private learner, trained on rows that one SELECT names; see `Curator.fit`."""
        body = {**learner_document(estimator), "sql": _text(question), "target": target, "project": project}
        return read_model(self._job("/v1/fit", {**body, "rows_per_unit": rows_per_unit}, key, progress))

    def plan_fit(
        self, estimator: Any, question: str, *, target: str | None = None, project: str = "", rows_per_unit: int = 1
    ) -> FitPlan:
        """Returns what `fit` would release and cost; see `Curator.plan_fit`."""
        body = {**learner_document(estimator), "sql": _text(question), "target": target, "project": project}
        return read_fit_plan(self._free("/v1/plan-fit", {**body, "rows_per_unit": rows_per_unit}))

    # ---------------------------------------------------------------------------------------------- tables and book

    def tables(self) -> dict[str, str]:
        """Returns the account of every protected table that the key is for."""
        return {each["name"]: each["account"] for each in self.table_facts() if each["protected"]}

    def table_facts(self) -> list[Document]:
        """Returns the public facts about all tables: columns with types, bounds and keys, units and limits."""
        return list(self._get("/v1/tables")["tables"])

    def budget(self, name: str) -> Balance:
        """Returns the balance of an account, by its name or that of a table: one's own part.

        Who sees all gets the whole of it, as a `Standing` with everybody's part.

        Raises:
            InvalidParameter: if there is no such account that the key is for.
        """
        for each in self._get("/v1/budget")["budgets"]:
            if name == each["account"] or name in each["tables"]:
                return read_standing(each) if "balance" in each else read_balance(each["own"])
        raise InvalidParameter("name", name, "to be a table or an account of yours", "See tables().")

    def history(self, name: str | None = None, *, analyst: str | None = None) -> tuple[Entry, ...]:
        """Returns entries of the book, of one account or table perhaps: one's own charges, or all for who sees all."""
        account = name if name is None else self.tables().get(name, name)
        told = {"account": account, "analyst": analyst}
        chosen = "".join(f"&{option}={quote(value, safe='')}" for option, value in told.items() if value is not None)
        found: list[Entry] = []
        following: int | None = 0
        while following is not None:
            page = self._get(f"/v1/history?limit={_PAGE}&after={int(following)}{chosen}")
            found += [read_entry(each) for each in page["entries"]]
            following = page["next"]
        return tuple(found)

    def certificate(self, sequence: int) -> Document:
        """Returns what was promised about one charged question, by the number of its entry."""
        found: Document = self._get(f"/v1/certificates/{check.integer(sequence=sequence)}")
        return found

    def verify(self) -> Head:
        """Has the whole book walked; raises if anything was changed."""
        return Head.parse(self._transport.send("POST", "/v1/verify", repeatable=True)["head"])

    def anchor(self) -> Head:
        """Returns the head of the book, to be kept elsewhere."""
        return Head.parse(self._get("/v1/anchor")["head"])

    # -------------------------------------------------------------------------------------------------- for stewards

    def amend(self, account: str, *, budget: Loss, note: str = "") -> Balance:
        """Gives an account another budget; see `Curator.amend`."""
        return read_balance(self._act(account, "amend", {"budget": write_loss(budget), "note": note}))

    def renew(self, account: str, *, budget: Loss | None = None, note: str = "") -> Balance:
        """Starts a new period of an account; see `Curator.renew`."""
        given = {} if budget is None else {"budget": write_loss(budget)}
        return read_balance(self._act(account, "renew", {**given, "note": note}))

    def unlock(self, account: str, *, note: str = "") -> None:
        """Gives an account its failure credits back; see `Curator.unlock`."""
        self._act(account, "unlock", {"note": note})

    def appoint(self, who: str, role: Role | str, *, account: str = "", cap: Loss | None = None) -> None:
        """Gives somebody a role, and perhaps a cap; see `Curator.appoint`."""
        limit = {} if cap is None else {"cap": write_loss(cap)}
        body = {"who": who, "role": Role(role).value, "account": account, **limit}
        self._transport.send("POST", "/v1/appointments", body)

    def allot(self, project: str, *, account: str, cap: Loss, note: str = "") -> None:
        """Gives a project a cap on an account; see `Curator.allot`."""
        self._act(account, "allotments", {"project": project, "cap": write_loss(cap), "note": note})

    # ---------------------------------------------------------------------------------------------------- requests

    def _get(self, path: str) -> Any:
        return self._transport.send("GET", path, repeatable=True)

    def _act(self, account: str, act: str, body: Document) -> Any:
        return self._transport.send("POST", f"/v1/accounts/{quote(account, safe='')}/{act}", body)

    def _free(self, path: str, body: Document) -> Any:
        return self._transport.send("POST", path, body, repeatable=True)

    def _charged(self, path: str, body: Document, key: str | None, progress: Progress | None) -> Any:
        """The outcome of what is paid: waited for, or as a job if somebody listens."""
        if progress is not None:
            return self._job(path, body, key, progress)
        return self._transport.send("POST", path, body, key=_word(key))

    def _job(self, path: str, body: Document, key: str | None, progress: Progress | None) -> Any:
        """The outcome of long work, which is followed until it has ended."""
        begun = self._transport.send("POST", path, {**body, "wait": False}, key=_word(key))
        place, last = f"/v1/jobs/{quote(begun['id'], safe='')}", begun
        told = _Stages(progress)
        while last["state"] not in _ENDED:
            last = self._followed(place, told)
        if last["state"] == "done":
            return last["document"]
        raise _ended(last)

    def _followed(self, place: str, told: _Stages) -> Document:
        """The job after its last event; asked for if the stream broke off before its end."""
        try:
            for each in self._transport.events(f"{place}/events"):
                told.hear(each["stage"])
                if each["state"] in _ENDED:
                    found: Document = each
                    return found
        except ServiceUnavailable:
            self._transport.pause(1)
        asked: Document = self._get(place)
        return asked


class _Stages:
    """Tells each stage that begins, once."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._last = progress, ""

    def hear(self, stage: str) -> None:
        if self._progress is not None and stage not in ("", self._last):
            self._progress(stage)
        self._last = stage


def _ended(last: Document) -> DiscreetError:
    if last["error"] is not None:
        return read_error(last["error"])
    return ServiceUnavailable("The job was cancelled", "What was charged stays charged.")


def _word(key: str | None) -> str:
    """The idempotency key of a request; one that nobody has, if none is given."""
    return f"once-{token(16)}" if key is None else key


def _text(question: object) -> str:
    if not isinstance(question, str):
        hint = "Plans stay on the machine that made them; pass SQL."
        raise InvalidParameter("question", type(question).__name__, "to be a text", hint)
    return question


_AMOUNTS = frozenset(("epsilon", "delta", "within", "max_epsilon", "profile", "coverage", "confidence"))
_PLAIN = frozenset(("limits", "other", "rows", "project", "parameters"))


def _given(**how: Any) -> dict[str, Any]:
    """Arguments as JSON; what is None is as if it were not given.

    Raises:
        InvalidParameter: if one is not known; who asks is who has the key.
    """
    for name, value in how.items():
        if name not in _AMOUNTS | _PLAIN:
            hint = "Who asks is who has the key." if name == "analyst" else "See the curator's method of that name."
            raise InvalidParameter(name, value, "to be an argument of a service", hint)
    return {
        name: str(value) if name in _AMOUNTS else _limits(value) if name == "limits" else value
        for name, value in how.items()
        if value is not None
    }


def _limits(value: Any) -> Any:
    return {"groups": value.groups, "rows": value.rows} if isinstance(value, Limits) else value


def _epsilon(candidate: Any) -> str:
    """A candidate as its epsilon."""
    if isinstance(candidate, ApproxDP) and candidate.delta:
        raise InvalidParameter("candidates", candidate, "to have no delta of its own", "Pass epsilons, and delta=.")
    return str(candidate.epsilon if isinstance(candidate, PureDP | ApproxDP) else candidate)
