"""Pages of verbs: each is a form made of its request, and its result below it; the editor has a look of its own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Any

from starlette.responses import Response

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, InternalError
from discreet.noise.tokens import token
from discreet.requests.verb_table import Queue, Verb
from discreet.service.api.http_responses import status_of
from discreet.service.page.document_view import RecentResult, ResultView, outcome_of
from discreet.service.page.page_request import PageRequest, PageRoute, is_refusal, note_refusal
from discreet.service.page.request_forms import form_of, label_of, read_form
from discreet.service.request_executor import Document

PLAN = "plan_"
"""The prefix of verbs that return what another one would release and cost."""
MOST_DRAFT = 20_000  # characters of a question in an address


@dataclass(frozen=True, slots=True)
class VerbPage:
    """The page of a verb.

    Attributes:
        verb: the verb that it is for.
        plan: the verb that returns its price, if there is one; the price is then shown first.
        template: the template that shows it.
        usual: texts of fields that are left empty.
    """

    verb: Verb
    plan: Verb | None = None
    template: str = "verb.html"
    usual: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the page: the name of the verb."""
        return label_of(self.verb.name)

    @property
    def path(self) -> str:
        """The address of the page."""
        return f"/{self.verb.name.replace('_', '-')}"

    @property
    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of the page."""
        own, needs = (self.verb.name,), self.verb.permission
        shown = PageRoute(method="GET", path=self.path, permission=needs, handler=self.show, verbs=own)
        price = () if self.plan is None else (self.route(f"{self.path}/price", self.plan),)
        return (shown, self.route(self.path, self.verb), *price)

    def route(self, path: str, verb: Verb) -> PageRoute:
        """Returns the route of a verb that is done with the form of this page, which shows the result."""

        async def perform_action(visit: PageRequest) -> Response:
            return await self._perform_verb(visit, verb)

        return PageRoute(
            method="POST", path=path, permission=verb.permission, handler=perform_action, verbs=(verb.name,)
        )

    async def show(self, visit: PageRequest) -> Response:
        """Shows the form of the verb."""
        return self._page(visit)

    async def _perform_verb(self, visit: PageRequest, verb: Verb) -> Response:
        try:
            asked, document = await perform_form(visit, verb, self.usual)
        except DiscreetError as error:
            if isinstance(error, InternalError) or not (visit.partial or is_refusal(error)):
                raise
            note_refusal(visit.request, error)
            return self._page(visit, status_of(error), error=error)
        if verb is self.plan:
            return self._page(visit, price=outcome_of(document))
        return self._page(visit, outcome=keep(visit, verb, asked, document))

    def _page(self, visit: PageRequest, status: int = 200, **shown: Any) -> Response:
        """Shows the form as it was sent, with its result or error; htmx gets only these, and no status but 429."""
        context = {"outcome": None, "price": None, "error": None, "key": token(16), **shown}
        if visit.partial:
            return visit.page("fragments/outcome.html", status if status == 429 else 200, **context)
        tables = visit.site.desk.tables(visit.caller)
        usual = {**self.usual, "sql": visit.query_parameter("sql")[:MOST_DRAFT]}
        return visit.page(
            self.template,
            status,
            page=self,
            fields=form_of(self.verb.request, visit.form, **usual),
            tables=tables,
            schema={one["name"]: [{"name": c["name"], "type": c["type"]} for c in one["columns"]] for one in tables},
            project=visit.caller.project or visit.text("project"),
            **context,
        )


async def perform_form(visit: PageRequest, verb: Verb, usual: Mapping[str, str]) -> tuple[Document, Document]:
    """Does what the form of a verb asks; the form's key makes sure that sending it again is charged once.

    Returns:
        What was asked, and the result.
    """
    asked = read_form(verb.request, visit.form, usual=usual)
    key = (visit.text("key") or token(16)) if verb.charges else None
    return asked.document(), await visit.perform_verb(verb, asked, key)


def keep(visit: PageRequest, verb: Verb, asked: Document, document: Document) -> ResultView:
    """Keeps the result of a charge, so that it can be saved as files; returns how it is shown."""
    if not verb.charges:
        return outcome_of(document, rehearsed=verb.name == "rehearse")
    question = str(asked.get("sql") or f"{verb.name} {json.dumps(asked)}")
    number = visit.site.answers.add(whose(visit), RecentResult(question=question, document=document))
    return outcome_of(document, number=number)


def whose(visit: PageRequest) -> str:
    """Returns the name under which results are kept: a key for some tables sees only its own results."""
    caller = visit.caller
    return caller.name if caller.tables is None else f"{caller.name}\n{caller.credential}"  # no name has a line break


def pages_of(verbs: Iterable[Verb], shown: Collection[str]) -> tuple[VerbPage, ...]:
    """Returns a page for each verb of a service that pages do not show yet.

    Args:
        verbs: all of them.
        shown: the names of those that have a page of their own.
    """
    offered = {verb.name: verb for verb in verbs if "page" in verb.faces and verb.queue is not Queue.NONE}
    plans = {name for name in offered if name.startswith(PLAN) and name.removeprefix(PLAN) in offered}
    rest = (verb for name, verb in offered.items() if name not in plans and name not in shown)
    return tuple(VerbPage(verb, offered.get(f"{PLAN}{verb.name}")) for verb in rest)
