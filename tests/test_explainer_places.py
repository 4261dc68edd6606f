"""Places: their boxes, the targets of drawn boxes, and how well tubes fit."""

from dataclasses import replace

import torch

from toy_explainer import tiny_maps, tiny_scores
from whytube.explainer.fit import FitCurve
from whytube.explainer.objective import place_term
from whytube.explainer.places import find_places, place_boxes, place_iou, place_targets, steps_of_frames
from whytube.subpath import max_subpath
from whytube.tubes import region_iou


def test_places_are_the_boxes_of_all_forms_and_cells():
    forms = tiny_scores().forms
    t, h, w = forms.grid
    own = place_boxes(forms)
    assert own.shape == (forms.count * h * w, 4)
    place = (5 * h + 2) * w + 3  # form 5 on row 2, column 3
    cells = torch.tensor([[5, 2, 3]] * t)
    assert torch.equal(own[place], forms.boxes(cells)[0])


def test_overlaps_with_places_are_those_of_their_boxes():
    forms = tiny_scores().forms
    own = place_boxes(forms)
    boxes = torch.tensor([[3.0, 2, 20, 17], [0, 0, 0, 0], [-5, 8, 90, 60]])
    expected = region_iou(boxes[:, None, None], own[None, :, None])
    torch.testing.assert_close(place_iou(forms, boxes, own), expected)


def test_targets_lie_on_the_places_that_overlap_the_drawn_box():
    forms = tiny_scores().forms
    own = place_boxes(forms)
    targets = place_targets(forms, own[[7, 40]])
    torch.testing.assert_close(targets.sum(-1), torch.ones(2))
    for target, place in zip(targets, (7, 40), strict=True):
        assert torch.equal(own[target.argmax()], own[place])


def test_single_steps_score_as_whole_clips_do():
    scores, maps = tiny_scores(), tiny_maps(2)
    ids = torch.tensor([[3, 0], [1, -1]])
    whole = scores.attribute_volumes(maps) - scores.attribute_bias.view(1, -1, 1, 1, 1, 1)
    steps = scores.forms.grid[0]
    for step in range(steps):
        rows = [h[:, :, step * h.shape[2] // steps] for h in maps]
        found = scores.step_volumes(rows, ids)
        torch.testing.assert_close(found[0], whole[0, [3, 0], :, step])
        torch.testing.assert_close(found[1, 0], whole[1, 1, :, step])


def test_the_loss_is_least_where_scores_are_the_targets():
    scores, maps = tiny_scores(), tiny_maps(1)
    ids = torch.tensor([[2, -1]])
    rows = [h[:, :, 0] for h in maps]
    best = scores.step_volumes(rows, ids).flatten(2).softmax(-1)
    least = place_term(scores, rows, ids, best)
    other = place_term(scores, rows, ids, best.roll(5, -1))
    assert least < other
    torch.testing.assert_close(least, -(best[0, 0] * best[0, 0].log()).sum())


def test_fit_is_the_expected_iou_over_the_steps_of_a_tube():
    scores, maps = tiny_scores(), tiny_maps(2)
    ids = torch.tensor([[3, 0], [1, -1]])
    places = find_places(scores, maps, ids)
    torch.testing.assert_close(places.chances.sum(-1), torch.ones(2, 2, scores.forms.grid[0]).double())
    own, frames = place_boxes(scores.forms), scores.forms.frames
    tubes = own[torch.tensor([3, 60, 9])].double()[None, :, None].repeat(2, 1, frames, 1)
    tubes[:, 1, 1:] = 0  # at its first frame alone
    tubes[:, 2] = 0
    found = places.raw_fit(tubes)
    assert found.shape == (2, 2, 3)
    iou = region_iou(own[60][None, None], own[:, None])
    torch.testing.assert_close(found[0, 1, 1], (places.chances[0, 1, 0] * iou).sum())
    whole = (places.chances[1, 0] * region_iou(own[3][None, None], own[:, None])).sum(-1).mean()
    torch.testing.assert_close(found[1, 0, 0], whole)
    assert not found[..., 2].any(), "no tube, no fit"


def test_a_word_about_a_short_tube_is_trusted_less_where_a_curve_says_so():
    scores, maps = tiny_scores(), tiny_maps(1)
    curve = FitCurve((0.0, 1.0, 0.0), (-5.0, 0.0), (0.2, 0.9), (3,) * len(scores.attribute_bias))
    frames = scores.forms.frames
    tubes = place_boxes(scores.forms)[[40]].double()[None, None, :, None].repeat(1, 1, frames, frames, 1)
    for length in range(1, frames):  # the last one is whole
        tubes[:, :, length - 1, length:] = 0
    ids = torch.tensor([[3, 0]])
    told, less = (
        find_places(scores, maps, ids, how).fits(tubes)[0, 0] for how in (curve, replace(curve, lasting=0.75))
    )  # (frames, 2)
    part = (torch.arange(1, frames + 1) / frames / 0.75).clamp_max(1)
    assert part[0] < 1
    assert part[-1] == 1
    torch.testing.assert_close(less, told * part[:, None])


def test_the_best_tube_of_the_volumes_fits_best():
    scores, maps = tiny_scores(), tiny_maps(1)
    for weight in scores.attribute_weights:
        weight.data.mul_(30)
    places = find_places(scores, maps, torch.tensor([[0, 1, 2]]))
    path = max_subpath(places.volumes())
    tubes = scores.forms.boxes(path.cells)  # (1, 3, T, 4)
    fits = places.raw_fit(tubes.double())[0]
    assert (fits.argmax(1) == torch.arange(3)).all()


def test_frames_lie_in_steps():
    assert steps_of_frames(2, 5).tolist() == [0, 0, 0, 1, 1]
    assert steps_of_frames(4, 4).tolist() == [0, 1, 2, 3]


def test_the_loss_is_the_mean_over_drawn_boxes():
    scores, maps = tiny_scores(), tiny_maps(2)
    ids = torch.tensor([[2, -1], [0, 4]])
    rows = [h[:, :, 0] for h in maps]
    logits = scores.step_volumes(rows, ids).flatten(2).log_softmax(-1)
    targets = torch.rand(logits.shape, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
    single = [-(targets[r, s] * logits[r, s]).sum() for r, s in ((0, 0), (1, 0), (1, 1))]
    torch.testing.assert_close(place_term(scores, rows, ids, targets), sum(single) / 3)
    none = place_term(scores, rows, torch.full_like(ids, -1), targets)
    assert none == 0, "nothing drawn, nothing lost"


def test_targets_are_sharp():
    """A place whose IoU with the drawn box is lower by 0.1 has a chance that is lower by a factor of e to the 4."""
    forms = tiny_scores().forms
    box = torch.tensor([[3.0, 2, 20, 17]])
    iou = place_iou(forms, box, place_boxes(forms))
    chance = place_targets(forms, box).log()
    torch.testing.assert_close(chance - chance[:, :1], 40 * (iou - iou[:, :1]), rtol=1e-3, atol=1e-3)


def test_half_as_well_as_at_best_is_well_enough():
    places = find_places(tiny_scores(), tiny_maps(2), torch.tensor([[3, 0], [1, 2]]))
    forms, own = places.forms, places.own
    volumes = places.volumes()
    t, h, w = forms.grid
    assert volumes.shape == (2, 2, forms.count, t, h, w)
    iou = place_iou(forms, own, own)
    for b in range(2):
        for s in range(2):
            expected = torch.stack([(places.chances[b, s, step] * iou).sum(-1) for step in range(t)])  # (t, P)
            wanted = (expected - expected.max() / 2).view(t, forms.count, h, w).transpose(0, 1)
            torch.testing.assert_close(volumes[b, s], wanted)
    assert torch.equal(places.volumes(offset=0.0) > 0, torch.ones_like(volumes, dtype=torch.bool))


CURVE = FitCurve((0.0, 1.0, 1.0), (-4.0, 1.0), (0.0, 1.0), (4, 0, 2, 1, 1))


def test_fits_are_of_attributes_that_were_drawn():
    """Attribute 1 was never drawn, and clip 1 has one attribute less."""
    places = find_places(tiny_scores(), tiny_maps(2), torch.tensor([[3, 0, 1], [2, 4, -1]]), CURVE)
    assert places.known.tolist() == [[True, True, False], [True, True, False]]
    tubes = (
        places.own[torch.tensor([3, 60, 9, 20])].double().view(1, 2, 2, 1, 4).repeat(2, 1, 1, places.forms.frames, 1)
    )
    fits, raw = places.fits(tubes), places.raw_fit(tubes.flatten(1, 2)).transpose(1, 2).view(2, 2, 2, 3)
    assert torch.equal(fits.isnan(), ~places.known[:, None, None].expand(fits.shape))
    rival = raw[..., [1, 0]]
    torch.testing.assert_close(fits[..., :2], CURVE(raw[..., :2].contiguous(), rival.contiguous()))
    torch.testing.assert_close(places.fits_or_raw(tubes), torch.where(fits.isnan(), raw, fits))
    asked = torch.tensor([[[0, 3], [1, -1]], [[4, 4], [0, 2]]])
    found = places.fit_of(tubes, asked)
    expected = (
        [[fits[0, 0, 0, 1], fits[0, 0, 1, 0]], [torch.nan] * 2],
        [[fits[1, 0, 0, 1], fits[1, 0, 1, 1]], [torch.nan, fits[1, 1, 1, 0]]],
    )
    torch.testing.assert_close(found, torch.tensor(expected).double(), equal_nan=True)


def test_every_attribute_has_its_own_level():
    curve = replace(CURVE, levels=(0.5, 0.0, -0.5, 1.0, 0.0))
    places = find_places(tiny_scores(), tiny_maps(2), torch.tensor([[3, 0], [2, 4]]), curve)
    tubes = places.own[torch.tensor([3, 60])].double().view(1, 2, 1, 1, 4).repeat(2, 1, 1, places.forms.frames, 1)
    raw = places.raw_fit(tubes.flatten(1, 2)).transpose(1, 2).view(2, 2, 1, 2)
    level = torch.tensor([[1.0, 0.5], [-0.5, 0.0]]).double()[:, None, None]
    wanted = CURVE(raw.contiguous(), raw[..., [1, 0]].contiguous(), level=level)
    torch.testing.assert_close(places.fits(tubes), wanted)
    assert (wanted != CURVE(raw.contiguous(), raw[..., [1, 0]].contiguous()))[:, :, :, 0].all()


def test_without_a_curve_nothing_has_a_fit():
    places = find_places(tiny_scores(), tiny_maps(1), torch.tensor([[3, 0]]))
    tubes = places.own[:4].double().view(1, 2, 2, 1, 4).repeat(1, 1, 1, places.forms.frames, 1)
    assert not places.known.any()
    assert places.fits(tubes).isnan().all()
    assert places.fits(tubes).shape == (1, 2, 2, 2)
    raw = places.raw_fit(tubes.flatten(1, 2)).transpose(1, 2).view(1, 2, 2, 2)
    assert torch.equal(places.fits_or_raw(tubes), raw)


def test_many_tubes_fit_as_few_do(monkeypatch):
    places = find_places(tiny_scores(), tiny_maps(2), torch.tensor([[3, 0], [1, 2]]))
    tubes = places.own[:9].double()[None, :, None].repeat(2, 1, places.forms.frames, 1)
    whole = places.raw_fit(tubes)
    values = 2 * places.forms.frames * len(places.own) * 2
    monkeypatch.setattr("whytube.explainer.places._VALUES", dict.fromkeys(("cpu", "cuda"), values))
    torch.testing.assert_close(places.raw_fit(tubes), whole)
