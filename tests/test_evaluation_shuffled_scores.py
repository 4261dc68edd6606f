"""The null of the search: once scores are chance, a best tube is a random one."""

from dataclasses import dataclass

import torch

from toy_squares import FRAMES, Adder, Squares
from whytube.evaluation import evaluate, make_methods
from whytube.evaluation.methods import Remembered
from whytube.evaluation.methods.shuffled_scores import ShuffledScores
from whytube.search.verify import ask, best_regions


@dataclass(eq=False)
class Search:
    """Tries 16 cells of the frame; the fifth and the eighth hold the squares."""

    classifier: Adder
    name: str = "ours"

    def __call__(self, question, k):
        b, n = question.negative.shape
        corner = torch.cartesian_prod(torch.arange(4), torch.arange(4)).flip(1) * 8.0
        tubes = torch.cat([corner, corner + 8], 1)[None, None, :, None].expand(b, n, -1, FRAMES, 4)
        return best_regions(self.classifier, question, tubes, torch.ones(tubes.shape[:3], dtype=torch.bool), k)


def test_the_tube_that_wins_is_a_random_one():
    model = Adder().eval()
    search = Search(model)
    control = ShuffledScores(search, model)
    question = ask(model, Squares().batch("test", range(60)).clips, negatives=3)
    found, chance = search(question, 1), control(question, 1)
    assert len(torch.unique(found.boxes[:, 0, 0, 0], dim=0)) <= 4, "the search knows where the runner-up is raised"
    counts = torch.unique(chance.boxes[:, :, 0, 0].flatten(0, 1), dim=0, return_counts=True)[1]
    assert len(counts) == 16
    expected = 180 / 16
    assert ((counts - expected) ** 2 / expected).sum() < 35, "chi-square with 15 degrees of freedom"
    assert torch.equal(control(question, 1).boxes, chance.boxes), "the same again"
    assert torch.equal(search(question, 1).boxes, found.boxes), "nothing stays behind"


def test_its_figures_fall_and_its_cost_does_not():
    model, source = Adder(), Squares(12)
    own = Remembered(Search(model))
    methods = [own, *make_methods(["shuffled-scores"], model, source, like=own)]
    found = evaluate(methods, model, source, fills=("mean",), negatives=3).methods
    search, control = found["ours"], found["shuffled-scores"]
    path = "log_probability.change.negative"
    assert search.figure(path).low > control.figure(path).high, "B rises less"
    assert search.figure("positive_drop").mean > control.figure("positive_drop").mean + 0.2
    assert search.figure("masked_clips") == control.figure("masked_clips")
    assert control.figure("masked_clips").mean > 0
