"""The settings of SET, SHOW and RESET: how queries are asked, and what clients expect of any server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from discreet import check
from discreet.errors import InvalidParameter
from discreet.hint_text import Spelling
from discreet.requests.argument_texts import read_fitting
from discreet.requests.question_requests import Ask
from discreet.requests.request import Argument, ArgumentKind, Request, arguments
from discreet.service.wire.protocol_messages import WireError
from discreet.service.wire.statement_kinds import Token, WireStatement

# ----------------------------------------------------------------------------------------------- settings of questions

PREFIX = "discreet."
PROJECT, KEY, REMAINING = "discreet.project", "discreet.key", "discreet.remaining"
"""The project that pays in addition to the caller, the idempotency key of the next query, and a shown-only setting."""

_OF_STATEMENTS = (ArgumentKind.SQL, ArgumentKind.VALUES)  # a query and its values: no settings


ASKING: dict[str, Argument] = {
    f"{PREFIX}{each.name}": each
    for each in arguments(Ask)
    if "wire" in each.arg.faces and each.arg.kind not in _OF_STATEMENTS
}
"""The settings that say how questions are asked."""


def read_setting(name: str, text: str) -> Any:
    """Returns what a setting of `ASKING` says, as `Work` takes it.

    Raises:
        InvalidParameter: naming the argument, if it does not fit.
    """
    argument = ASKING[name]
    return read_fitting(argument.name, text, argument.arg)


def _setting(argument: str) -> str:
    return f"{PREFIX}{argument}" if f"{PREFIX}{argument}" in ASKING else argument


WIRE = Spelling(name=_setting, given=lambda name, value: f"{_setting(name)} = {value}" if value else _setting(name))
"""How messages write arguments: in the form that SET takes."""

# ------------------------------------------------------------------------------------------------- settings of clients

VERSION = "15.0"
_BANNER = f"PostgreSQL {VERSION} (Discreet: answers with differential privacy)"

FIXED = {
    "server_version": VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    **dict.fromkeys(("integer_datetimes", "ssl"), "on"),
    **dict.fromkeys(("is_superuser", "in_hot_standby"), "off"),
    **dict.fromkeys(("lc_collate", "lc_ctype"), "C"),
    "max_index_keys": "32",
    "max_identifier_length": "63",
    "default_table_access_method": "heap",
    "block_size": "8192",
}
"""The settings that cannot be changed."""

DEFAULTS = {
    "application_name": "",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "search_path": '"$user", public',
    "client_min_messages": "notice",
    "bytea_output": "hex",
    "plan_cache_mode": "auto",
    "work_mem": "4MB",
    "cursor_tuple_fraction": "0.1",
    "session_replication_role": "origin",
    "xmloption": "content",
    **dict.fromkeys(("transaction_isolation", "default_transaction_isolation"), "serializable"),
    **dict.fromkeys(("transaction_read_only", "default_transaction_read_only"), "on"),
    **dict.fromkeys(("transaction_deferrable", "default_transaction_deferrable"), "off"),
    **dict.fromkeys(("standard_conforming_strings", "escape_string_warning", "synchronous_commit"), "on"),
    **dict.fromkeys(("row_security", "geqo", "synchronize_seqscans"), "on"),
    **dict.fromkeys(("jit", "quote_all_identifiers"), "off"),
    **dict.fromkeys(("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"), "0"),
    **dict.fromkeys(("lc_messages", "lc_monetary", "lc_numeric", "lc_time"), "C"),
}
"""The settings that clients change, and that nothing here depends on."""

REPORTED = (
    *("application_name", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone", "standard_conforming_strings"),
    *("server_version", "server_encoding", "integer_datetimes", "is_superuser", "in_hot_standby"),
    "default_transaction_read_only",
)
"""The settings that are reported to a client at the start, and when they change."""

_LONGEST = 1_000  # characters of a value


def _plain(name: str, text: str) -> str:
    if any(map(check.is_hidden, text)):
        raise InvalidParameter(name, "a text", "to have no characters that cannot be seen", "Delete them.")
    return text


def _among(*known: str) -> Callable[[str, str], str]:
    def check_choice(name: str, text: str) -> str:
        if text.lower().replace("-", "").replace(" ", "") not in known[1:]:
            raise InvalidParameter(name, text, f"to be {known[0]}", "This server has no other value.")
        return known[0]

    return check_choice


_CHECKS: Mapping[str, Callable[[str, str], str]] = {
    "client_encoding": _among("UTF8", "utf8", "unicode", "sql_ascii"),
    "DateStyle": _among("ISO, MDY", "iso", "iso,mdy", "iso,dmy", "iso,ymd", "mdy"),
    "standard_conforming_strings": _among("on", "on", "true", "1", "yes"),
}

_CANONICAL = {name.lower(): name for name in (*DEFAULTS, *FIXED, *ASKING, PROJECT, KEY)}


class SessionParameters:
    """The values of one connection, which ROLLBACK takes back like any database does; a used key stays used.

    Args:
        given: what the client asked for when it connected; what RESET goes back to.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._defaults: dict[str, str] = dict(DEFAULTS)
        for name, value in given.items():
            self._defaults[_find_canonical_name(name)] = _check_value(_find_canonical_name(name), value)
        self._values: dict[str, str] = {}
        self._local: dict[str, str] = {}

    # ----------------------------------------------------------------------------------------------------- reading

    def get(self, name: str) -> str:
        """Returns a value; "" for a setting of questions that has none.

        Raises:
            WireError: if there is no such setting.
        """
        known = _find_canonical_name(name)
        for place in (self._local, self._values, self._defaults, FIXED):
            if known in place:
                return place[known]
        return ""

    def all(self) -> dict[str, str]:
        """Returns all values by name."""
        return {name: self.get(name) for name in sorted(_CANONICAL.values(), key=str.lower)}

    def catalog_settings(self) -> dict[str, str]:
        """Returns what catalog queries may know."""
        return {"version": _BANNER} | {name.lower(): self.get(name) for name in (*DEFAULTS, *FIXED)}

    def arguments(self, request: type[Request[Any]] = Ask) -> dict[str, Any]:
        """Returns how questions are asked, as `Work` takes it, as far as a request has arguments for it.

        Raises:
            WireError: if no epsilon is set: clients send queries on their own, and none may spend without a set amount.
        """
        if not (self.get("discreet.epsilon") or self.get("discreet.within")):
            hint = (
                "SET discreet.epsilon = 0.1; or SET discreet.within = 10; EXPLAIN SELECT ... shows what it would cost."
            )
            raise WireError("55000", "The query has no epsilon", hint)
        has = {field.name for field in fields(request)}
        given = {name: self.get(name) for name, argument in ASKING.items() if argument.name in has}
        return {ASKING[name].name: read_setting(name, text) for name, text in given.items() if text}

    # ----------------------------------------------------------------------------------------------------- writing

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Gives a setting a value; None for its value at the start.

        Raises:
            WireError: if there is no such setting, or it cannot be set.
            InvalidParameter: if the value does not fit.
        """
        known = _find_canonical_name(name)
        if known in FIXED:
            raise WireError("55P02", f"The setting {known} cannot be changed")
        made = self._defaults.get(known, "") if value is None else _check_value(known, value)
        (self._local if local else self._values)[known] = made
        if not local:
            self._local.pop(known, None)

    def reset_all(self) -> None:
        """Takes all settings back to what they were at the start."""
        self._values, self._local = {}, {}

    def use_key(self) -> str | None:
        """Returns the key for the next question, and forgets it."""
        found = self.get(KEY)
        for place in (self._local, self._values, self._defaults):
            place.pop(KEY, None)
        return found or None

    # ------------------------------------------------------------------------------------------------ transactions

    def snapshot(self) -> Mapping[str, str]:
        """Returns the values that `restore` takes back."""
        return dict(self._values)

    def restore(self, kept: Mapping[str, str]) -> None:
        """Takes settings back to what they were; a key that was used since is not given back."""
        key = self._values.get(KEY)
        self._values = {name: value for name, value in kept.items() if name != KEY}
        if key is not None:
            self._values[KEY] = key

    def end_transaction(self) -> None:
        """Forgets the values of SET LOCAL."""
        self._local = {}


def _find_canonical_name(name: str) -> str:
    found = _CANONICAL.get(name.lower())
    if found is None:
        own = ", ".join((*ASKING, PROJECT, KEY))
        raise WireError("42704", f"There is no setting {name[:60]!r}", f"The settings of queries are {own}.")
    return found


def _check_value(name: str, value: str) -> str:
    if len(value) > _LONGEST:
        raise WireError("22023", f"The value of {name} is too long")
    if not value and name.startswith(PREFIX):
        return ""
    if name in ASKING:
        read_setting(name, value)
        return value
    return _CHECKS.get(name, _plain)(name, value)


# ------------------------------------------------------------------------------------------------------------ grammar


def assignment(statement: WireStatement) -> tuple[str, str | None, bool]:
    """Returns the name, the value and whether it is for the transaction only, of a SET; the value is None for DEFAULT.

    Raises:
        WireError: if it is not understood, or asks for another role.
    """
    words = list(statement.words[1:])
    local = bool(words) and words[0].word == "LOCAL"
    if words and words[0].word in ("LOCAL", "SESSION") and not (len(words) > 1 and words[1].text in ("=", "TO")):
        words = words[1:]
    first = words[0].word if words else ""
    if first in ("ROLE", "AUTHORIZATION"):
        hint = "Connect with the key of the other person."
        raise WireError("42501", "The role of a connection cannot be changed", hint)
    if first in ("TRANSACTION", "CHARACTERISTICS"):
        return "transaction_isolation", None, True
    if first == "NAMES":
        return "client_encoding", _value(words[1:]), local
    if first == "TIME" and len(words) > 1 and words[1].word == "ZONE":
        return "TimeZone", _value(words[2:]), local
    name, rest = _name(words)
    if not name or not rest or (rest[0].text != "=" and rest[0].word != "TO"):
        raise WireError("42601", "SET cannot be read", "Write SET discreet.epsilon = 0.1.")
    return name, _value(rest[1:]), local


def _name(words: Sequence[Token]) -> tuple[str, Sequence[Token]]:
    if len(words) > 2 and words[1].text == ".":
        return f"{words[0].name}.{words[2].name}", words[3:]
    return (words[0].name, words[1:]) if words else ("", ())


def _value(words: Sequence[Token]) -> str | None:
    if len(words) == 1 and words[0].word == "DEFAULT":
        return None
    if not words:
        raise WireError("42601", "SET has no value", "Write SET discreet.epsilon = 0.1.")
    signs = {",": ", ", "-": "-", "+": "", "/": "/"}
    return "".join(signs.get(each.text, each.value) for each in words)


def parse_setting_name(statement: WireStatement) -> str:
    """Returns the name that SHOW or RESET is about; "all" for all.

    Raises:
        WireError: if there is none.
    """
    words = list(statement.words[1:])
    phrase = " ".join(each.word for each in words)
    if phrase in _PHRASES:
        return _PHRASES[phrase]
    name, rest = _name(words)
    if not name or rest:
        raise WireError("42601", "Name one setting", "Write SHOW discreet.remaining.")
    return name


_PHRASES = {
    "TRANSACTION ISOLATION LEVEL": "transaction_isolation",
    "TIME ZONE": "TimeZone",
    "SESSION AUTHORIZATION": "session_authorization",
}
