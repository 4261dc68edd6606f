"""Teaching words by a few boxes: new words, known ones, and what is told of them."""

import copy
from dataclasses import replace

import pytest
import torch

from toy_squares import WORDS, Adder, Squares
from whytube.data.source import BoxedBatch
from whytube.errors import ArgumentError, DataError
from whytube.explainer.explainer import Explainer
from whytube.explainer.scores import build_scores
from whytube.models import load_explainer, save_explainer
from whytube.search.verify import ask
from whytube.training.teach import _judged, teach

QUICK = {"steps": 60, "lr": 0.3}


class Lessons:
    """The first `number` clips of Squares, of which somebody drew some words under names of their own."""

    def __init__(self, number, words, *, classes=Squares.classes):
        self.squares, self.number, self.words = Squares(), number, dict(words)
        self.classes, self.attribute_names = classes, tuple(self.words.values())
        self.columns = [WORDS.index(word) for word in self.words]
        rows = [Squares.classes.index(name) for name in classes if name in Squares.classes]
        self.table = Squares.table[rows][:, self.columns]

    def count(self, split):
        return self.number

    def boxed(self, split):
        return list(range(self.number))

    def batch(self, split, indices, device="cpu"):
        shown = self.squares.batch(split, indices, device)
        boxes = [{self.words[w]: track for w, track in tracks.items() if w in self.words} for tracks in shown.boxes]
        names = [Squares.classes[label] for label in shown.labels]
        labels = torch.tensor([self.classes.index(name) for name in names])
        return BoxedBatch(shown.clips, labels, shown.attributes[:, self.columns], boxes)


@pytest.fixture
def explainer():
    """Knows the first two words, by weights of chance."""
    classifier = Adder().eval()
    return Explainer(classifier, build_scores(classifier, 2, seed=1), WORDS[:2], Squares.table[:, :2], "ours")


def test_a_new_word_is_learnt_and_answers(explainer):
    before = {name: tensor.clone() for name, tensor in explainer.scores.state_dict().items()}
    taught = teach(explainer, Lessons(9, {"blue square": "cobalt"}), **QUICK)
    word = taught.words[0]
    assert (word.word, word.new, word.clips, word.kept) == ("cobalt", True, 6, False)
    assert word.before.boxes == word.after.boxes == 24
    assert word.after.pointing == 1.0
    assert word.before.pointing < 0.6
    assert word.after.iou > 0.3 > word.before.iou
    assert taught.placed == {"before": word.before, "after": word.after}
    assert taught.sentence.startswith('learnt "cobalt"; of 24 boxes held out, words point into 100 % (before: ')
    new = taught.explainer
    assert new.attribute_names == (*WORDS[:2], "cobalt")
    assert new.table[:, 2].tolist() == Squares.table[:, 2].tolist()
    for name, tensor in explainer.scores.state_dict().items():
        assert torch.equal(tensor, before[name]), "the explainer that was given stays as it is"
    for old, wide in zip(before["attribute_weights.0"], new.scores.attribute_weights[0], strict=False):
        assert torch.equal(old, wide), "words without a box keep their weights"
    clips = Squares().batch("test", [2]).clips  # blue at the left
    question = ask(new.classifier, clips)
    assert new.classes[int(question.positive)] == "blue"
    places = new.places(replace(question, negative=torch.tensor([[1]])))
    assert (places.attribute_ids == 2).any()


def test_a_known_word_keeps_what_was_better(explainer):
    good = teach(explainer, Lessons(12, {"red square": "red square"}), **QUICK)
    assert [(word.new, word.kept) for word in good.words] == [(False, False)]
    again = teach(good.explainer, Lessons(12, {"red square": "red square"}), steps=1, lr=30.0)
    assert again.words[0].after.iou < again.words[0].before.iou
    assert again.words[0].kept
    assert again.after == again.before, "what is told of all words is what the explainer now does"
    kept = again.explainer.scores.attribute_weights[0][0]
    assert torch.equal(kept, good.explainer.scores.attribute_weights[0][0])


def test_one_clip_is_learnt_but_not_judged(explainer):
    taught = teach(explainer, Lessons(2, {"blue square": "cobalt"}), **QUICK)  # the second clip alone has it
    assert taught.words[0].clips == 1
    assert taught.words[0].before is taught.words[0].after is None
    assert taught.explainer.scores.attribute_weights[0][2].abs().max() > 0
    assert taught.explainer.fit is None
    assert taught.sentence == 'learnt "cobalt"; boxes of two clips at least are needed to tell how well'


def test_fits_are_told_from_ten_clips_on_and_kept_later(explainer):
    first = teach(explainer, Lessons(15, dict(zip(WORDS[:3], WORDS[:3], strict=True))), **QUICK).explainer
    assert first.fit is not None
    assert first.fit.boxes == (10, 10, 10)
    more = teach(first, Lessons(9, {"red square": "crimson"}), **QUICK).explainer
    assert len(first.fit.levels) == 3
    assert all(first.fit.levels)
    assert more.fit == replace(first.fit, boxes=(10, 10, 10, 6), levels=(*first.fit.levels, 0.0))
    few = teach(first, Lessons(3, {"red square": "crimson"}), **QUICK).explainer
    assert few.fit.boxes == (10, 10, 10, 0), "two clips are too few to tell a fit"


def test_a_word_that_is_learnt_anew_has_no_level(explainer):
    """The old level said how hard the word was to find; one that keeps what it knew keeps its level, too."""
    lessons = Lessons(15, dict(zip(WORDS[:3], WORDS[:3], strict=True)))
    first = teach(explainer, lessons, **QUICK).explainer
    scores = copy.deepcopy(first.scores)
    with torch.no_grad():
        for weights in scores.attribute_weights:
            weights[0] = 0  # the first word knows nothing, so that it is learnt anew
    taught = teach(replace(first, scores=scores), lessons, **QUICK)
    kept = [word.kept for word in taught.words]
    assert not kept[0]
    levels = taught.explainer.fit.levels
    assert levels == tuple(old if keeps else 0.0 for old, keeps in zip(first.fit.levels, kept, strict=True))


def test_the_table_of_the_lessons_rules(explainer):
    lessons = Lessons(9, {"red square": "red square", "blue square": "cobalt"}, classes=("green", "red", "blue"))
    lessons.table = torch.tensor([[1, 1], [1, 0], [0, 1]], dtype=torch.bool)
    table = teach(explainer, lessons, **QUICK).explainer.table
    assert table[:, 0].tolist() == [True, True, False, False]
    assert table[:, 1].tolist() == Squares.table[:, 1].tolist(), "not in the lessons"
    assert table[:, 2].tolist() == [False, True, True, False]


def test_what_was_taught_can_be_saved(tmp_path, explainer):
    taught = teach(explainer, Lessons(15, dict(zip(WORDS[:3], WORDS[:3], strict=True))), **QUICK).explainer
    path = save_explainer(tmp_path / "explainer.safetensors", taught, provenance={})
    read = load_explainer(path, explainer.classifier)
    assert read.attribute_names == WORDS[:3]
    assert torch.equal(read.table, taught.table)
    assert read.fit == taught.fit
    for name, tensor in taught.scores.state_dict().items():
        assert torch.equal(tensor, read.scores.state_dict()[name])


def test_progress_and_stopping(explainer):
    told = []
    teach(explainer, Lessons(9, {"blue square": "cobalt"}), **QUICK, on_step=lambda *step: told.append(step))
    assert told == [(n, 6) for n in range(1, 7)]

    def stop(done, _):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        teach(explainer, Lessons(9, {"blue square": "cobalt"}), **QUICK, on_step=stop)


def test_the_same_lessons_teach_the_same(explainer):
    one, two = (teach(explainer, Lessons(6, {"blue square": "cobalt"}), **QUICK) for _ in range(2))
    assert one.words == two.words
    for name, tensor in one.explainer.scores.state_dict().items():
        assert torch.equal(tensor, two.explainer.scores.state_dict()[name])


def test_held_out_words_that_were_never_seen_are_not_judged(explainer):
    from whytube.training.places import drawn_clips, drawn_steps
    from whytube.training.teach import _Widened, _widened_scores

    wide = _Widened(explainer, Lessons(6, {"blue square": "cobalt", "red square": "red square"}))
    scores = _widened_scores(explainer, wide)
    drawn = drawn_steps(explainer.classifier, wide, scores, drawn_clips(wide), torch.device("cpu"))
    assert set(_judged(scores, scores, drawn, torch.tensor([2]))[:, 0].tolist()) == {2.0}


def test_wrong_lessons(explainer):
    lessons = Lessons(3, {"blue square": "cobalt"})
    lessons.classes = ("red", "green", "bleu", "plain")
    with pytest.raises(ArgumentError, match=r"unknown class 'bleu'. Did you mean 'blue'"):
        teach(explainer, lessons)
    with pytest.raises(DataError, match="there is no box to learn from"):
        teach(explainer, Lessons(0, {"blue square": "cobalt"}))
