"""Errors go through JSON text and come back as the same class, message and fields; others tell nothing."""

import json
from fractions import Fraction
from typing import Any

import pytest

from discreet import errors
from discreet.errors import DiscreetError
from discreet.ledger import RemainingBudget
from discreet.presentation.documents.error_documents import OUR_FAULT, error_document, read_error
from discreet.privacy import Budget
from discreet.privacy.events import Gaussian

LEFT = RemainingBudget(Budget(epsilon="0.2", delta="1e-6"), Fraction(1, 5), Fraction(1, 10))
SPECIMENS: list[DiscreetError] = [
    DiscreetError("Anything."),
    errors.InvalidParameter("epsilon", -1, "> 0", "Pass a positive number."),
    errors.InvalidParameter("epsilon", "x" * 500, "> 0"),
    errors.InvalidParameter("epsilon", Fraction(-1, 3), "> 0"),
    errors.InvalidParameter("epsilon", float("-inf"), "> 0"),
    errors.InvalidParameter("epsilon", (1, None, True), "> 0"),
    errors.DeclarationChanged("visits", ["max_rows: 1 -> 2", "column a (int): added"], "Run: discreet protect"),
    errors.InvalidValue("to be finite", "Clip it."),
    errors.UnsupportedEvent(Gaussian(1), "zCDP", "Use another."),
    errors.InsufficientBudget(Budget(epsilon=1), LEFT, "Ask for less."),
    errors.InsufficientBudget(Budget(rho=1, delta="1e-6"), Budget(epsilon="1/3")),
    errors.LedgerError("The disk is full", "Make room."),
    errors.LedgerUnavailable("It does not answer", "Try again."),
    errors.LedgerMissing("There is no ledger", "Name where it is."),
    errors.AccountLocked("patients", 3, analyst="ana", total=5, shared=True),
    errors.KeyConflict(7),
    errors.RunsUsedUp(7, 3),
    errors.NotPermitted("ana", "unlock", "Ask the owner."),
    errors.LedgerTampered(4, "cannot be read"),
    errors.AnchorMismatch("It is older", "Restore it.", head="3:00", anchor="5:00", missing=2),
    errors.AnchorMissing("It is gone", "Put it back.", ledger="clinic.ledger", anchor_file="/state/anchors/5f"),
    errors.UnsupportedQuery("A join.", "Ask `SELECT 1`.", (2, 15), text="SELECT\n ..."),
    errors.UnsupportedQuery("A join.", "Ask `SELECT 1`."),
    errors.UnknownTable("vists", ["visits", "wards"]),
    errors.QueryFailed(),
    errors.StreamError("All periods are released", "Start a new one."),
    errors.ServiceError("No", "Later.", retry_after=3),
    errors.NotAuthenticated(),
    errors.TooManyRequests("Too fast", "Wait.", retry_after=9),
    errors.ServiceUnavailable("Full", retry_after=1),
    errors.UnknownJob(),
    errors.UnknownEntry(),
    errors.RandomnessUnavailable("None came."),
    errors.MissingExtra("vl_convert", "Drawing a chart", "report"),
]


def sent(error: BaseException) -> DiscreetError:
    return read_error(json.loads(json.dumps(error_document(error), allow_nan=False)))


@pytest.mark.parametrize("error", SPECIMENS, ids=lambda error: type(error).__name__)
def test_errors_come_back(error: DiscreetError) -> None:
    error.add_note("A note.")
    again = sent(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == {"hint": "", **vars(error)}
    assert errors.explain_error(again) == errors.explain_error(error)
    with pytest.raises(type(error)):
        raise again


def test_every_class_has_a_specimen() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DiscreetError)}
    assert kinds - {type(error) for error in SPECIMENS} == {errors.InternalError}


SECRETS: list[BaseException] = [
    KeyError("a secret"),
    errors.InternalError("a secret"),
    type("Foreign", (DiscreetError,), {})("a secret"),
    MemoryError("a secret"),
]


@pytest.mark.parametrize("error", SECRETS)
def test_what_is_not_ours_tells_nothing(error: BaseException) -> None:
    error.add_note("a secret")
    document = error_document(error)
    assert document == {"error": "InternalError", "message": OUR_FAULT, "hint": ""}
    assert type(read_error(document)) is errors.InternalError


@pytest.mark.parametrize("value", [10**5000, object(), {"a": 1}, b"x", complex(1, 2), [10**5000]], ids=type)
def test_any_value_of_a_parameter_is_told_by_its_text(value: Any) -> None:
    again = sent(errors.InvalidParameter("x", value, "to be small"))
    assert str(again) == str(errors.InvalidParameter("x", value, "to be small"))


def test_a_class_that_is_not_known_is_an_error_of_the_service() -> None:
    again = read_error({"error": "Brandnew", "message": "No. Later.", "hint": "Later.", "reason": "No"})
    assert type(again) is errors.ServiceError
    assert (str(again), again.reason) == ("No. Later.", "No")


@pytest.mark.parametrize("name", ["error", "message", "hint"])
def test_what_is_no_error_is_refused(name: str) -> None:
    document = error_document(errors.QueryFailed())
    del document[name]
    with pytest.raises(errors.InvalidParameter):
        read_error(document)


@pytest.mark.parametrize("name", ["__class__", "_hidden", "add_note2", "ARGS", "__notes__"])
def test_no_document_sets_what_is_no_field(name: str) -> None:
    again = read_error({"error": "QueryFailed", "message": "No.", "hint": "", name: "x"})
    assert vars(again) == {"hint": ""}
    assert type(again) is errors.QueryFailed
