"""What a curator gives, as plain JSON and back: for programs, other processes and other machines.

`answer_documents` has answers, `plan_documents` what is told before anything is spent, `profile_documents` profiles,
`model_documents` learners, `ledger_documents` balances and entries, `error_documents` errors, and `json_values` what
all of them are made of. Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.presentation.documents.answer_documents import (
        answer_document,
        answers_document,
        read_answer,
        read_answers,
    )
    from discreet.presentation.documents.error_documents import error_document, read_error
    from discreet.presentation.documents.ledger_documents import (
        account_document,
        balance_document,
        entry_document,
        history_document,
        read_balance,
        read_entry,
        read_standing,
        share_document,
        standing_document,
    )
    from discreet.presentation.documents.model_documents import (
        fit_plan_document,
        model_document,
        read_fit_plan,
        read_model,
    )
    from discreet.presentation.documents.plan_documents import choices_document, explanation_document, read_choices
    from discreet.presentation.documents.profile_documents import profile_document

_ROOM = "discreet.presentation.documents"
_MODULES = {
    "answer_documents": ("answer_document", "answers_document", "read_answer", "read_answers"),
    "ledger_documents": ("balance_document", "entry_document", "read_balance", "read_entry"),
    "error_documents": ("error_document", "read_error"),
    "model_documents": ("fit_plan_document", "model_document", "read_fit_plan"),
    "plan_documents": ("choices_document", "explanation_document", "read_choices"),
    "profile_documents": ("profile_document",),
}
_NAMES = {name: f"{_ROOM}.{module}" for module, names in _MODULES.items() for name in names}
_NAMES |= dict.fromkeys(("read_standing", "share_document", "standing_document"), f"{_ROOM}.ledger_documents")
_NAMES |= dict.fromkeys(("account_document", "history_document"), f"{_ROOM}.ledger_documents")
_NAMES |= dict.fromkeys(("read_model",), f"{_ROOM}.model_documents")

__all__ = [
    "account_document",
    "answer_document",
    "answers_document",
    "balance_document",
    "choices_document",
    "entry_document",
]
__all__ += ["error_document", "explanation_document", "fit_plan_document", "model_document"]
__all__ += ["profile_document", "read_answer", "read_answers", "read_balance", "read_choices", "read_entry"]
__all__ += ["read_error", "read_fit_plan", "read_model", "read_standing", "share_document"]
__all__ += ["account_document", "history_document", "standing_document"]


def __getattr__(name: str) -> object:
    """Loads a name from its module on first use."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'discreet.presentation.documents' has no attribute {name!r}")
