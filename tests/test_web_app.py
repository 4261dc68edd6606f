"""The application as a whole: its description is true, its pages are there, and it never loads torch."""

import subprocess
import sys

from whytube.web.messages import JobIn
from whytube.web.work import KINDS


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


def test_schemathesis_finds_nothing(server, tmp_path):
    """Random requests, allowed and forbidden ones; `--max-examples 100 --max-time 600` tries more by hand.

    Allowed requests may be refused: an id that fits its pattern may be of nothing. Followers are tried elsewhere, as
    their answer ends only with a job; and how long an answer takes is measured, not tested.
    """
    server.example()
    words = ["run", f"{server.base}/openapi.json", "--max-examples", "3", "--max-time", "40", "--seed", "1"]
    words += ["--phases", "examples,coverage,fuzzing", "--checks", "all", "--request-timeout", "120"]
    words += ["--exclude-checks", "positive_data_acceptance", "--suppress-health-check", "all"]
    words += ["--exclude-path-regex", "events$|examples/", "--no-color"]
    script = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"
    ran = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert "failed" not in ran.stdout.split("SUMMARY")[1]
    assert server.get("/healthz").status_code == 200
