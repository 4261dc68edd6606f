import whytube
from whytube.models import load_model


def test_health(server):
    found = server.get("/healthz").json()
    assert found == {"status": "ok", "version": whytube.__version__, "model": "demo"} | {
        "queued": found["queued"],
        "running": found["running"],
    }


def test_the_model_is_described_as_it_is(server):
    found, model = server.get("/api/model").json(), load_model("demo")
    assert found["classes"] == list(model.classifier.classes)
    assert found["attributes"] == list(model.attribute_names)
    assert (found["name"], found["words"]) == ("demo", True)
    assert (found["frames"], found["size"]) == (model.classifier.frames, list(model.classifier.size))
    assert found["efforts"] == {"quick": 6, "normal": 16, "thorough": 192}
    assert found["fills"] == ["mean", "blur", "freeze", "zero", "still", "shift", "noise"]
    assert found["limits"]["queue"] == 100


def test_a_session_without_a_token_is_open(server):
    answer = server.client.post("/api/session", json={"token": "any"})
    assert answer.status_code == 204
    assert "set-cookie" not in answer.headers
