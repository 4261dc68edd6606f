"""Boxes of training clips: which are taken, and that attributes learn where they are."""

from dataclasses import replace

import pytest
import torch

from interruption import InterruptionError, interrupt_at, same
from toy_squares import WORDS, Adder, Squares
from whytube.data.source import Kept, PermutedTable, boxes_of
from whytube.data.world import World
from whytube.errors import ArgumentError, ModelError
from whytube.explainer.places import find_places
from whytube.models import load_explainer
from whytube.models.stored import load_tensors, save_tensors
from whytube.search.verify import Regions, ask
from whytube.training import Recipe, places
from whytube.training.explainer import fit_explainer
from whytube.training.places import drawn_clips, drawn_fingerprint, drawn_steps

QUICK = Recipe(clips=48, batch_size=12, optimizer="adamw", lr=0.02, place_steps=60, place_lr=0.3)


class Boxed(Squares):
    """Squares whose first clips have boxes for training."""

    def __init__(self, number=12, boxed=6):
        super().__init__(number)
        self.first = boxed

    def boxed(self, split):
        return list(range(self.first))


def test_all_boxes_of_a_folder_are_taken_and_few_of_a_world():
    every = drawn_clips(Boxed())
    assert [clip.index for clip in every] == list(range(6))
    assert every[0].drawn.tolist() == [[True] * 4, [True] * 4, [False] * 4, [False] * 4]
    assert drawn_clips(Boxed(), 0) == []
    assert drawn_clips(Squares(12)) == [], "a source that names no boxed clips has none"
    world = World(size=32)
    few = drawn_clips(world)
    counts = sum(clip.drawn.any(1).int() for clip in few)
    assert counts.min() >= 5
    assert len(few) < 5 * len(world.attribute_names), "a clip has boxes of several attributes"
    assert max(int(clip.drawn.sum(1).max()) for clip in few) == 3


def test_a_number_of_boxes_is_per_attribute():
    clips = drawn_clips(Boxed(), 1)
    assert [clip.index for clip in clips] == [0, 1]
    assert clips[1].drawn.any(1).tolist() == [False, True, True, False], "all boxes of a clip are drawn"
    assert clips[1].drawn[1].tolist() == [True, False, True, True], "on three of its frames"
    assert drawn_fingerprint(clips) != drawn_fingerprint(drawn_clips(Boxed(), 2))
    assert drawn_fingerprint([]) == ""


def test_wrapped_sources_keep_their_boxes():
    source = Boxed()
    kept = Kept(source, "train", 6, device="cpu", chunk=4)
    assert (
        boxes_of(kept.batch("train", [5]))[0]["blue square"] == source.batch("train", [5]).boxes[0]["blue square"]
    ).all()
    permuted = PermutedTable(source)
    assert [clip.index for clip in drawn_clips(permuted)] == list(range(6))
    assert boxes_of(permuted.batch("train", [1]))[0].keys() == {"green square", "blue square"}


def test_attributes_learn_where_they_were_drawn():
    source, classifier = Boxed(), Adder().eval()
    weak, _ = fit_explainer(classifier, source, replace(QUICK, boxes=0))
    strong, _ = fit_explainer(classifier, source, QUICK)
    shown = source.batch("test", range(6))
    maps = classifier.features(shown.clips).maps
    ids = torch.arange(3).expand(6, 3)
    own = torch.zeros(6, 3, 4, 4)
    for b, tracks in enumerate(shown.boxes):
        for word, track in tracks.items():
            own[b, WORDS.index(word)] = torch.from_numpy(track)
    present = own[:, :, 0, 2] > 0
    before, after = (
        find_places(explainer.scores, maps, ids).raw_fit(own).diagonal(dim1=1, dim2=2)[present].mean()
        for explainer in (weak, strong)
    )
    assert after > 0.4 > before
    unboxed = WORDS.index("striped")
    for first, second in zip(weak.scores.attribute_weights, strong.scores.attribute_weights, strict=True):
        assert torch.equal(first[unboxed], second[unboxed]), "an attribute without a box stays as it was"


def test_only_steps_with_a_box_are_kept():
    source, classifier = Boxed(boxed=2), Adder().eval()
    explainer, _ = fit_explainer(classifier, source, QUICK)
    clips = drawn_clips(source)
    drawn = drawn_steps(classifier, source, explainer.scores, clips, torch.device("cpu"))
    assert len(drawn) == 8
    assert drawn.clip.tolist() == [0] * 4 + [1] * 4
    assert drawn.attribute_ids[4].tolist() == [1, 2]
    assert drawn.boxes[4, 0].tolist() == [4, 12, 12, 20]


def test_copies_are_mirrored_and_cropped_with_their_boxes():
    source, classifier = Boxed(boxed=2), Adder().eval()
    explainer, _ = fit_explainer(classifier, source, QUICK)
    given = (classifier, source, explainer.scores, drawn_clips(source), torch.device("cpu"))
    plain, more = drawn_steps(*given), drawn_steps(*given, copies=3, seed=1)
    own, mirrored = more.part(more.copy == 0), more.part(more.copy == 1)
    assert torch.equal(own.boxes, plain.boxes)
    assert all(torch.equal(a, b) for a, b in zip(own.rows, plain.rows, strict=True))
    assert torch.equal(mirrored.attribute_ids, plain.attribute_ids)
    width = classifier.size[1]
    assert torch.equal(mirrored.boxes[..., 0], torch.where(plain.attribute_ids >= 0, width - plain.boxes[..., 2], 0))
    for seen, flipped in zip(mirrored.rows, plain.rows, strict=True):
        torch.testing.assert_close(seen, flipped.flip(-1), rtol=0, atol=1e-4)
    cropped = more.part(more.copy > 1)
    assert len(cropped) > 0
    sides = cropped.boxes[..., 2] - cropped.boxes[..., 0]
    assert (sides[cropped.attribute_ids >= 0] > 0).all()
    assert not torch.equal(cropped.boxes[:1], plain.boxes[:1])
    again = drawn_steps(*given, copies=3, seed=1)
    assert torch.equal(again.boxes, more.boxes)
    assert drawn_steps(*given, copies=3, seed=2).boxes.shape != more.boxes.shape or not torch.equal(
        drawn_steps(*given, copies=3, seed=2).boxes, more.boxes
    )
    assert more.clips_per_attribute == plain.clips_per_attribute, "a copy is no further clip"


def test_where_a_word_means_left_no_copy_is_mirrored(monkeypatch):
    source, classifier = Boxed(boxed=2), Adder().eval()
    explainer, _ = fit_explainer(classifier, source, QUICK)
    monkeypatch.setattr(source, "attribute_names", ("left arm", *source.attribute_names[1:]), raising=False)
    given = (classifier, source, explainer.scores, drawn_clips(Boxed(boxed=2)), torch.device("cpu"))
    more = drawn_steps(*given, copies=1)
    own, copied = more.part(more.copy == 0), more.part(more.copy == 1)
    size = [(part.boxes[..., 2] - part.boxes[..., 0]).amax() for part in (own, copied)]
    assert size[1] > size[0], "cropped, so larger"
    monkeypatch.setattr(places, "MOST", 3)
    assert (drawn_steps(*given, copies=1).copy == 0).all(), "two clips and two copies would be too many"


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path):
    def fit(folder, source=None, recipe=QUICK, **settings):
        return fit_explainer(Adder(), source or Boxed(), recipe, report_every=2, out_dir=folder, **settings)[0]

    whole = fit(tmp_path / "whole")
    with pytest.raises(InterruptionError):
        fit(tmp_path / "b", save_every=1, progress=interrupt_at(2))
    assert same(fit(tmp_path / "b", resume=True).scores, whole.scores)
    assert same(fit(tmp_path / "b", resume=True).scores, whole.scores), "a run that was done is finished again"
    with pytest.raises(ModelError, match="its boxes' fingerprint is"):
        fit(tmp_path / "b", Boxed(boxed=5), resume=True)
    with pytest.raises(ModelError, match="its place_steps is 60, expected 61"):
        fit(tmp_path / "b", recipe=replace(QUICK, place_steps=61), resume=True)


@pytest.mark.parametrize("change", [{"boxes": -1}, {"place_steps": 0}, {"place_lr": -1.0}, {"place_copies": -1}])
def test_recipes_refuse_what_cannot_be(change):
    with pytest.raises(ArgumentError, match=next(iter(change))):
        replace(QUICK, **change)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """Squares with boxes on twelve clips, which are enough for a fit."""
    folder = tmp_path_factory.mktemp("run")
    made, _ = fit_explainer(Adder(), Boxed(12, 12), QUICK, out_dir=folder)
    return made, folder


def test_a_fit_tells_the_own_square_from_the_other(calibrated):
    explainer, _ = calibrated
    assert explainer.fit.boxes == (8, 8, 8, 0)
    assert sum(row.count for row in explainer.fit.reliability) > 100
    shown = Boxed().batch("test", range(3))
    question = ask(explainer.classifier, shown.clips, negatives=2)
    places = explainer.places(question)
    for b in range(3):
        for word, track in shown.boxes[b].items():
            tube = torch.from_numpy(track).float().expand(3, 2, 1, -1, -1)
            fits = places.fits(tube)
            assert fits.shape == (3, 2, 1, places.attribute_ids.shape[1])
            own = places.attribute_ids[b] == WORDS.index(word)
            if own.any():
                assert fits[b, 0, 0, own].item() > 0.5 > fits[b, 0, 0, ~own & places.known[b]].max().item()


def test_a_word_that_is_likely_wrong_is_not_said(calibrated):
    explainer, _ = calibrated
    shown = Boxed().batch("test", range(3))
    question = ask(explainer.classifier, shown.clips, negatives=1)
    names = [WORDS.index(next(iter(tracks))) for tracks in shown.boxes]
    first = torch.stack([torch.from_numpy(next(iter(tracks.values()))) for tracks in shown.boxes]).float()
    second = torch.stack([torch.from_numpy(list(tracks.values())[1]) for tracks in shown.boxes]).float()
    ids = torch.tensor(names).view(3, 1, 1).expand(3, 1, 2)
    regions = Regions(torch.stack([first, second], 1)[:, None], ids, torch.zeros(3, 1, 2))
    places = explainer.places(question)
    said = explainer.spoken(places, regions)
    assert torch.equal(said.attribute_ids[..., 0], ids[..., 0])
    assert (said.fits[..., 0] > 0.5).all()
    assert (said.attribute_ids[..., 1] == -1).all(), "the tube is on the other square"
    assert said.fits[..., 1].isnan().all()
    unboxed = replace(regions, attribute_ids=torch.full_like(ids, WORDS.index("striped")))
    assert torch.equal(explainer.spoken(places, unboxed).attribute_ids, unboxed.attribute_ids)
    unknown = replace(explainer, fit=None).spoken(places, replace(regions, fits=said.fits))
    assert torch.equal(unknown.attribute_ids, ids), "where no fit is known, every word is said"
    assert unknown.fits is None


def test_answers_say_their_fits(calibrated):
    explainer, _ = calibrated
    shown = Boxed().batch("test", range(3))
    question = ask(explainer.classifier, shown.clips, negatives=2)
    found = explainer(question, 2)
    said = found.attribute_ids >= 0
    assert said.any()
    assert ((found.fits >= 0.5) == said).all()
    ids = torch.tensor([[0, 3, -1]] * 3)
    volumes = explainer.word_volumes(question, ids)
    plain = explainer.scores(question.features.maps)
    torch.testing.assert_close(volumes[:, 1], plain[:, 3])  # without boxes, the scores as they are
    assert volumes[:, 0].amax() <= 1 < plain[:, 0].amax()


def test_a_fit_is_kept_in_the_file(calibrated):
    explainer, folder = calibrated
    loaded = load_explainer(folder / "explainer.safetensors", explainer.classifier)
    assert loaded.fit == explainer.fit
    tensors, header = load_tensors(folder / "explainer.safetensors", kind="explainer")
    for change, message in (
        ({"fit": None}, ""),
        ({"fit": {**header["fit"], "boxes": [1], "levels": []}}, "number of boxes"),
    ):
        path = save_tensors(folder / "other.safetensors", tensors, header | change, kind="explainer")
        if message:
            with pytest.raises(ModelError, match=message):
                load_explainer(path, explainer.classifier)
        else:
            assert load_explainer(path, explainer.classifier).fit is None


def test_few_boxes_train_words_without_a_fit():
    made, _ = fit_explainer(Adder(), Boxed(12, 6), QUICK)
    assert made.fit is None
