"""Every exception of the library, each with the fields a program needs and a sentence a person can act on."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any

from discreet.hint_text import PYTHON, Hint, Spelling, point_at, spell, spell_expected


class DiscreetError(Exception):
    """The root of all errors raised on purpose by this library.

    In IPython and notebooks they are shown as a short message, without a traceback: what a person can act on, and the
    line of their own that led there. Plain Python shows them like any other exception.
    """

    def _render_traceback_(self) -> list[str]:
        """Renders the error for IPython, which looks for this name."""
        shown = explain_error(self)
        lines = [f"{label}: {text}" for label, text in shown.items() if label != "Position"]
        pointer = shown["Position"].splitlines()[1:] if "Position" in shown else []
        return [lines[0], *(pointer or _call(self)), *lines[1:], *getattr(self, "__notes__", ())]


class InvalidParameter(DiscreetError, ValueError):
    """A parameter is outside its domain; raised before anything is drawn, spent or read.

    >>> raise InvalidParameter("epsilon", -1, "> 0", "Pass a positive number, e.g. epsilon=0.1.")
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected epsilon=-1 > 0. Pass a positive number, e.g. epsilon=0.1.
    """

    def __init__(self, name: str, value: object, condition: str, hint: str = "") -> None:
        self.name, self.value, self.condition, self.hint = name, value, condition, hint
        super().__init__(f"Expected {name}={_short(value)} {condition}." + (f" {hint}" if hint else ""))


class DeclarationChanged(InvalidParameter):
    """A table is declared otherwise than in the ledger; nothing was changed, and nothing is answered until it agrees.

    >>> changes = ["bounds of age: 0 to 120 -> 0 to 110"]
    >>> raise DeclarationChanged("visits", changes, "Run: discreet protect")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.errors.DeclarationChanged: Expected declaration="of table 'visits'" to be as in the ledger. ...
    """

    def __init__(self, table: str, differences: Iterable[str], how: str) -> None:
        self.table, self.differences = table, tuple(differences)
        told = f"Changed: {'; '.join(self.differences)}. {how}"
        super().__init__("declaration", f"of table {table!r}", "to be as in the ledger", told)


class InvalidValue(DiscreetError, ValueError):
    """A private value cannot be released as it is; the message never repeats the value.

    >>> from discreet.mechanisms import Laplace
    >>> Laplace(epsilon=1, sensitivity=1).release(float("nan"))
    Traceback (most recent call last):
    discreet.errors.InvalidValue: Expected the value to be finite. Replace NaN and infinities by a public rule ...
    """

    def __init__(self, condition: str, hint: str) -> None:
        self.condition, self.hint = condition, hint
        super().__init__(f"Expected the value {condition}. {hint}")


class UnsupportedEvent(DiscreetError, TypeError):
    """An accounting method has no price for an event: refused, never guessed.

    >>> from discreet.accounting import epsilon
    >>> from discreet.privacy import events
    >>> epsilon(events.Pure(1), delta=1e-6, method="GDP")
    Traceback (most recent call last):
    discreet.errors.UnsupportedEvent: GDP has no price for Pure(epsilon=Fraction(1, 1)). Only Gaussian noise is ...
    """

    def __init__(self, event: object, method: str, hint: str = "") -> None:
        self.event, self.method, self.hint = event, method, hint
        super().__init__(f"{method} has no price for {_short(event)}." + (f" {hint}" if hint else ""))


class InsufficientBudget(DiscreetError):
    """A charge would exceed the remaining budget; nothing was spent by asking.

    >>> from discreet.accounting import Filter
    >>> from discreet.privacy import Budget, events
    >>> account = Filter(Budget(epsilon=1))
    >>> account.charge(events.Pure(0.8))
    >>> try:
    ...     account.charge(events.Pure(0.5))
    ... except InsufficientBudget as refused:
    ...     print(refused.requested, "|", refused.remaining, "|", account.spent)
    epsilon=0.5 | epsilon=0.2 | epsilon=0.8
    """

    def __init__(self, requested: Any, remaining: Any, hint: str = "", *, needs: str = "", left: str = "") -> None:
        self.requested, self.remaining, self.hint = requested, remaining, hint
        super().__init__(f"The charge needs {needs or requested}. Remaining: {left or remaining}. {hint}".rstrip())


class LedgerError(DiscreetError):
    """The ledger cannot be relied on or may not be written; nothing is answered.

    The message never repeats a question, an answer or an idempotency key.

    >>> from discreet.ledger import Ledger
    >>> Ledger("no such folder/ledger.db")
    Traceback (most recent call last):
    discreet.errors.LedgerError: The ledger file cannot be used (No such file or directory). Check the path.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason, self.hint = reason, hint
        super().__init__(f"{reason}." + (f" {hint}" if hint else ""))


class LedgerMissing(LedgerError):
    """There is no ledger where one was named.

    >>> from discreet.ledger import Ledger
    >>> Ledger("no such ledger.db", read_only=True)
    Traceback (most recent call last):
    discreet.errors.LedgerMissing: There is no ledger file. Check the path.
    """


class LedgerUnavailable(LedgerError):
    """The ledger's server does not answer now: try again after `retry_after` seconds.

    >>> raise LedgerUnavailable("The ledger's server cannot be used", "Nothing was written.")
    Traceback (most recent call last):
    discreet.errors.LedgerUnavailable: The ledger's server cannot be used. Nothing was written.
    """

    retry_after = 5


class AccountLocked(LedgerError):
    """A person's failure credits on an account are used up: they ask nothing new until a steward unlocks it.

    Args:
        account: on which questions failed.
        failures: how many count for them.
        analyst: who asked.
        total: how many credits of the account are used up.
        shared: whether the analyst has no role, and shares credits with all others who have none.

    >>> from discreet.ledger import FAILURE_CREDITS, Ledger
    >>> from discreet.privacy import Budget, Unit, events
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient"), budget=Budget(epsilon=1))
    >>> for _ in range(FAILURE_CREDITS):
    ...     ledger.fail(ledger.charge("patients", events.Pure(0.1)))
    >>> ledger.charge("patients", events.Pure(0.1))
    Traceback (most recent call last):
    discreet.errors.AccountLocked: 'owner' may ask no new questions on account 'patients': 3 of their questions ...
    """

    def __init__(self, account: str, failures: int, *, analyst: str, total: int, shared: bool = False) -> None:
        self.account, self.failures, self.analyst, self.total = account, failures, analyst, total
        who = f"Names without a role, such as {_short(analyst)}," if shared else _short(analyst)
        super().__init__(
            f"{who} may ask no new questions on account {_short(account)}: {failures} of their questions failed, "
            f"and {total} of all people together",
            f"A steward finds out why and runs curator.unlock({_short(account)}), or `discreet unlock "
            f"{_short(account)}`. You can still repeat earlier questions.",
        )


class KeyConflict(LedgerError):
    """An idempotency key came back with another request; nothing was charged for it.

    >>> from discreet.ledger import Ledger
    >>> from discreet.privacy import Budget, Unit, events
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient"), budget=Budget(epsilon=1))
    >>> _ = ledger.charge("patients", events.Pure(0.1), key="monday", question='{"count":"visits"}')
    >>> ledger.charge("patients", events.Pure(0.1), key="monday", question='{"count":"wards"}')
    Traceback (most recent call last):
    discreet.errors.KeyConflict: The idempotency key belongs to another request, entry 2. Use a new key for a new ...
    """

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        reason = f"The idempotency key belongs to another request, entry {sequence}"
        super().__init__(reason, "Use a new key for a new question.")


class RunsUsedUp(LedgerError):
    """A charge was run as often as a charge may be, and has no answer: it is not run again, and it stays.

    Args:
        sequence: the entry of the charge.
        runs: how often it was run.

    >>> from discreet.ledger import Ledger
    >>> from discreet.privacy import Budget, Unit, events
    >>> ledger = Ledger()
    >>> _ = ledger.stewardship.open_account("patients", unit=Unit("patient"), budget=Budget(epsilon=1))
    >>> _ = ledger.charge("patients", events.Pure(0.1), key="monday")  # and its process dies, three times
    >>> for _ in range(3):
    ...     found = ledger.claim(ledger.charge("patients", events.Pure(0.1), key="monday"))
    Traceback (most recent call last):
    discreet.errors.RunsUsedUp: Charge 2 was run 3 times without an answer, and is not run again. The charge stays. ...
    """

    def __init__(self, sequence: int, runs: int) -> None:
        self.sequence, self.runs = sequence, runs
        super().__init__(
            f"Charge {sequence} was run {runs} times without an answer, and is not run again",
            "The charge stays. If one of its runs is still running, ask later with the same key. "
            "Otherwise ask with a new key, which is charged again.",
        )


class NotPermitted(LedgerError):
    """A person without the needed role tried to act on an account.

    >>> from discreet.ledger import Ledger
    >>> Ledger().stewardship.appoint("ben", "steward", by="ana")
    Traceback (most recent call last):
    discreet.errors.NotPermitted: 'ana' may not appoint people. Only a steward may.
    """

    def __init__(self, who: str, act: str, hint: str = "") -> None:
        self.who, self.act = who, act
        super().__init__(f"{_short(who)} may not {act}", hint or "A steward can give them a role.")


class LedgerTampered(LedgerError):
    """The ledger differs from what was written into it; `sequence` is the first entry that does not fit.

    >>> from discreet.ledger import Ledger, Head
    >>> Ledger(anchor=Head(7, "5f" * 32))  # which was exported from a ledger of at least seven entries
    Traceback (most recent call last):
    discreet.errors.LedgerTampered: Entry 7: the ledger is older than its anchor, or another one; ...
    """

    def __init__(self, sequence: int, reason: str) -> None:
        self.sequence = sequence
        super().__init__(f"Entry {sequence}: {reason}", "Nothing is answered. Restore a backup and check its anchor.")


class AnchorMismatch(LedgerError):
    """A ledger lacks what its anchor knows: an older copy was put in its place, or another ledger, or none is there.

    Args:
        reason: what does not fit.
        hint: what to do.
        head: of the ledger, as "sequence:hash"; None if there is no ledger.
        anchor: the head that the anchor knows.
        missing: how many entries the ledger lacks at least.

    >>> raise AnchorMismatch("The ledger is gone", "Restore a backup.", head=None, anchor="2:5f", missing=2)
    Traceback (most recent call last):
    discreet.errors.AnchorMismatch: The ledger is gone. Restore a backup.
    """

    def __init__(self, reason: str, hint: str, *, head: str | None, anchor: str, missing: int) -> None:
        self.head, self.anchor, self.missing = head, anchor, missing
        super().__init__(reason, hint)


class AnchorMissing(LedgerError):
    """The anchor of a ledger is missing: without it, an older copy would look like the ledger.

    >>> raise AnchorMissing("It is gone", "Put it back.", ledger="clinic.ledger", anchor_file="/state/anchors/5f01")
    Traceback (most recent call last):
    discreet.errors.AnchorMissing: It is gone. Put it back.
    """

    def __init__(self, reason: str, hint: str, *, ledger: str, anchor_file: str) -> None:
        self.ledger, self.anchor_file = ledger, anchor_file
        super().__init__(reason, hint)


class AnchorNotKept(RuntimeWarning):
    """The anchor of a ledger could not be written: what was charged is in the ledger, and the anchor lags behind.

    >>> issubclass(AnchorNotKept, RuntimeWarning)  # what was paid for is answered all the same
    True
    """


class UnsupportedQuery(DiscreetError, ValueError):
    """A question is refused before anything is read or spent.

    Args:
        reason: why, in a sentence.
        hint: what to do instead; everything in it between backticks is a question that is accepted.
        position: line and column in the question's text, from 1; None if the question is not a text.
        text: the question, whose line is shown.

    >>> raise UnsupportedQuery("A join reads two tables.", "Ask `SELECT COUNT(*) FROM visits`.", (1, 15))
    Traceback (most recent call last):
    discreet.errors.UnsupportedQuery: A join reads two tables. Ask `SELECT COUNT(*) FROM visits`. (line 1, column 15)
    """

    def __init__(self, reason: str, hint: str, position: tuple[int, int] | None = None, *, text: str = "") -> None:
        self.reason, self.hint, self.position, self.text = reason, hint, position, text
        where = f" (line {position[0]}, column {position[1]})" if position else ""
        super().__init__(f"{reason} {hint}{where}")


class UnknownTable(DiscreetError, LookupError):
    """A question names a table that is not declared.

    >>> raise UnknownTable("vists", ["visits", "wards"])
    Traceback (most recent call last):
    discreet.errors.UnknownTable: No table 'vists' is declared. Did you mean 'visits'?
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name, self.known = name, tuple(known)
        near = get_close_matches(name.casefold(), self.known, n=1)
        self.hint = f"Did you mean {near[0]!r}?" if near else f"Declared: {', '.join(map(repr, self.known)) or 'none'}."
        super().__init__(f"No table {_short(name)} is declared. {self.hint}")


class QueryFailed(DiscreetError):
    """The engine could not finish; why is not said, because it can depend on the data. What was charged stays charged.

    >>> raise QueryFailed
    Traceback (most recent call last):
    discreet.errors.QueryFailed: The question could not be answered. Its charge stays; ask the steward.
    """

    def __init__(self) -> None:
        super().__init__("The question could not be answered. Its charge stays; ask the steward.")


class StreamError(DiscreetError):
    """A stream cannot go on: it ended, another process has it, or its state cannot be relied on. Nothing is released.

    >>> raise StreamError("All 365 periods of the stream are released", "Start a new one.")
    Traceback (most recent call last):
    discreet.errors.StreamError: All 365 periods of the stream are released. Start a new one.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason, self.hint = reason, hint
        super().__init__(f"{reason}." + (f" {hint}" if hint else ""))


class ServiceError(DiscreetError):
    """A service cannot take a request as it came; nothing was spent for it.

    Attributes:
        retry_after: after how many seconds it may be worth another try; 0 if trying again changes nothing.

    >>> error = ServiceError("This address does not take this method", "See /v1/openapi.json for what it takes.")
    >>> print(error, error.retry_after)
    This address does not take this method. See /v1/openapi.json for what it takes. 0
    """

    def __init__(self, reason: str, hint: str = "", *, retry_after: int = 0) -> None:
        self.reason, self.hint, self.retry_after = reason, hint, retry_after
        super().__init__(f"{reason}." + (f" {hint}" if hint else ""))


class NotAuthenticated(ServiceError):
    """The caller has no valid key or session; the error does not say which is wrong.

    >>> explain_error(NotAuthenticated())
    {'NotAuthenticated': 'A valid key or session is needed.', 'Hint': 'Sign in again, or ask a steward for a key.'}
    """

    def __init__(self) -> None:
        super().__init__("A valid key or session is needed", "Sign in again, or ask a steward for a key.")


class TooManyRequests(ServiceError):
    """A caller asks more, or faster, than they may.

    >>> raise TooManyRequests("Too many questions of yours are waiting", "Ask later.", retry_after=5)
    Traceback (most recent call last):
    discreet.errors.TooManyRequests: Too many questions of yours are waiting. Ask later.
    """


class ServiceUnavailable(ServiceError):
    """The service is full, is stopping, or cannot rely on its ledger.

    >>> raise ServiceUnavailable("The service is stopping", "Ask again later.", retry_after=10)
    Traceback (most recent call last):
    discreet.errors.ServiceUnavailable: The service is stopping. Ask again later.
    """


class UnknownJob(ServiceError):
    """The caller has no such job.

    >>> raise UnknownJob
    Traceback (most recent call last):
    discreet.errors.UnknownJob: You have no such job. Jobs are deleted some time after ...
    """

    def __init__(self) -> None:
        super().__init__("You have no such job", "Jobs are deleted some time after they end.")


class UnknownEntry(ServiceError):
    """The ledger has no such entry that the caller may see.

    >>> raise UnknownEntry
    Traceback (most recent call last):
    discreet.errors.UnknownEntry: You have no such entry. Look for its number in your history.
    """

    def __init__(self) -> None:
        super().__init__("You have no such entry", "Look for its number in your history.")


class RandomnessUnavailable(DiscreetError):
    """There are no random bytes to rely on: none came, they repeat, or they never end a draw. Nothing is released.

    >>> from discreet.noise import Bits, uniform_below
    >>> Stuck = type("Stuck", (Bits,), {"fill": lambda _, a: a.fill(-1), "lanes": lambda _, n: [0xFFFF] * n})
    >>> uniform_below(6, bits=Stuck())
    Traceback (most recent call last):
    discreet.errors.RandomnessUnavailable: The random bits never end a draw, as genuine ones do; nothing was released.
    """


class MissingExtra(DiscreetError, ImportError):
    """Something optional is not installed.

    >>> raise MissingExtra("torch", "Training", "deep")
    Traceback (most recent call last):
    discreet.errors.MissingExtra: Training needs torch. In a checkout of Discreet, run: pip install '.[deep]'
    """

    def __init__(self, module: str, what: str, extra: str) -> None:
        self.module, self.extra = module, extra
        self.hint = f"In a checkout of Discreet, run: pip install '.[{extra}]'"
        super().__init__(f"{what} needs {module}. {self.hint}", name=module)


class InternalError(DiscreetError):
    """A promise of the library to itself was broken: our fault, please report it.

    >>> raise InternalError("What was charged is not what was planned.")
    Traceback (most recent call last):
    discreet.errors.InternalError: What was charged is not what was planned.
    """

    def _render_traceback_(self) -> list[str]:
        """Renders the traceback in full: a report of an internal error needs the place."""
        return traceback.format_exception(self)


def explain_error(error: DiscreetError, spelling: Spelling = PYTHON) -> dict[str, str]:
    """Returns an error as labelled lines: its kind with the reason, then the hint and the position where it has them.

    Args:
        error: what is explained.
        spelling: how the reader writes arguments.

    >>> refused = UnsupportedQuery("A join reads two tables.", "Ask about one.", (1, 15), text="SELECT * FROM a, b")
    >>> for label, text in explain_error(refused).items():
    ...     print(f"{label}: {text}")
    UnsupportedQuery: A join reads two tables.
    Hint: Ask about one.
    Position: line 1, column 15
      SELECT * FROM a, b
                    ^
    """
    position, hint = getattr(error, "position", None), getattr(error, "hint", "")
    where = f"line {position[0]}, column {position[1]}" if position else ""
    reason = str(error).removesuffix(f" ({where})").removesuffix(hint).strip()
    if isinstance(error, InvalidParameter) and "condition" in vars(error):  # one that travelled may lack it
        reason = reason.replace(error.condition, spell(error.condition, spelling), 1)
        reason = spell_expected(reason, error.name, spelling)
    told = vars(error).get("reason")
    if isinstance(told, Hint):
        reason = reason.replace(told, told.spell_for(spelling), 1)
    hint = spell(hint, spelling)
    pointer = point_at(getattr(error, "text", ""), position) if position else ""
    found = {type(error).__name__: reason, "Hint": hint, "Position": where + pointer}
    return {label: text for label, text in found.items() if text or label not in ("Hint", "Position")}


def _call(error: BaseException) -> list[str]:
    """Returns the last line before this library that led to an error."""
    here = str(Path(__file__).parent)
    frames = takewhile(lambda frame: not frame.filename.startswith(here), traceback.extract_tb(error.__traceback__))
    return [f"  line {frame.lineno}: {frame.line}" for frame in frames if frame.line][-1:]


def _short(value: object, limit: int = 120) -> str:
    try:
        text = str(value) if not isinstance(value, str) else repr(value)
    except ValueError:  # an integer beyond the interpreter's limit for printing
        text = f"a {type(value).__name__} of more than 4300 digits"
    return text if len(text) <= limit else text[: limit - 3] + "..."
