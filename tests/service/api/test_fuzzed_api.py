"""The API against what its own description generates: no 500, nothing undescribed, no key no answer."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    status_code_conformance,
)

from discreet.service.caller import ServiceRole
from tests.service.api.offices import HOST, office

MADE = office()
SCHEMA = schemathesis.openapi.from_asgi("/v1/openapi.json", MADE.app, headers={"Host": HOST})


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_no_request_finds_a_fault(case: schemathesis.Case[Any]) -> None:
    MADE.desk.jobs.clear()
    got = case.call(headers={"Authorization": f"Bearer {MADE.keys[ServiceRole.OWNER]}", "Host": HOST})
    assert got.status_code < 500
    case.validate_response(got, checks=[status_code_conformance, content_type_conformance])
