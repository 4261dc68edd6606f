from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from toy_squares import Adder, ask
from whytube.classifiers import I3D, C3DResNet
from whytube.search import masked
from whytube.search import verify as question
from whytube.search.masked import masked_logits, search_copy, search_precision
from whytube.tubes import FILLS, box_masks, erase, erase_boxes


def test_masked_logits_are_asked_for_only_where_tried():
    question, _ = ask(2)
    model = Adder()
    boxes = torch.tensor([0.0, 0, 16, 32]).expand(2, 3, 4, 4)
    tried = torch.tensor([[True, False, False], [False, False, True]])
    logits = masked_logits(model, question, boxes, tried, fill="zero")
    assert model.seen == 2
    assert model.training, "its mode is as it was"
    torch.testing.assert_close(logits[0, 1], question.features.logits[0])
    by_hand = model.eval()(erase(question.clips[1:], box_masks(boxes[1, :1], model.size), fill="zero"))
    torch.testing.assert_close(logits[1, 2], by_hand[0].detach())


@pytest.mark.parametrize(("half", "least"), [(True, 64), (False, 18)])
def test_a_gpu_runs_fewer_clips_at_a_time_in_full_precision(half, least):
    """The clips of J-HMDB's I3D: four times the memory of a clip in half precision, at a quarter of the clips."""
    network = I3D(("a", "b"), frames=32, size=(144, 192))
    network = network.half() if half else network
    on_a_gpu = SimpleNamespace(clips=SimpleNamespace(device=torch.device("cuda"), shape=(1, 3, 32, 144, 192)))
    assert masked._at_once(network, on_a_gpu) == least


def test_large_clips_are_asked_about_one_by_one(monkeypatch):
    question, _ = ask(2)
    boxes = torch.tensor([0.0, 0, 16, 32]).expand(2, 3, 4, 4)
    tried = torch.ones(2, 3, dtype=torch.bool)
    whole = masked_logits(Adder(), question, boxes, tried, fill="zero")
    sizes = []
    model = Adder()
    model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    monkeypatch.setitem(masked._PIXELS, "cpu", 1)
    torch.testing.assert_close(masked_logits(model, question, boxes, tried, fill="zero"), whole)
    assert sizes == [1, 1], "a tube that is proposed three times is masked once for each clip"


@pytest.mark.parametrize("fill", sorted(FILLS))
def test_every_fill(fill):
    question, _ = ask(1)
    boxes = torch.tensor([0.0, 0, 16, 32]).expand(1, 1, 4, 4)
    found = masked_logits(Adder(), question, boxes, torch.ones(1, 1, dtype=torch.bool), fill=fill)
    by_hand = Adder().eval()(erase(question.clips, box_masks(boxes[0], (32, 32)), fill=fill))
    torch.testing.assert_close(found[0], by_hand)


def test_what_masking_does_not_change_is_not_asked_about_again():
    """Frozen on a single frame, a clip is the same: its logits are, too, although these are not the network's."""
    question, _ = ask(1)
    question = replace(question, features=question.features._replace(logits=torch.full((1, 4), 7.0)))
    boxes = torch.zeros(1, 1, 4, 4)
    boxes[0, 0, 0] = torch.tensor([0.0, 0, 16, 32])
    found = masked_logits(Adder(), question, boxes, torch.ones(1, 1, dtype=torch.bool), fill="freeze")
    assert torch.equal(found[0], question.features.logits)


def tiny(network=I3D, dtype=torch.float32):
    """Return an untrained network with its normalisations' statistics off their starting values, and a question."""
    torch.manual_seed(0)
    model = network(["a", "b", "c"], frames=9, size=(80, 96)).eval()
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, nn.BatchNorm3d)):
            norm.running_mean.normal_(std=0.1)
            norm.bias.normal_(std=0.1)
    return model.to(dtype), question.ask(model.to(dtype), torch.rand(2, 3, 9, 80, 96, dtype=dtype))


def two_tubes():
    """Two clips' two tubes: a box at rest in a corner, and one that drifts over four frames inside: (2, 2, 9, 4)."""
    boxes = torch.zeros(2, 2, 9, 4)
    boxes[:, 0] = torch.tensor([60.0, 50, 96, 80])
    for t in range(3, 7):
        boxes[:, 1, t] = torch.tensor([20.0 + 3 * t, 30, 40 + 3 * t, 52])
    return boxes


@pytest.mark.parametrize("fill", sorted(FILLS))
def test_a_network_run_on_blocks_answers_as_on_whole_clips(fill):
    model, asked = tiny(dtype=torch.float64)
    boxes = two_tubes()
    found = masked_logits(model, asked, boxes, torch.ones(2, 2, dtype=torch.bool), fill=fill)
    with torch.no_grad():
        for b in range(2):
            by_hand = model(erase_boxes(asked.clips[b : b + 1].expand(2, -1, -1, -1, -1), boxes[b], fill=fill))
            torch.testing.assert_close(found[b], by_hand)


def test_the_maps_of_a_clip_are_made_once_for_all_fills(monkeypatch):
    model, asked = tiny()
    made, run_all = [], masked.run_all
    monkeypatch.setattr(masked, "run_all", lambda steps, x: made.append(len(x)) or run_all(steps, x))
    every = torch.tensor([[True, True], [False, False]])
    for fill in ("zero", "still", "shift", "noise"):
        masked_logits(model, asked, two_tubes(), every, fill=fill)
    assert made == [1]
    before = masked_logits(model, asked, two_tubes(), every, fill="zero")
    with torch.no_grad():
        model.stages["Mixed_3b"].branch_0.conv.weight.mul_(2)
    after = masked_logits(model, asked, two_tubes(), every, fill="zero")
    assert made == [1, 1], "other weights, other maps"
    assert (after[0] != before[0]).any(1).all()


def test_a_tube_that_covers_no_pixel_changes_nothing():
    model, asked = tiny()
    boxes = torch.zeros(2, 1, 9, 4)
    boxes[1, 0, :] = torch.tensor([5.0, 5, 5.4, 9])
    found = masked_logits(model, asked, boxes, torch.ones(2, 1, dtype=torch.bool), fill="zero")
    assert torch.equal(found[:, 0], asked.features.logits)


@pytest.mark.parametrize("network", [I3D, C3DResNet])
def test_a_search_runs_in_half_precision(network, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    model, asked = tiny(network)
    every = torch.ones(2, 2, dtype=torch.bool)
    exact = masked_logits(model, asked, two_tubes(), every, fill="zero")
    found = masked_logits(model, asked, two_tubes(), every, fill="zero", exact=False)
    assert found.dtype == torch.float32
    assert not torch.equal(found, exact)
    assert (found - exact).abs().max() < 0.02 * exact.abs().max()
    copy = search_copy(model)
    assert copy is search_copy(model), "made once"
    assert {w.dtype for name, w in copy.named_parameters() if not name.startswith("head")} == {torch.bfloat16}
    assert {w.dtype for w in (*copy.head.parameters(), *model.parameters())} == {torch.float32}
    with torch.no_grad():
        next(model.parameters()).mul_(2)
    assert search_copy(model) is not copy, "made again after training"


def test_where_there_is_no_half_precision_a_search_runs_in_the_networks_own(monkeypatch):
    model, _ = tiny()
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False)
    assert search_precision(model) is None
    assert search_copy(model) is model
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert search_precision(model) == torch.bfloat16
    assert search_precision(model.double()) is None
    assert search_precision(Adder()) is None, "only networks that were tried in it"


def test_tubes_that_change_nothing_may_stand_anywhere_among_others(monkeypatch):
    """First, last, or filling up a part of those that are run together."""
    model, asked = tiny()
    boxes = torch.zeros(2, 4, 9, 4)
    boxes[0, 1], boxes[0, 2] = two_tubes()[0]
    boxes[1, 0] = two_tubes()[0, 0]
    every = torch.ones(2, 4, dtype=torch.bool)
    whole = masked_logits(model, asked, boxes, every, fill="zero")
    for b, m in ((0, 0), (0, 3), (1, 1), (1, 2), (1, 3)):
        assert torch.equal(whole[b, m], asked.features.logits[b])
    for b, m in ((0, 1), (0, 2), (1, 0)):
        by_hand = model(erase_boxes(asked.clips[b : b + 1], boxes[b, m : m + 1], fill="zero"))
        torch.testing.assert_close(whole[b, m], by_hand[0].detach(), rtol=1e-3, atol=1e-4)
    monkeypatch.setattr(masked, "_CLIPS", 2)
    torch.testing.assert_close(masked_logits(model, asked, boxes, every, fill="zero"), whole, rtol=1e-3, atol=1e-4)
    nothing = masked_logits(model, asked, boxes, ~every, fill="zero")
    assert torch.equal(nothing, asked.features.logits[:, None].expand(2, 4, 3))


def test_a_network_of_several_precisions_keeps_them(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    model = C3DResNet(["a", "b"], width=1 / 16, frames=2, size=(16, 16))
    assert search_precision(model) == torch.bfloat16
    model.head.double()
    assert search_precision(model) is None
