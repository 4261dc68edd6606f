import torch
from rich.console import Console

from whytube.cli import demo
from whytube.evaluation import Results
from whytube.models import build_classifier, load_model
from whytube.training.recipe import Recipe


def test_the_demo_explains_measures_and_writes_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "SHOWN", 1)
    console = Console(record=True, width=120)
    results = demo.run_demo(tmp_path, train=False, count=4, seed=0, device=torch.device("cpu"), console=console)
    assert Results.load(tmp_path / "results.json") == results
    assert {"ours", "random-verified", "grad-cam", "centre", "true-box", "random-tube"} <= set(results.methods)
    assert results.classifier.accuracy.mean > 0.7
    page = (tmp_path / "report.html").read_text()
    mean = results.methods["centre"].tube_lengths.index(4 * 3)
    assert f"from 1 to 16 frames; mean {mean:.1f}" in page, "the centre takes the whole clip"
    assert mean == 16
    assert "data:video/mp4;base64," in page
    assert (tmp_path / "overlays" / "00.mp4").stat().st_size > 1000
    assert "classified as" in console.export_text()


def test_training_from_nothing_leaves_a_model_to_load(tmp_path, monkeypatch):
    monkeypatch.setitem(demo.RECIPES, "demo", Recipe(clips=8, batch_size=8, optimizer="adamw", lr=1e-3))
    monkeypatch.setitem(demo.EXPLAINER_RECIPES, "demo", Recipe(clips=4, batch_size=4, optimizer="adamw", lr=1e-3))
    explainer = demo.train_demo(tmp_path / "model", seed=0, device=torch.device("cpu"), console=Console(quiet=True))
    again = load_model(tmp_path / "model")
    assert again.classes == explainer.classes == build_classifier(demo.PRESET, explainer.classes).classes
    assert torch.equal(again.scores.attribute_bias, explainer.scores.attribute_bias)
