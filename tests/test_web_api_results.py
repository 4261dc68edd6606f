import json

import pytest

from whytube.data.formats import FORMATS
from whytube.explanation import Explanation
from whytube.video import probe


@pytest.fixture(scope="module")
def result(server):
    return server.explained(server.example()["id"], why_not="jive")


def test_the_document_is_the_one_of_the_command_line(server, result, tmp_path):
    found = server.get(f"/api/results/{result}/explanation.json")
    assert found.headers["content-disposition"] == 'attachment; filename="explanation.json"'
    assert found.json() == server.get(f"/api/results/{result}").json()["document"]
    (tmp_path / "why.json").write_text(json.dumps(found.json()))
    explanation = Explanation.load(tmp_path / "why.json")
    assert (explanation.positive, explanation.negative) == ("gavotte", "jive")
    assert str(server.store) not in found.text


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"kind": "overlay"}, "overlay.mp4"),
        ({"kind": "overlay", "style": "heat"}, "heat.mp4"),
        ({"kind": "masked", "reason": 0, "fill": "blur"}, "masked-0-blur.mp4"),
    ],
)
def test_videos_are_made_by_jobs(server, result, tmp_path, body, name):
    missing = server.get(f"/api/results/{result}/{name}")
    assert (missing.status_code, missing.json()["detail"]) == (404, "POST a job first")
    job = server.done(result=result, **body)
    assert job["value"] == {"url": f"/api/results/{result}/{name}"}
    made = server.get(job["value"]["url"])
    assert made.headers["content-type"] == "video/mp4"
    (tmp_path / name).write_bytes(made.content)
    assert probe(tmp_path / name).frames == 16
    assert server.ask(result=result, **body).status_code == 200, "it is not made twice"
    part = server.get(job["value"]["url"], headers={"range": "bytes=0-9"})
    assert part.content == made.content[:10]


def test_the_page_to_keep_has_everything_in_it(server, result):
    found = server.get(f"/api/results/{result}/report.html")
    assert found.status_code == 200
    assert found.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "data:video/mp4;base64," in found.text
    assert 'src="http' not in found.text
    assert server.get(f"/api/results/{result}/report.html").content == found.content


def test_tubes_go_to_cvat(server, result):
    found = server.get(f"/api/results/{result}/tubes.cvat.xml")
    assert found.headers["content-type"] == "application/xml"
    (read,) = FORMATS["cvat"].read(found.content, None)
    document = server.get(f"/api/results/{result}").json()["document"]
    assert read.size == tuple(document["size"])
    told = [reason for reason in document["reasons"] if reason["moved"]]
    assert len(read.tracks) == len(told)


def test_what_is_not_there(server, result):
    for path in ("", "/explanation.json", "/report.html", "/overlay.mp4"):
        assert server.get(f"/api/results/{'0' * 32}{path}").status_code == 404
    for name in ("masked-9-mean.mp4", "masked-0-red.mp4", "explanation", "store.sqlite", ".overlay.mp4.0.part"):
        assert server.get(f"/api/results/{result}/{name}").status_code == 404
