import pytest
import torch

from toy_squares import WORDS, Adder, Knowing, Squares, ask
from whytube.evaluation.methods import (
    MAKERS,
    Called,
    Centre,
    MapMethod,
    RandomAttribute,
    RandomTube,
    RandomVerified,
    Remembered,
    ShuffledAttributes,
)
from whytube.evaluation.metrics import box_areas, tube_frames
from whytube.search.masked import masked_logits
from whytube.search.score import value
from whytube.search.verify import SELECTING_FILLS, Regions


class Short:
    """A tube of growing boxes in frames 1 and 2; the second answer does not exist."""

    name = "short"

    def __call__(self, question, k):
        shape = (*question.negative.shape, k)
        boxes = torch.zeros(*shape, question.clips.shape[2], 4)
        boxes[:, :, 0, 1] = torch.tensor([-2.0, 0, 4, 3])
        boxes[:, :, 0, 2] = torch.tensor([0.0, 0, 6, 5])
        words = torch.full(shape, -1)
        words[..., 0] = 2
        return Regions(boxes, words, torch.where(words >= 0, 1.0, -torch.inf))


def test_random_tube_stays_in_the_frame_with_a_present_word():
    question, _ = ask(3)
    regions = RandomTube(Squares.table)(question, 4)
    assert regions.boxes.shape == (3, 2, 4, 4, 4)
    assert (regions.boxes >= 0).all()
    assert (regions.boxes <= 32).all()
    assert box_areas(regions.boxes).flatten().tolist() == pytest.approx([(32 * 32 / 112) ** 2] * 96, rel=1e-4)
    assert len(regions.boxes.flatten(0, 2).unique(dim=0)) == 24, "every answer has a tube of its own"
    rows = Squares.table[question.positive][:, None].expand(3, 2, 4)
    assert rows.gather(2, regions.attribute_ids).all()
    assert regions.attribute_ids[0, 0].unique().numel() == 2, "two words are present, and both are said"


def test_random_tube_matches_areas_frame_by_frame():
    question, _ = ask(2)
    regions = RandomTube(Squares.table, like=Short())(question, 2)
    wanted = torch.tensor([0.0, 12, 30, 0])
    assert torch.allclose(box_areas(regions.boxes[:, :, 0]), wanted.expand(2, 2, 4), atol=1e-3)
    assert (tube_frames(regions.boxes[:, :, 1]) == 0).all()
    assert (regions.attribute_ids[:, :, 1] == -1).all()
    assert regions.scores[:, :, 1].isneginf().all()


def test_a_control_is_the_same_in_any_batch():
    few, many = ask(1)[0], ask(3)[0]
    method = RandomTube(Squares.table, seed=2)
    assert torch.equal(method(few, 1).boxes, method(many, 1).boxes[:1])
    assert not torch.equal(RandomTube(Squares.table, seed=3)(few, 1).boxes, method(few, 1).boxes)


def test_a_method_under_another_name_answers_the_same():
    question, _ = ask(2)
    called, own = Called(Short(), "permuted"), Short()(question, 2)
    regions = called(question, 2)
    assert called.name == "permuted"
    assert torch.equal(regions.boxes, own.boxes)
    assert torch.equal(regions.attribute_ids, own.attribute_ids)


def test_random_attributes_leave_the_tube():
    question, _ = ask(3)
    regions = RandomAttribute(Short(), Squares.table, present=True)(question, 2)
    assert torch.equal(regions.boxes, Short()(question, 2).boxes)
    assert Squares.table[question.positive][:, None].expand(3, 2, 4).gather(2, regions.attribute_ids[..., :1]).all()
    assert (regions.attribute_ids[..., 1] == -1).all(), "what does not exist has no word"
    said = RandomAttribute(Centre(WORDS), Squares.table)(question, 4).attribute_ids
    assert said.sort(-1).values.tolist() == [[[0, 1, 2, 3]] * 2] * 3


def test_shuffled_words_are_all_wrong():
    question, _ = ask(3)
    method = ShuffledAttributes(Knowing(), len(WORDS), seed=1)
    true, said = Knowing()(question, 2), method(question, 2)
    assert torch.equal(true.boxes, said.boxes)
    assert ((true.attribute_ids == said.attribute_ids) == (true.attribute_ids == -1)).all()
    assert (said.attribute_ids[true.attribute_ids >= 0] >= 0).all()


@pytest.mark.parametrize("count", [2, 3, 22])
def test_exchange_moves_every_word(count):
    for seed in range(5):
        other = ShuffledAttributes(Short(), count, seed=seed).exchange()
        assert sorted(other.tolist()) == list(range(count))
        assert (other != torch.arange(count)).all()


def test_the_best_of_many_random_tubes_is_the_one_that_raises_b_most():
    question, _ = ask(3)
    model = Adder().eval()
    regions = RandomVerified(model, Squares.table, tubes=6)(question, 2)
    assert regions.boxes.shape == (3, 2, 2, 4, 4)
    assert (regions.scores[..., 0] >= regions.scores[..., 1]).all()
    tried = torch.ones(3, 2, 2, dtype=torch.bool)
    tries = [masked_logits(model, question, regions.boxes.double(), tried, fill=fill) for fill in SELECTING_FILLS]
    expected = sum(value(question, logits) for logits in tries) / len(tries)
    torch.testing.assert_close(regions.scores, expected, atol=1e-3, rtol=1e-3)
    of_a = Squares.table[question.positive][:, None].expand(3, 2, -1)
    assert of_a.gather(2, regions.attribute_ids).all()
    more = RandomVerified(model, Squares.table, tubes=60)(question, 1)
    assert (more.scores[..., 0] >= regions.scores[..., 0]).float().mean() > 0.6, "more tubes, a better best"


def test_other_words_about_the_same_tubes_cost_what_the_tubes_cost():
    question, _ = ask(2)
    search = RandomVerified(Adder().eval(), Squares.table, tubes=6)
    for control in (RandomAttribute(search, Squares.table), ShuffledAttributes(search, Squares.table.shape[1])):
        assert (control(question, 1).masked_clips == 12).all(), control.name


def test_random_tubes_of_their_own_sizes():
    question, _ = ask(3)
    model = Adder().eval()
    regions = RandomVerified(model, Squares.table, tubes=24)(question, 3)
    shares = box_areas(regions.boxes).sum(-1) / (4 * 32 * 32)
    assert ((shares > 0) & (shares <= 0.1 + 1e-6)).all()
    assert len(shares.unique()) > 6, "sizes differ"
    frames = tube_frames(regions.boxes)
    assert (frames > 0).all()
    assert len(frames.unique()) > 1, "spans differ"
    assert (regions.masked_clips == 48).all()
    first = RandomVerified(model, Squares.table, tubes=1)(question, 1)
    assert regions.scores[..., 0].mean() > first.scores.mean() + 0.5, "the best of 24 tubes raises B more than any one"
    again = RandomVerified(model, Squares.table, tubes=24)(ask(1)[0], 3)
    assert torch.equal(again.boxes, regions.boxes[:1])
    small = RandomVerified(model, Squares.table, tubes=4, area=0.02)(question, 1)
    assert (box_areas(small.boxes).sum(-1) <= 0.02 * 4 * 32 * 32 + 1e-3).all()


def test_fewer_regions_come_from_memory():
    question, _ = ask(2)
    model = Adder().eval()
    asked = MapMethod(model, MAKERS["grad-cam"])
    remembered = Remembered(asked)
    three = remembered(question, 3)
    model.seen = 0
    one = remembered(question, 1)
    assert model.seen == 0
    assert torch.equal(one.boxes, three.boxes[:, :, :1])
    assert torch.equal(one.boxes, asked(question, 1).boxes)
    assert one.attribute_ids.shape == one.scores.shape == (2, 2, 1)
    assert remembered(question, 3) is three
    assert remembered(question, 4).boxes.shape[2] == 4
