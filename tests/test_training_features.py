"""Features that are kept: the same training, with one run of the classifier per clip."""

from dataclasses import replace

import pytest
import torch

from interruption import InterruptionError, interrupt_at, same
from toy_explainer import tiny_classifier
from toy_source import Tints
from whytube.training import Recipe, features, fit_explainer
from whytube.training.features import SeenClips, bytes_of_features, place_of_features
from whytube.training.plan import plan_explainer

CPU = torch.device("cpu")
QUICK = Recipe(clips=72, batch_size=8, optimizer="adamw", lr=0.02)


class Counting:
    """Count the clips that a classifier is run on, but for those of no batch."""

    def __init__(self, classifier, monkeypatch):
        self.clips, run = 0, classifier.features

        def count(clips):
            self.clips += len(clips)
            return run(clips)

        monkeypatch.setattr(classifier, "features", count)


def test_a_clip_is_read_and_run_once_and_comes_back_as_it_was(monkeypatch):
    classifier, source = tiny_classifier(), Tints(10)
    with torch.no_grad():
        expected = classifier.features(Tints(10).batch("train", range(10)).clips)
    groups = ([3, 1, 4], [5, 9], [0, 2, 6], [7, 8])
    seen, runs = SeenClips(classifier, source, groups, scales=2, place=CPU), Counting(classifier, monkeypatch)
    for indices in ([3, 1, 4], [1, 5, 1], [4, 9, 3]):
        batch = seen.batch("train", indices)
        torch.testing.assert_close(batch.features.logits, expected.logits[indices])
        for found, whole in zip(batch.features.maps, expected.maps, strict=True):
            torch.testing.assert_close(found, whole[indices])
        shown = Tints(10).batch("train", indices)
        assert torch.equal(batch.labels, shown.labels)
        assert torch.equal(batch.attributes, shown.attributes)
    assert source.asked == [("train", [3, 1, 4]), ("train", [5, 9])]
    assert runs.clips == 5
    assert torch.equal(batch.clips, shown.clips), "read again, for those who want them"
    with pytest.raises(LookupError, match="only features of 'train' are kept, not of 'test'"):
        seen.batch("test", [0])


def test_of_the_maps_only_those_that_are_scored_are_kept():
    seen = SeenClips(tiny_classifier(), Tints(4), [range(4)], scales=1, place=CPU)
    (last,) = seen.batch("train", [2]).features.maps
    assert last.shape[1:] == tiny_classifier().map_shapes()[-1]


@pytest.mark.parametrize("objective", ["paper", "ours"])
@pytest.mark.parametrize("distinct", [None, 9])
def test_training_is_the_same_with_and_without(objective, distinct, monkeypatch):
    fits, runs = [], []
    for share in (features.SHARE, 0.0):
        monkeypatch.setattr(features, "SHARE", share)
        classifier = tiny_classifier()
        counting = Counting(classifier, monkeypatch)
        fits.append(fit_explainer(classifier, Tints(20), replace(QUICK, distinct=distinct), objective=objective))
        runs.append(counting.clips)
    (kept, history), (plain, straight) = fits
    for (name, a), b in zip(kept.scores.state_dict().items(), plain.scores.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, msg=lambda text, name=name: f"{name}: {text}")
    assert history.records[-1].loss == pytest.approx(straight.records[-1].loss, rel=1e-4)
    assert runs == [1 + (distinct or 20), 1 + 8 * 8 + 72], "one more for the shapes of the maps; eight for statistics"


def test_a_run_goes_on_in_a_later_round(tmp_path):
    def fit(folder, **settings):
        how = {"objective": "two-sided", "report_every": 1, "save_every": 1, "out_dir": folder}
        return fit_explainer(tiny_classifier(), Tints(20), QUICK, **how, **settings)[0]

    whole = fit(tmp_path / "whole")
    with pytest.raises(InterruptionError):
        fit(tmp_path / "b", progress=interrupt_at(5))
    assert same(fit(tmp_path / "b", resume=True).scores, whole.scores)


def test_the_response_is_fitted_to_the_clips_themselves():
    explainer, _ = fit_explainer(tiny_classifier(), Tints(20), replace(QUICK, clips=40, masked_runs=96))
    assert explainer.response is not None


def test_features_are_kept_where_they_fit_and_serve(monkeypatch):
    gpu = torch.device("cuda")
    free = {"cuda": 100, "cpu": 1000}
    monkeypatch.setattr(features, "free_bytes", lambda device: free.get(device.type))
    often = {"clips": 10, "shown": 11}
    assert place_of_features(50, gpu, **often) == gpu
    assert place_of_features(51, gpu, **often) == CPU, "the host has more"
    assert place_of_features(501, gpu, **often) is None
    assert place_of_features(1, torch.device("mps"), **often) == CPU, "a device that does not say"
    assert place_of_features(1, gpu, clips=10, shown=10) is None, "no clip comes twice"
    assert place_of_features(1, gpu, clips=None, shown=10) is None, "no end of clips"


def test_the_plan_says_what_is_kept(monkeypatch):
    classifier = tiny_classifier()
    size = bytes_of_features(classifier.map_shapes(), 3, 20)
    batch = SeenClips(classifier, Tints(20), [range(20)], scales=2, place=CPU).batch("train", range(20))
    assert size == sum(x.nbytes for x in (batch.features.logits, *batch.features.maps))
    kept = plan_explainer(classifier, Tints(20), QUICK, CPU)
    assert kept.features == size
    assert ", features kept (0.0 GB)" in str(kept)
    monkeypatch.setattr(features, "SHARE", 0.0)
    plain = plan_explainer(classifier, Tints(20), QUICK, CPU)
    assert plain.features == 0
    assert "features" not in str(plain)
    assert kept.memory - plain.memory == pytest.approx(size, abs=1 << 26)


@pytest.mark.gpu
@pytest.mark.parametrize("place", ["cuda", "cpu"])
def test_a_gpu_gets_its_features_from_where_they_are_kept(place):
    classifier = tiny_classifier().cuda()
    seen = SeenClips(classifier, Tints(6), [range(3), range(3, 6)], scales=2, place=torch.device(place))
    batch = seen.batch("train", [4, 1], "cuda")
    with torch.no_grad():
        expected = classifier.features(Tints(6).batch("train", [4, 1], "cuda").clips)
    for found, whole in zip((batch.features.logits, *batch.features.maps), (expected[0], *expected[1]), strict=True):
        assert found.is_cuda
        torch.testing.assert_close(found, whole, rtol=1e-3, atol=1e-3)
