"""Tubes of maps: equal areas, the tube that holds most, verified ones, costs."""

from dataclasses import replace

import pytest
import torch

from toy_squares import LEFT, RIGHT, Adder, Squares, ask
from whytube.classifiers.base import Features
from whytube.errors import ArgumentError
from whytube.evaluation.methods import MAKERS, MapMaker, MapMethod, VerifiedMap, make_methods
from whytube.evaluation.methods.maps import AREA, map_tubes
from whytube.search.verify import SELECTING_FILLS, Question, best_regions
from whytube.tubes import box_areas


def spot(maps):
    """Make a maker of fixed maps (N, t, h, w) for every clip, at the cost of 5 forward and 2 backward runs."""
    return MapMaker("spot", lambda _, question, __: maps.expand(len(question.clips), *maps.shape), 5, 2)


def shares(boxes):
    """Share of the volume of clips of 32 x 32."""
    return box_areas(boxes).sum(-1) / (boxes.shape[-2] * 32 * 32)


@pytest.mark.parametrize("name", MAKERS)
def test_every_peer_has_a_tube_of_the_same_area_on_what_makes_the_difference(name):
    question, _ = ask(3)
    regions = MapMethod(Adder(), MAKERS[name], Squares.table)(question, 1)
    assert regions.boxes.shape == (3, 2, 1, 4, 4)
    assert torch.allclose(shares(regions.boxes), torch.tensor(AREA), atol=1e-3)
    assert (shares(regions.boxes) <= AREA).all()
    centre = (regions.boxes[..., :2] + regions.boxes[..., 2:])[:, :, 0].mean(2) / 2
    assert (centre[..., 0] - (LEFT + 4)).abs().max() < 3, "the bright square at the left makes all three classes"
    assert (centre[..., 1] - 17.5).abs().max() < 3


@pytest.mark.parametrize("name", MAKERS)
def test_verified_is_at_least_as_good_as_one_shot(name):
    question, _ = ask(3)
    model, maker = Adder().eval(), MAKERS[name].remembered()
    one = MapMethod(model, maker, Squares.table)(question, 1)
    exists = torch.ones(3, 2, 1, dtype=torch.bool)
    alone = best_regions(model, question, one.boxes, exists, 1)
    best = VerifiedMap(model, maker, Squares.table, tubes=13)(question, 2)
    assert (best.scores[..., 0] >= alone.scores[..., 0]).all()
    assert (best.scores[..., 0] >= best.scores[..., 1]).all()
    assert (shares(best.boxes) <= AREA).all()
    assert (best.masked_clips == maker.masked_clips + 13 * len(SELECTING_FILLS)).all()
    only = VerifiedMap(model, maker, Squares.table, tubes=1)(question, 1)
    assert torch.equal(only.boxes, one.boxes), "the first tube that is tried is the one shot"


@pytest.mark.parametrize("name", MAKERS)
def test_what_a_map_costs_is_what_the_classifier_ran(name):
    question, _ = ask(2, negatives=1)
    model = Adder()
    MAKERS[name].make(model, question, 0)
    assert model.seen == 2 * MAKERS[name].forwards
    assert MAKERS[name].backwards in (0, MAKERS[name].forwards, 3)
    assert MAKERS[name].masked_clips == MAKERS[name].forwards + 2 * MAKERS[name].backwards


def test_costs_add_up():
    question, _ = ask(2)
    maker = spot(torch.rand(2, 4, 8, 8, generator=torch.Generator().manual_seed(0)))
    assert (MapMethod(Adder(), maker)(question, 1).masked_clips == 9).all()
    model = Adder()
    for tubes in (1, 16, 48):
        model.seen = 0
        regions = VerifiedMap(model, maker, tubes=tubes)(question, 1)
        assert (regions.masked_clips == 9 + 2 * tubes).all(), "with two fills a tube is two masked clips"
        assert model.seen <= 2 * 2 * tubes * 2, "the same tube for two negatives is masked once"


def test_the_tube_that_holds_most_of_the_map():
    question, _ = ask(1)
    maps = torch.zeros(2, 4, 16, 16)
    maps[0, :, 2:7, 2:7] = 1.0  # small, at all times: the full length
    maps[1, 2, 4:14, 4:14] = 1.0  # large, in one frame
    boxes = MapMethod(Adder(), spot(maps))(question, 1).boxes[0, :, 0]
    assert (box_areas(boxes[0]) > 0).all()
    assert (box_areas(boxes[1]) > 0).tolist() == [False, False, True, False]
    assert torch.allclose(shares(boxes), torch.tensor(AREA), atol=1e-3)
    middle = (boxes[1, 2, :2] + boxes[1, 2, 2:]) / 2
    assert torch.allclose(middle, torch.tensor(18.0), atol=2.5)


def test_a_map_says_how_much_a_tube_holds():
    question, _ = ask(1, negatives=1)
    maps = torch.rand(1, 1, 4, 32, 32, generator=torch.Generator().manual_seed(1))
    boxes, held = map_tubes(3 * maps - 7, question, 0.1, 2)
    assert boxes.shape == (1, 1, 12, 2, 4, 4)
    scaled = (maps - maps.min()) / (maps.max() - maps.min())
    pixels = torch.arange(32)
    for form in range(12):
        inside = 0.0
        for t, (x1, y1, x2, y2) in enumerate(boxes[0, 0, form, 0].tolist()):
            columns = (torch.clamp(pixels + 1, max=x2) - torch.clamp(pixels, min=x1)).clamp_min(0)
            rows = (torch.clamp(pixels + 1, max=y2) - torch.clamp(pixels, min=y1)).clamp_min(0)
            inside += float(rows @ scaled[0, 0, t] @ columns)
        small = form >= 9  # half of the area: after all others
        volume = 32 * 32 * 4 * (0.05 if small else 0.1)
        assert float(held[0, 0, form, 0]) == pytest.approx(inside / volume - small, abs=2e-3)


def test_a_map_that_is_negative_everywhere_has_a_tube_of_the_area():
    question, _ = ask(1, negatives=1)
    maps = torch.full((1, 4, 16, 16), -5.0)
    maps[:, :, :4, :4] = -4.0  # in a corner
    boxes = MapMethod(Adder(), spot(maps))(question, 1).boxes[0, 0]
    assert torch.allclose(shares(boxes), torch.tensor(AREA), atol=1e-3)
    assert (boxes[0, :, :2] < 0.01).all()


def test_the_negative_decides_where_to_look():
    question, _ = ask(1)
    asked = replace(question, positive=torch.tensor([1]), negative=torch.tensor([[3, 0]]))
    regions = MapMethod(Adder(), MAKERS["grad-cam"])(asked, 1)
    assert ((regions.boxes[0, :, 0, :, 0] - RIGHT).abs() < 3).all(), "the green square, whoever is asked about"
    assert (regions.attribute_ids == -1).all(), "without a table there are no words"


def test_words_that_separate_come_first():
    question, _ = ask(1)
    asked = replace(question, positive=torch.tensor([0]), negative=torch.tensor([[1, 2, 3]]))
    for kind in (MapMethod, VerifiedMap):
        regions = kind(Adder(), MAKERS["grad-cam"], Squares.table)(asked, 2)
        assert regions.attribute_ids[0, :2].tolist() == [[0, 1], [1, 0]]


def test_k_tubes_keep_apart():
    question, _ = ask(1)
    for kind in (MapMethod, VerifiedMap):
        regions = kind(Adder(), MAKERS["grad-cam"], Squares.table)(question, 3)
        assert regions.boxes.shape == (1, 2, 3, 4, 4)
        assert (regions.scores.diff(dim=-1) <= 0).all()
        assert not torch.equal(regions.boxes[0, 0, 0], regions.boxes[0, 0, 1])


def test_a_flat_map_still_has_an_answer():
    question, _ = ask(1, negatives=1)
    for kind in (MapMethod, VerifiedMap):
        regions = kind(Adder(), spot(torch.zeros(1, 2, 3, 3)))(question, 1)
        assert regions.scores.isfinite().all()
        assert shares(regions.boxes) > 0


@pytest.mark.parametrize("frames", [1, 3, 6])
def test_odd_clips(frames):
    """Few frames, not square, more negatives than clips."""
    clips = torch.rand(1, 3, frames, 20, 44, generator=torch.Generator().manual_seed(0))
    question = Question(clips, Features(torch.zeros(1, 4), ()), torch.tensor([0]), torch.tensor([[1, 2, 3]]))
    boxes = MapMethod(Adder(), spot(torch.rand(3, 2, 4, 9)))(question, 2).boxes
    assert boxes.shape == (1, 3, 2, frames, 4)
    area = box_areas(boxes).sum(-1) / (frames * 20 * 44)
    assert ((area > AREA / 2) & (area <= AREA)).all()


def test_two_methods_share_a_map():
    question, _ = ask(2)
    model = Adder()
    one, verified = make_methods(["occlusion", "occlusion-verified"], model, Squares(), tubes=3)
    one(question, 1)
    before = model.seen
    regions = verified(question, 1)
    assert model.seen - before <= 2 * 2 * 3 * 2, "only tubes were masked"
    assert (regions.masked_clips == 147 + 6).all(), "the cost is that of the method alone"
    one(replace(question), 1)
    assert model.seen - before > 147, "another question has another map"


def test_all_peers_by_one_name():
    names = [method.name for method in make_methods(["centre", "all-peers", "rise"], Adder(), Squares(), tubes=5)]
    assert names[0] == "centre"
    assert sorted(names[1:]) == sorted([*MAKERS, *(f"{name}-verified" for name in MAKERS)])
    with pytest.raises(ArgumentError, match=r"unknown method 'all-pers'\. Did you mean 'all-peers'"):
        make_methods(["all-pers"], Adder(), Squares())
    with pytest.raises(ArgumentError, match="tubes"):
        make_methods(["rise-verified"], Adder(), Squares(), tubes=0)
