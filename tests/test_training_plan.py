"""What a training says at its start, and how it goes on in a log."""

import io
import itertools
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from toy_source import Tints
from whytube import wrap
from whytube.classifiers import I3D, C3DResNet
from whytube.cli import options
from whytube.cli.options import Lines, training_bar
from whytube.training import Recipe, memory, plan
from whytube.training.history import Record
from whytube.training.plan import Plan, peak_of_step, plan_classifier, plan_explainer

CPU = torch.device("cpu")
QUICK = Recipe(clips=64, batch_size=8)


def i3d():
    return I3D(Tints.classes, frames=8, size=(64, 64))


def test_steps_clips_and_memory_are_said():
    made = plan_classifier(i3d(), Tints(20), QUICK, CPU)
    assert (made.steps, made.batch_size, made.clips, made.different) == (8, 8, 64, 20)
    assert re.fullmatch(
        r"8 steps of 8 clips: 64 shown of 20 different ones; about \d+\.\d GB of memory, \d+\.\d GB are free", str(made)
    )
    assert plan_classifier(i3d(), Tints(), QUICK, CPU).different is None
    assert plan_explainer(i3d(), Tints(20), QUICK, CPU).steps == 8


def test_what_is_kept_frozen_or_larger_counts(monkeypatch):
    monkeypatch.setattr(plan, "used_bytes", lambda: 0)  # which changes by itself

    def bytes_of(recipe):
        return plan_classifier(i3d(), Tints(2000), recipe, CPU).memory

    plain = bytes_of(QUICK)
    assert bytes_of(replace(QUICK, batch_size=32)) > plain + 1e8
    assert bytes_of(replace(QUICK, freeze="head")) < plain
    assert (
        bytes_of(replace(QUICK, distinct=1000)) >= bytes_of(replace(QUICK, distinct=1)) + 0.9 * 1000 * 3 * 8 * 64 * 64
    )


def test_decoded_clips_that_a_source_keeps_are_no_reason_to_doubt(monkeypatch):
    monkeypatch.setattr(plan, "used_bytes", lambda: 0)
    source = Tints(10**6)
    source.cache_bytes = 64 * 10**9

    def planned(device, free, recipe=QUICK):
        monkeypatch.setattr(plan, "free_bytes", lambda _: free)
        return plan_classifier(i3d(), source, recipe, device)

    gpu = torch.device("cuda")
    assert planned(gpu, 24 * 10**9).memory < 5e9, "they are in the host's memory"
    small, large = planned(CPU, 10 * 10**9), planned(CPU, 1000 * 10**9)
    assert small.memory == 10 * 10**9, "as many as there is room for"
    assert small.warning is None
    assert large.memory > 64e9
    assert planned(CPU, 1000 * 10**9, replace(QUICK, distinct=8)).memory < 5e9, "they are kept elsewhere"


def test_several_processes_share_batches_and_a_cpus_memory(monkeypatch):
    monkeypatch.setattr(plan, "free_bytes", lambda device: 8 * 10**9)
    monkeypatch.setattr(plan, "used_bytes", lambda: 0)
    one, two = (plan_classifier(i3d(), Tints(20), QUICK, CPU, processes=number) for number in (1, 2))
    assert two.memory < one.memory
    assert (one.available, two.available) == (8 * 10**9, 4 * 10**9)
    assert (two.steps, two.batch_size) == (one.steps, one.batch_size), "batches are those of the recipe"
    assert re.search(r"different ones, by 2 processes; about \d+\.\d GB of memory each, 4\.0 GB are free", str(two))


def test_the_peak_is_that_of_the_tensors_that_live():
    net = nn.Sequential(nn.Conv3d(3, 4, 1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 3))
    model = wrap(net, classes=Tints.classes, frames=4, size=(16, 16))
    cells = 2 * 4 * 16 * 16  # of two clips

    def look(net, clips):
        with torch.no_grad():
            net(clips)

    found = peak_of_step(model, 2, look)
    assert 4 * cells * (3 + 2 * 4) <= found <= 4 * cells * (2 * 3 + 3 * 4) + 1000


def test_a_network_that_needs_values_is_trained_all_the_same():
    class Asking(C3DResNet):
        def forward(self, clips):
            assert clips.sum().item() >= 0
            return super().forward(clips)

    model = Asking(Tints.classes, width=1 / 16, frames=2, size=(16, 16))
    made = plan_classifier(model, Tints(6), QUICK, CPU)
    assert made.memory is None
    assert made.warning is None
    assert "how much memory cannot be told" in str(made)


def test_what_will_not_fit_is_warned_about(monkeypatch, capsys):
    monkeypatch.setattr(plan, "free_bytes", lambda device: 1000)
    monkeypatch.setattr(plan, "used_bytes", lambda: 0)
    made = plan_classifier(i3d(), Tints(20), QUICK, CPU)
    monkeypatch.setattr(options, "errors", options.Console(stderr=True, width=500))
    with training_bar(made):
        pass
    said = capsys.readouterr().err
    assert "warning: this will probably not fit" in said
    assert "--recipe laptop" in said
    assert "--set batch_size=2" in said


def test_a_container_with_a_limit_has_only_that(tmp_path, monkeypatch):
    machine = memory.free_bytes(CPU)
    assert machine > 0
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert memory.free_bytes(CPU) == 2_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_bytes(CPU) > 2_000_000


@pytest.fixture
def log(monkeypatch, capsys):
    """Give a clock to move, and what was said so far."""
    monkeypatch.setattr(options, "errors", options.Console(stderr=True, width=300))

    class Log:
        now = 0.0

        def said(self):
            return capsys.readouterr().err.splitlines()

    return Log()


def test_an_estimate_comes_after_the_first_steps_then_a_line_now_and_then(log):
    lines = Lines("training, step", clock=lambda: log.now)
    times = []
    for step in range(1, 101):
        log.now += 5.0
        lines.note = "loss 1.000"
        lines(step, 100)
        times += [(log.now, line) for line in log.said()]
    assert times[0] == (10.0, "training, step: 2 of 100, loss 1.000, about 8 min left")
    gaps = [later - sooner for (sooner, _), (later, _) in itertools.pairwise(times)]
    assert min(gaps) == 50.0, "a tenth of the work"
    assert len(times) == 10


def test_long_work_is_heard_of_and_short_work_is_not(log):
    lines = Lines("evaluating", clock=lambda: log.now)
    for done in range(4, 4004, 4):
        log.now += 100.0
        lines(done, 4000)
    said = log.said()
    assert "about 27.7 h left" in said[0]
    assert len(said) == pytest.approx(1000 * 100 / 600, rel=0.02)
    short = Lines("checking", clock=lambda: log.now)
    for done in range(1, 1001):
        log.now += 0.02
        short(done, 1000)
    assert log.said() == []


def test_a_resumed_run_is_estimated_by_its_own_steps(log):
    lines = Lines("training, step", clock=lambda: log.now)
    log.now += 500.0  # imports, the first step, whatever is slow once
    lines(91, 100)
    assert log.said() == []
    log.now += 10.0
    lines(92, 100)
    assert log.said() == ["training, step: 92 of 100, about 80 s left"]


def test_the_end_of_a_training_is_said_in_a_log(log):
    with training_bar(Plan(10, 4, 40, 8, None, None, "cpu")) as bar:
        bar.step(10, 10)
        bar.record(Record(10, 40, 0.1, 0.25, 0.5, 12.0))
    assert log.said()[-1] == "training: done, loss 0.250, right 50 %, 12 s"


def test_a_unit_is_told_by_the_second(log):
    lines = Lines("explaining", unit="videos", clock=lambda: log.now)
    for done in (1016, 1032):
        log.now += 4.0
        lines(done, 100_000)
    assert log.said() == ["explaining: 1032 of 100000, 4 videos per second, about 6.9 h left"]


def test_a_terminal_shows_the_pace(monkeypatch):
    shown = io.StringIO()
    terminal = options.Console(file=shown, width=200, force_terminal=True, color_system=None)
    monkeypatch.setattr(options, "errors", terminal)
    with options.progress_bar("explaining", unit="videos") as progress:
        progress(16, 64)
        progress(32, 64)
    assert re.search(r"explaining.* 50%.*32/64.* videos per second, about .* left", shown.getvalue())
