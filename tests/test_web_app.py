"""The application as a whole: its description is true, its pages are there, and it never loads torch."""

import subprocess
import sys

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from whytube.web.messages import JobIn
from whytube.web.work import KINDS

EXAMPLES = 20
"""Requests per route; `studies` of the whole are run by hand with more."""
"""Checks of schemathesis. Positive data need not be accepted: an id that fits its pattern may be of nothing."""
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
)


def test_nothing_that_the_server_imports_loads_torch_or_a_codec():
    script = (
        "import sys, whytube.web.serving, whytube.web.work; "
        "print(*sorted({m.split('.')[0] for m in sys.modules} & {'torch', 'numpy', 'av', 'cv2', 'numba'}))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"


def test_every_kind_of_job_has_a_body_and_a_function():
    from importlib import import_module
    from typing import get_args

    bodies = get_args(get_args(JobIn)[0])
    assert {body.model_fields["kind"].annotation.__args__[0]: body for body in bodies} == {
        name: kind.body for name, kind in KINDS.items()
    }
    for kind in KINDS.values():
        module, _, name = kind.run.partition(":")
        assert callable(getattr(import_module(module), name))


def test_pages(server):
    for path in ("/", f"/r/{'0' * 32}", "/static/index.html"):
        page = server.get(path)
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert "<script>" not in page.text, "the policy of the page forbids what is written into it"
    for path in ("/docs", "/redoc", "/r/nothing", "/none"):
        assert server.get(path).status_code in (404, 422)


def test_errors_are_one_line_of_text(server):
    for answer in (
        server.get("/none"),
        server.client.put("/api/videos"),
        server.client.post("/api/jobs", content=b"{"),
        server.client.post("/api/jobs", content=b"\xff", headers={"content-type": "application/json"}),
        server.client.post("/api/jobs", content=b"[" * 5000, headers={"content-type": "application/json"}),
        server.get("/api/videos", params={"limit": "many"}),
        server.get(f"/api/videos/{'x' * 32}"),
    ):
        assert 400 <= answer.status_code < 500
        assert set(answer.json()) == {"detail"}
        assert "\n" not in answer.json()["detail"]


def test_the_description_names_what_the_issue_promises(server):
    described = server.get("/openapi.json").json()
    assert described["paths"]["/healthz"]["get"]
    body = described["paths"]["/api/videos"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    name = body["$ref"].rpartition("/")[2]
    assert described["components"]["schemas"][name]["properties"].keys() == {"file"}
    for path, methods in described["paths"].items():
        for method in methods.values():
            assert method["summary"], path
            assert path == "/healthz" or "401" in method["responses"]
            assert "HTTPValidationError" not in str(method["responses"])


@pytest.mark.slow
def test_schemathesis_finds_nothing(server):
    """Random requests, allowed and forbidden ones, against the real server."""
    schema = schemathesis.openapi.from_dict(server.get("/openapi.json").json())
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path.endswith("/events"):
            continue  # followed in test_web_events.py; it does not end by itself
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            tried += _try(operation, mode, server)
    assert tried > 10 * EXAMPLES


def _try(operation, mode, server):
    tried = 0

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @schemathesis.python.given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        nonlocal tried
        tried += 1
        case.call_and_validate(base_url=server.base, checks=CHECKS)

    run()
    return tried
