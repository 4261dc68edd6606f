import json

from benchmarks import page


def test_a_quick_run_answers_all_and_reports():
    report = json.loads(json.dumps(page.run(quick=True)))
    burst = report["burst"]
    assert burst["at_once"] == burst["accepted"] == burst["with_position"] == burst["answered"] == 3
    assert burst["meanwhile_ms"].keys() == set(page.PAGES)
    assert all(spread["p50"] <= spread["p95"] <= spread["max"] for spread in burst["meanwhile_ms"].values())
    memory = report["memory"]
    assert 0 < memory["before_mb"]["server"] < memory["before_mb"]["all"]
    text = page.table(report)
    assert text.startswith("3 questions at once to demo: 3 accepted, 3 with their position")
    assert "| `/healthz` meanwhile (goal: below 200) |" in text


def test_spreads():
    assert page._spread([]) == {"p50": 0.0, "p95": 0.0, "max": 0.0}
    assert page._spread([3.0]) == {"p50": 3.0, "p95": 3.0, "max": 3.0}
    assert page._spread([float(n) for n in range(101)]) == {"p50": 50.0, "p95": 95.0, "max": 100.0}
