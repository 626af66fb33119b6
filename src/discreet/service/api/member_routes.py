"""Routes for people and their keys."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.responses import Response

from discreet.presentation.documents.json_values import Document
from discreet.service.api.error_responses import json_response
from discreet.service.api.request_models import NewKey, NewPerson, Rotated
from discreet.service.api.response_models import KeysModel, NewKeyModel, PeopleModel, PersonModel, result
from discreet.service.api.route_access import Looking, SecuredRoute
from discreet.service.caller import ServiceRole
from discreet.service.identity import AccessKey, Person

router = APIRouter(prefix="/v1", route_class=SecuredRoute, tags=["people"])


@router.get("/people", responses=result(PeopleModel))
def list_people(call: Looking) -> Response:
    """Everybody who is known."""
    return json_response({"people": [_person(each) for each in call.offices.identities.people(call.caller)]})


@router.post("/people", responses=result(PersonModel))
def make_person(body: NewPerson, call: Looking) -> Response:
    """Makes somebody known, who then may be given keys."""
    return json_response(_person(call.offices.identities.make_person(call.caller, body.name, ServiceRole(body.role))))


@router.delete("/people/{name}", responses=result(PersonModel))
def disable_person(name: str, call: Looking) -> Response:
    """Ends all that somebody has: keys, sessions, links; their name and history stay."""
    call.offices.identities.disable_person(call.caller, name)
    return json_response(
        next(_person(each) for each in call.offices.identities.people(call.caller) if each.name == name)
    )


@router.get("/keys", responses=result(KeysModel))
def list_keys(call: Looking) -> Response:
    """All keys for those who manage people, for all others their own; never what proves them."""
    return json_response({"keys": [_key(each) for each in call.offices.identities.keys(call.caller)]})


@router.post("/keys", responses=result(NewKeyModel))
def make_key(body: NewKey, call: Looking) -> Response:
    """Makes a key for somebody who is known; it is shown this once."""
    key_id, key = call.offices.identities.make_key(
        call.caller,
        body.name,
        tables=body.tables,
        project=body.project,
        expires_days=body.expires_days,
        note=body.note,
    )
    return json_response({"id": key_id, "key": key})


@router.delete("/keys/{key}", responses=result(KeysModel))
def revoke_key(key: str, call: Looking) -> Response:
    """Ends a key at once, for whoever uses it now as well."""
    call.offices.identities.revoke_key(call.caller, key)
    return json_response({"keys": [_key(each) for each in call.offices.identities.keys(call.caller) if each.id == key]})


@router.post("/keys/{key}/rotate", responses=result(NewKeyModel))
def rotate_key(key: str, body: Rotated, call: Looking) -> Response:
    """Replaces a key by a new one of the same person and scope, which is shown this once."""
    key_id, made = call.offices.identities.rotate_key(call.caller, key, expires_days=body.expires_days)
    return json_response({"id": key_id, "key": made})


def _person(person: Person) -> Document:
    return {
        "name": person.name,
        "role": person.role.value,
        "created": _moment(person.created),
        "disabled": _moment(person.disabled),
    }


def _key(key: AccessKey) -> Document:
    return {
        "id": key.id,
        "person": key.person,
        "role": key.role.value,
        "tables": None if key.tables is None else sorted(key.tables),
        "project": key.project,
        "note": key.note,
        "created": _moment(key.created),
        "expires": _moment(key.expires),
        "revoked": _moment(key.revoked),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
