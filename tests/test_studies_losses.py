"""The picture of the paper's loss over its steps."""

import json
from xml.etree import ElementTree

from studies.losses import loss_pictures, means, picture


def records(*losses, every=20):
    return [{"step": every * n, "loss": loss} for n, loss in enumerate(losses, 1)]


def test_a_point_is_the_mean_of_a_hundred_steps():
    assert means(records(1, 2, 3, 4, 5, 6, 6, 6, 6, 6)) == [3, 6]
    assert means(records(1, 2, 3, 4, 5, 100)) == [3], "a rest of few steps would be rough"
    assert means(records(7, 9)) == [8], "unless it is all there is"
    assert means([{"step": 6, "loss": 3.0}]) == [3]


def test_runs_that_diverge_do_not_flatten_the_others():
    curves = {"good": records(*5 * [10], *5 * [8]), "partly": records(*5 * [12], *5 * [99]), "bad": records(*5 * [999])}
    drawn = ElementTree.fromstring(picture(curves, {"all-zero weights": 14.0}))
    (chart,) = drawn.findall("{*}svg")
    points = [len(line.get("points").split()) for line in chart.findall("{*}polyline")]
    assert points == [2, 1, 2], "good, the part of the second, and all-zero weights"
    names = [text.text for text in drawn.findall("{*}text")][1:]
    assert names == ["good", "partly (partly above 21.0)", "bad (above 21.0)", "all-zero weights"]


def test_every_sweep_has_a_picture(tmp_path):
    for end in ("", "-other"):
        (tmp_path / f"paper-curves{end}.json").write_text(json.dumps({"curves": {"a": records(*5 * [3])}}))
    (tmp_path / "paper-loss-other.json").write_text(json.dumps({"levels": {"all-zero weights": 14.0}}))
    assert list(loss_pictures(tmp_path)) == ["paper-curves-other.svg"], "its levels are in the file beside it"
    assert loss_pictures(tmp_path / "nothing") == {}
