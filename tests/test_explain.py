"""explain() on real files: what is asked, what comes back, and in whose pixels."""

import hashlib
import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch

from toy_explainer import saved_model, tiny_classifier, tiny_explainer
from whytube import wrap
from whytube.errors import ArgumentError, ModelError, VideoError
from whytube.explaining import explain, explain_all, explain_rounds, what_if
from whytube.explanation import Explanation
from whytube.models import files, load_model
from whytube.search.verify import SELECTING_FILLS, Question, ask
from whytube.tubes import Tube, erase, tube_mask
from whytube.video import Clip, read_clip, write_png, write_video

CLASSES = ("jump", "walk", "swim")
FRAMES, SIZE = 4, (16, 24)
HEIGHT, WIDTH, COUNT, FPS = 40, 64, 11, 5.0
FILLS = ("mean", "blur", "freeze")


def frames(count=COUNT, height=HEIGHT, width=WIDTH):
    """Draw a bright patch that walks over a dark ramp."""
    clip = torch.linspace(0, 0.4, width).expand(3, count, height, width).clone()
    for t in range(count):
        clip[t % 3, t, 10:26, 2 + 4 * t : 18 + 4 * t] = 0.9
    return clip


def build(objective="ours", seed=0):
    classifier = tiny_classifier(CLASSES, frames=FRAMES, size=SIZE, seed=seed)
    return tiny_explainer(objective, classifier=classifier)


@pytest.fixture
def explainer():
    return build()


@pytest.fixture
def video(tmp_path):
    return write_video(tmp_path / "walk.mp4", frames(), FPS)


@pytest.mark.parametrize("objective", ["ours", "paper"])
def test_boxes_come_back_in_the_videos_own_pixels_and_times(video, objective):
    explainer = build(objective)
    explanation = explain(video, explainer, k=3)
    clip = read_clip(video, frames=FRAMES, size=SIZE)
    question = ask(explainer.classifier, clip.frames[None])
    regions = explainer(question, 3)
    assert explanation.source == str(video)
    assert explanation.size == (HEIGHT, WIDTH)
    assert explanation.frames == tuple(clip.indices)
    assert explanation.times == pytest.approx([index / FPS for index in clip.indices])
    assert explanation.positive == CLASSES[question.positive[0]]
    assert explanation.negative == CLASSES[question.negative[0, 0]]
    assert sum(explanation.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert len(explanation.reasons) == int(regions.scores.isfinite().sum()) > 0
    scale = np.array([WIDTH / SIZE[1], HEIGHT / SIZE[0]] * 2)
    for r, reason in enumerate(explanation.reasons):
        boxes = regions.boxes[0, 0, r].numpy()
        there = boxes[:, 2] > 0
        word = int(regions.attribute_ids[0, 0, r])
        assert reason.attribute == (explainer.attribute_names[word] if word >= 0 else "")
        assert reason.score == pytest.approx(float(regions.scores[0, 0, r]), rel=1e-4, abs=1e-4)
        assert reason.tube.frames.tolist() == clip.indices[there].tolist()
        np.testing.assert_allclose(reason.tube.boxes, boxes[there] * scale)
        np.testing.assert_allclose(reason.tube.times, clip.indices[there] / FPS)
        assert (reason.tube.boxes <= [WIDTH, HEIGHT, WIDTH, HEIGHT]).all()


def test_evidence_is_what_the_classifier_says_once_the_tube_is_masked(video, explainer):
    explanation = explain(video, explainer, k=2)
    clip = read_clip(video, frames=FRAMES, size=SIZE)
    a, b = CLASSES.index(explanation.positive), CLASSES.index(explanation.negative)
    for reason in explanation.reasons:
        assert [e.fill for e in reason.evidence] == list(FILLS)
        mask = tube_mask([reason.tube], clip.indices, (HEIGHT, WIDTH), resolution=SIZE)
        for evidence in reason.evidence:
            with torch.no_grad():
                after = explainer.classifier(erase(clip.frames[None], mask, fill=evidence.fill))[0].softmax(0)
            assert evidence.positive_before == pytest.approx(explanation.probabilities[explanation.positive], abs=1e-5)
            assert evidence.negative_before == pytest.approx(explanation.probabilities[explanation.negative], abs=1e-5)
            assert (evidence.positive_after, evidence.negative_after) == pytest.approx(
                (float(after[a]), float(after[b])), abs=1e-5
            )


def test_the_ranking_has_not_seen_the_fills_of_the_evidence():
    default = inspect.signature(explain).parameters["fills"].default
    assert default == FILLS
    assert not set(SELECTING_FILLS) & set(default)


def test_why_and_why_not(video, explainer):
    ranked = sorted(CLASSES, key=explain(video, explainer).probabilities.get, reverse=True)

    def asked(**words):
        explanation = explain(video, explainer, **words)
        return explanation.positive, explanation.negative

    assert asked() == (ranked[0], ranked[1])
    assert asked(why_not=ranked[2]) == (ranked[0], ranked[2])
    assert asked(why=ranked[2]) == (ranked[2], ranked[0])
    assert asked(why=ranked[0]) == (ranked[0], ranked[1])
    assert asked(why=ranked[1], why_not=ranked[0]) == (ranked[1], ranked[0])
    with pytest.raises(
        ArgumentError, match=r"`why_not` is .*, the predicted class: ask about another, or name a class A"
    ):
        explain(video, explainer, why_not=ranked[0])
    with pytest.raises(ArgumentError, match=f"`why_not` must be another class than '{ranked[1]}'"):
        explain(video, explainer, why=ranked[1], why_not=ranked[1])


@pytest.mark.parametrize("word", ["why", "why_not"])
def test_unknown_classes(video, explainer, word):
    with pytest.raises(ArgumentError, match=r"unknown class 'jmup'\. Did you mean 'jump'\?"):
        explain(video, explainer, **{word: "jmup"})


def test_a_clip_is_explained_as_the_file_is(video, explainer):
    clip = read_clip(video, frames=FRAMES, size=SIZE)
    one, other = (explain(x, explainer).to_dict() for x in (video, clip))
    assert one.pop("timings").keys() == other.pop("timings").keys()
    assert (one.pop("fps"), one.pop("duration")) == pytest.approx((FPS, COUNT / FPS))
    assert (other.pop("fps"), other.pop("duration")) == pytest.approx((FPS, COUNT / FPS)), "a clip knows its file's"
    assert one.pop("video_hash") == hashlib.sha256(video.read_bytes()).hexdigest()
    assert other.pop("video_hash") != hashlib.sha256(video.read_bytes()).hexdigest(), "of the pixels that were given"
    assert one == other


def test_an_explanation_names_its_video_and_its_model(video, explainer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    explanation = explain(video.name, explainer)
    assert explanation.source == str(video), "absolute, though the path was relative"
    assert explanation.model == "c3d-resnet"
    assert explanation.model_hash == explain(video, explainer).model_hash
    assert explain(read_clip(video.name, frames=FRAMES, size=SIZE), explainer).source == str(video)
    with torch.no_grad():
        next(explainer.classifier.parameters()).mul_(1.0001)
    assert explain(video, explainer).model_hash != explanation.model_hash, "the weights that ran, whatever the name"
    loaded = Explanation.load(explanation.save(tmp_path / "why.json"))
    assert (loaded.model, loaded.model_hash) == (explanation.model, explanation.model_hash)
    assert loaded.video_hash == hashlib.sha256(video.read_bytes()).hexdigest()


def test_a_folder_of_frames_is_known_by_its_frames(explainer, tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    for index, picture in enumerate(frames(4).permute(1, 2, 3, 0).mul(255).byte().numpy()):
        write_png(folder / f"{index}.png", picture)
    first = explain(folder, explainer)
    (folder / "notes.txt").write_text("no frame")
    assert explain(folder, explainer).video_hash == first.video_hash
    write_png(folder / "2.png", np.zeros((HEIGHT, WIDTH, 3), np.uint8))
    assert explain(folder, explainer).video_hash not in ("", first.video_hash)


def test_a_video_of_one_frame(tmp_path, explainer):
    path = write_video(tmp_path / "one.mp4", frames(1), FPS)
    explanation = explain(path, explainer)
    assert explanation.frames == (0,) * FRAMES
    for reason in explanation.reasons:
        assert reason.tube.frames.tolist() == [0]
        assert reason.tube.times.tolist() == [0]
    assert explanation.one_frame
    assert explanation.sentence.endswith(" (one frame alone, without any motion)")
    assert not explain(write_video(tmp_path / "two.mp4", frames(2), FPS), explainer).one_frame


def test_videos_that_cannot_be_used(tmp_path, video, explainer):
    with pytest.raises(VideoError, match=r"none\.mp4"):
        explain(tmp_path / "none.mp4", explainer)
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(video.read_bytes()[:600])
    with pytest.raises(VideoError, match=r"cut\.mp4"):
        explain(cut, explainer)
    with pytest.raises(ArgumentError, match=r"`clips` must be of shape \(B, 3, 4, 16, 24\), got \(1, 3, 1, 16, 24\)"):
        explain(Clip(torch.rand(3, 1, *SIZE), [0], [0.0], (HEIGHT, WIDTH), "made"), explainer)


def test_k_and_fills(video):
    explainer = build("paper")
    full = explain(video, explainer, k=4)
    assert [r.attribute for r in explain(video, explainer, k=1).reasons] == [full.reasons[0].attribute]
    assert len(full.reasons) == len({r.attribute for r in full.reasons}) == 4
    assert len(explain(video, explainer, k=9).reasons) == 4
    black = explain(video, explainer, k=1, fills=["zero"])
    assert [e.fill for e in black.reasons[0].evidence] == ["zero"]
    unchecked = explain(video, explainer, k=1, fills=[])
    assert unchecked.reasons[0].moved is None
    assert unchecked.sentence.endswith("(not checked)")
    with pytest.raises(
        ArgumentError, match=r"`fills` must be one of 'mean', .*'zero', 'still', 'shift', 'noise', got 'red'"
    ):
        explain(video, explainer, fills=["mean", "red"])
    with pytest.raises(ArgumentError, match="`k` must be an integer of at least 1, got 0"):
        explain(video, explainer, k=0)


def test_what_stands_beside_the_reasons(video, explainer):
    explanation = explain(video, explainer, k=1, sampling="center")
    assert list(explanation.timings) == ["load model", "read video", "classify", "search", "verify", "hash"]
    assert all(seconds >= 0 for seconds in explanation.timings.values())
    assert explanation.settings == {
        "objective": "ours",
        "score": "search score",
        "effort": 16,
        "area": 0.1,
        "k": 1,
        "fills": list(FILLS),
        "sampling": "center",
        "tried with": "still, shift",
    }
    assert explanation.versions["torch"] == torch.__version__
    assert explanation.frames == (3, 4, 5, 6)
    claim = f"classified as {explanation.positive}, not {explanation.negative}"
    assert explanation.sentence.startswith(claim)
    told = [reason.attribute for reason in explanation.reasons if reason.moved]
    assert explanation.sentence.endswith(f'because of "{told[0]}"' if told else f"{claim}; no region explains this")


def test_a_class_without_words_is_explained_by_regions(video):
    classifier = tiny_classifier(CLASSES, frames=FRAMES, size=SIZE)
    explanation = explain(video, tiny_explainer(classifier=classifier, table=torch.zeros(3, 2, dtype=torch.bool)))
    assert explanation.reasons
    assert {reason.attribute for reason in explanation.reasons} == {""}


def test_json_round_trip(video, explainer, tmp_path):
    explanation = explain(video, explainer)
    loaded = Explanation.load(explanation.save(tmp_path / "e.json"))
    assert loaded.to_dict() == explanation.to_dict()
    assert loaded.sentence == explanation.sentence
    again = explain(video, explainer).to_dict()
    assert again | {"timings": None} == explanation.to_dict() | {"timings": None}


def test_all_negatives_at_once_are_each_alone(video, explainer):
    every = explain_all(video, explainer, k=1)
    assert len(every) == len(explainer.classes) - 1
    chances = [found.probabilities[found.negative] for found in every]
    assert chances == sorted(chances, reverse=True)
    for found in every:
        alone = explain(video, explainer, why_not=found.negative, k=1, effort="quick")
        assert found.sentence == alone.sentence
        for mine, theirs in zip(found.reasons, alone.reasons, strict=True):
            assert mine.attribute == theirs.attribute
            np.testing.assert_allclose(mine.tube.boxes, theirs.tube.boxes)
            assert mine.evidence[0].positive_after == pytest.approx(theirs.evidence[0].positive_after, abs=1e-4)


def test_nothing_is_kept_of_a_video(video, explainer):
    before = {name: id(value) for name, value in vars(explainer).items()}
    explainer.classifier.train()
    first = explain(video, explainer)
    assert explainer.classifier.training
    assert {name: id(value) for name, value in vars(explainer).items()} == before
    explainer.classifier.eval()
    assert explain(video, explainer).to_dict() | {"timings": None} == first.to_dict() | {"timings": None}


@pytest.fixture
def folder(explainer, tmp_path):
    return saved_model(tmp_path / "models" / "tiny", explainer)


def test_models_by_folder_and_by_name(video, explainer, folder, monkeypatch):
    loaded = replace(explainer, classifier=explainer.classifier.for_inference())
    expected = explain(video, loaded).to_dict() | {"timings": None, "model": "tiny"}
    assert explain(video, folder).to_dict() | {"timings": None} == expected
    monkeypatch.setattr(files, "SHIPPED", folder.parent)
    assert explain(video, "tiny").to_dict() | {"timings": None} == expected
    assert load_model("tiny").device == torch.device("cpu")
    with pytest.raises(ArgumentError, match=r"unknown model 'tinny'\. Did you mean 'tiny'\?"):
        explain(video, "tinny")
    with pytest.raises(ModelError, match="there is no such file"):
        load_model(folder.parent / "other")
    (folder / "explainer.safetensors").unlink()
    assert explain(video, "tiny").settings["objective"] == "ours-regions", "a classifier alone: by regions"


def test_a_repeated_frame_keeps_its_first_box(explainer):
    clip = Clip(frames(FRAMES, *SIZE), [0, 0, 3, 3], [0.0, 0.0, 0.6, 0.6], (2 * SIZE[0], 3 * SIZE[1]), "made")
    question = ask(explainer.classifier, clip.frames[None])
    reason = explain(clip, explainer, k=1).reasons[0]
    boxes = explainer(Question(question.clips, question.features, question.positive, question.negative), 1).boxes[
        0, 0, 0
    ]
    assert set(reason.tube.frames.tolist()) <= {0, 3}
    for frame, box in zip(reason.tube.frames, reason.tube.boxes, strict=True):
        shown = [b for b, index in zip(boxes.tolist(), clip.indices, strict=True) if index == frame and b[2] > 0]
        np.testing.assert_allclose(box, np.array(shown[0]) * [3, 2, 3, 2])


def test_a_class_that_was_not_said_is_not_called_the_answer(video, explainer):
    said = explain(video, explainer).positive
    other = next(name for name in explainer.classes if name != said)
    sentence = explain(video, explainer, why=other, why_not=said).sentence
    assert sentence.startswith(f"classified as {said}; asked why {other}, not {said}")


def test_networks_whose_state_is_not_all_tensors_are_named_by_their_weights(video):
    class Own(torch.nn.Module):
        def __init__(self, seed):
            super().__init__()
            torch.manual_seed(seed)
            self.convolution, self.head = torch.nn.Conv3d(3, 4, 3, padding=1), torch.nn.Linear(4, 3)

        def forward(self, clips):
            return self.head(self.convolution(clips).relu().mean((2, 3, 4)))

        def get_extra_state(self):
            return {"version": 1}

    def named(own):
        return explain(video, wrap(own, classes=["a", "b", "c"], frames=4, size=32)).model_hash

    assert named(Own(0)) == named(Own(0)) != named(Own(1))


def test_effort_and_area(video, explainer):
    quick, small = explain(video, explainer, effort="quick"), explain(video, explainer, effort=3, area=0.02)
    assert (quick.settings["effort"], quick.settings["area"]) == (6, 0.1)
    assert (small.settings["effort"], small.settings["area"]) == (3, 0.02)
    for explanation, area in ((quick, 0.1), (small, 0.02)):
        for reason in explanation.reasons:
            sides = reason.tube.boxes[:, 2:] - reason.tube.boxes[:, :2]
            assert sides.prod(1).sum() <= area * FRAMES * HEIGHT * WIDTH + 1e-3
    assert explain_all(video, explainer)[0].settings["effort"] == 6
    with pytest.raises(ArgumentError, match=r"unknown effort 'quik'\. Did you mean 'quick'\?"):
        explain(video, explainer, effort="quik")
    with pytest.raises(ArgumentError, match="`effort` must be an integer of at least 1, got 0"):
        explain(video, explainer, effort=0)
    with pytest.raises(ArgumentError, match="`area` must be a fraction of the clip"):
        explain_all(video, explainer, area=0)


def test_objectives_that_try_nothing_have_no_effort(video):
    assert "effort" not in explain(video, build("paper"), effort="quick").settings


def untimed(explanation):
    """Everything but times; measured probabilities without their last digits, which depend on what ran beside them."""
    found = {name: value for name, value in explanation.to_dict().items() if name != "timings"}
    for reason in found["reasons"]:
        for row in reason["evidence"]:
            row |= {name: round(value, 4) for name, value in row.items() if name != "fill"}
    return found


@pytest.mark.parametrize("objective", ["ours", "paper"])
def test_rounds_end_with_the_answer(video, objective):
    explainer = build(objective)
    rounds = list(explain_rounds(video, explainer, effort=24))
    assert len(rounds) == (1 if objective == "paper" else 5)
    whole = explain(video, explainer, effort=24)
    assert untimed(rounds[-1]) == untimed(whole)
    for one in rounds:
        assert all(len(reason.evidence) == len(FILLS) for reason in one.reasons)
    scores = [one.reasons[0].score for one in rounds]
    assert scores == sorted(scores)


def test_a_tube_that_stays_is_checked_once(video, explainer, monkeypatch):
    from whytube import asking

    checked = []

    def counted(classifier, question, boxes, tried, *, fill, exact=True):
        checked.append((fill, int(tried.sum())))
        return original(classifier, question, boxes, tried, fill=fill, exact=exact)

    original = asking.masked_logits
    monkeypatch.setattr(asking, "masked_logits", counted)
    rounds = list(explain_rounds(video, explainer, k=1, effort=24, fills=("mean",)))
    tubes = {reason.tube.boxes.tobytes() + reason.tube.frames.tobytes() for one in rounds for reason in one.reasons}
    assert sum(count for _, count in checked) == len(tubes)


def test_what_if_measures_a_tube_of_ones_own(video, explainer):
    found = explain(video, explainer, why_not=None)
    reason = found.reasons[0]
    own = what_if(video, explainer, reason.tube, why=found.positive, why_not=found.negative)
    assert [r.attribute for r in own.reasons] == [""]
    for measured, expected in zip(own.reasons[0].evidence, reason.evidence, strict=True):
        assert measured.fill == expected.fill
        assert measured.positive_after == pytest.approx(expected.positive_after, abs=1e-5)
    assert own.reasons[0].score == own.reasons[0].fall
    assert np.abs(own.reasons[0].tube.boxes - reason.tube.boxes).max() < 1e-3
    assert own.settings["objective"] == "what if"


def test_what_if_joins_key_frames(video, explainer):
    tube = Tube(np.array([0, COUNT - 1]), np.array([[0, 0, 20, 20], [20, 10, 60, 40]], dtype=float))
    own = what_if(video, explainer, tube).reasons[0].tube
    assert own.frames.tolist() == read_clip(video, frames=FRAMES, size=SIZE).indices.tolist()
    share = own.frames / (COUNT - 1)
    assert own.boxes[:, 0] == pytest.approx(20 * share, abs=1e-3)
    assert own.boxes[:, 3] == pytest.approx(20 + 20 * share, abs=1e-3)


@pytest.mark.parametrize("frames", [[], [900]])
def test_what_if_wants_a_tube_that_was_seen(video, explainer, frames):
    tube = Tube(np.array(frames, dtype=int), np.tile([1.0, 1, 9, 9], (len(frames), 1)))
    with pytest.raises(ArgumentError, match="`tube` must be boxes on some of the 4 frames"):
        what_if(video, explainer, tube)
