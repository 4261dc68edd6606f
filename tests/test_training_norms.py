"""Running statistics after training: of the training clips, for the norms that were trained, and nothing else."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from interruption import InterruptionError, interrupt_at, same
from toy_source import Tints
from whytube import wrap
from whytube.classifiers import I3D, C3DResNet
from whytube.data.source import PlainBatch
from whytube.training import Recipe, evaluate_classifier, fit_classifier
from whytube.training.norms import settle_norms, trained_norms

QUICK = Recipe(clips=360, batch_size=12, optimizer="adamw", lr=0.01, warmup=0.1)


class Dim(Tints):
    """The same tints in the dark, and with less contrast: another distribution."""

    def batch(self, split, indices, device="cpu"):
        shown = super().batch(split, indices, device)
        return PlainBatch(0.05 + 0.1 * shown.clips, shown.labels, shown.attributes)


def tiny(seed=0, momentum=0.01):
    torch.manual_seed(seed)
    model = C3DResNet(Tints.classes, width=1 / 16, frames=2, size=(16, 16), stem_stride=2, pools=(1, 2, 1, 2))
    for norm in trained_norms(model):
        norm.momentum = momentum
    return model


def i3d(dropout=0.0, seed=0):
    torch.manual_seed(seed)
    return I3D(Tints.classes, frames=2, size=(16, 16), dropout=dropout)


def test_a_short_fine_tuning_gives_a_network_that_works():
    model = tiny(momentum=0.1)
    fit_classifier(model, Tints(), replace(QUICK, clips=480))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items() if "running" in name}
    for norm in trained_norms(model):
        norm.momentum = 0.01
    fit_classifier(model, Dim(60), replace(QUICK, clips=240))
    assert evaluate_classifier(model, Dim(60), "test", 60).accuracy > 0.9
    # What it was before: twenty steps leave 82 % of the old statistics.
    settled = {name: tensor.clone() for name, tensor in model.state_dict().items() if name in before}
    model.load_state_dict({n: 0.18 * settled[n] + 0.82 * before[n] for n in before}, strict=False)
    assert evaluate_classifier(model, Dim(60), "test", 60).accuracy < 0.5


def test_val_clips_are_judged_with_the_same_statistics():
    seen = []
    model = tiny()
    fit_classifier(model, Dim(60), QUICK, validate=30, report_every=30, progress=seen.append)
    assert seen[-1].val_accuracy == evaluate_classifier(model, Dim(60), "val", 30).accuracy > 0.9


def test_the_statistics_are_mean_and_variance_over_all_clips():
    torch.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm3d(3), nn.Dropout(0.9), nn.Flatten(), nn.Linear(3 * 2 * 4 * 4, 2))
    net[0].num_batches_tracked.fill_(7)
    clips = torch.rand(24, 3, 2, 4, 4) + torch.arange(24).view(-1, 1, 1, 1, 1) / 8
    for _ in range(2):
        settle_norms(net, clips.split(6))
        torch.testing.assert_close(net[0].running_mean, clips.mean((0, 2, 3, 4)))
        torch.testing.assert_close(net[0].running_var, clips.var((0, 2, 3, 4)), rtol=0.01, atol=0)
    assert (net[0].momentum, int(net[0].num_batches_tracked)) == (0.1, 7)
    assert not net.training
    assert not net[0].training


def test_a_failure_in_between_leaves_the_norms_as_they_were():
    net = nn.Sequential(nn.BatchNorm3d(3))
    with pytest.raises(RuntimeError):
        settle_norms(net, [torch.rand(2, 5, 2, 4, 4)])
    assert (net[0].momentum, int(net[0].num_batches_tracked), net.training) == (0.1, 0, False)
    assert net[0].running_var.tolist() == [1, 1, 1]


def test_frozen_norms_keep_their_statistics():
    model = i3d()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fit_classifier(model, Tints(12), replace(QUICK, clips=8, batch_size=4, freeze="Mixed_5c"))
    changed = {n for n, t in model.state_dict().items() if "running" in n and not torch.equal(t, before[n])}
    assert changed == {name for name in before if "running" in name and ".Mixed_5c." in name}


def test_norms_that_a_network_of_ones_own_keeps_still_stay():
    class Still(nn.BatchNorm3d):
        def train(self, mode=True):
            return super().train(False)

    net = nn.Sequential(
        nn.Conv3d(3, 4, 4, 4), Still(4), nn.BatchNorm3d(4), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 3)
    )
    model = wrap(net, classes=Tints.classes, frames=4, size=(16, 16))
    fit_classifier(model, Tints(12, frames=4), replace(QUICK, clips=24))
    assert net[1].running_mean.tolist() == [0] * 4
    assert net[2].running_mean.any()


def test_memory_and_time_are_bounded():
    source = Tints(5000)
    fit_classifier(tiny(), source, replace(QUICK, clips=2400))
    assert len(source.asked) == 200 + -(-512 // 12)
    assert all(len(indices) == 12 for _, indices in source.asked)


def test_dropout_is_decided_by_the_seed_and_a_resumed_run_is_exact(tmp_path):
    recipe = replace(QUICK, clips=24, batch_size=4)
    runs = []
    for state in (1, 2):
        torch.manual_seed(state)  # whatever happened before in the process
        model = i3d(dropout=0.5)
        torch.manual_seed(state)
        after = torch.random.get_rng_state()
        fit_classifier(model, Tints(12), recipe)
        assert torch.equal(torch.random.get_rng_state(), after), "the caller's own chance is left alone"
        runs.append(model)
    assert same(*runs)
    halves = {"report_every": 1, "save_every": 1, "out_dir": tmp_path}
    with pytest.raises(InterruptionError):
        fit_classifier(i3d(dropout=0.5), Tints(12), recipe, progress=interrupt_at(3), **halves)
    torch.manual_seed(5)
    resumed = i3d(dropout=0.5, seed=3)
    fit_classifier(resumed, Tints(12), recipe, resume=True, **halves)
    assert same(resumed, runs[0])
    other = i3d(dropout=0.5)
    fit_classifier(other, Tints(12), replace(recipe, seed=1))
    assert not same(other, runs[0])
