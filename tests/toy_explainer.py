"""Tiny explainers and inputs that the tests of the explanation module share."""

import torch

from toy_source import Tints
from whytube.classifiers import C3DResNet
from whytube.explainer.explainer import Explainer, find_objective
from whytube.explainer.scores import Forms, Scores, build_scores
from whytube.models import save_classifier, save_explainer

GRIDS = ((3, 4, 6), (3, 2, 3))
CHANNELS = (3, 2)


def saved_model(folder, explainer):
    """Write a classifier and its explainer to a new folder."""
    folder.mkdir(parents=True)
    save_classifier(folder / "classifier.safetensors", explainer.classifier, provenance={})
    save_explainer(folder / "explainer.safetensors", explainer, provenance={})
    return folder


def tiny_scores(classes=4, attributes=5, *, grids=GRIDS, channels=CHANNELS, class_bias=False, seed=0):
    """Random scores in float64 on two small maps; so is the bias of classes, where there is one."""
    torch.manual_seed(seed)
    size, frames = (8 * grids[0][1], 8 * grids[0][2]), grids[0][0]
    scores = Scores(classes, attributes, channels, Forms(grids, size, frames), class_bias=class_bias).double()
    return with_random_classes(scores) if class_bias else scores


def with_random_classes(scores):
    """Fill what begins at zero where classes have a bias."""
    for weights in (*scores.class_weights, scores.class_bias):
        torch.nn.init.normal_(weights, std=0.2)
    return scores


def tiny_maps(batch=2, *, grids=GRIDS, channels=CHANNELS, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(batch, d, *grid, generator=generator, dtype=torch.float64)
        for d, grid in zip(channels, grids, strict=True)
    )


def tiny_classifier(classes=Tints.classes, *, frames=2, size=(16, 16), seed=0):
    """Build a random network whose maps stand on grids of 8 x 8 and 4 x 4 cells."""
    torch.manual_seed(seed)
    model = C3DResNet(classes, width=1 / 16, frames=frames, size=size, stem_stride=2, pools=(1, 1, 1, 2))
    model.head[-1].weight.data.mul_(20)  # differences that masking can move
    return model.eval()


def tiny_explainer(objective="ours", *, table=None, words=None, classifier=None, shapes="multiple", seed=0):
    """Untrained scores for a random network; by default three classes and four words."""
    classifier = classifier or tiny_classifier()
    table = torch.tensor([[1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 0, 0]]).bool() if table is None else table
    words = words or tuple(f"word {s}" for s in range(table.shape[1]))
    bias = find_objective(objective).class_bias
    scores = build_scores(classifier, len(words), shapes=shapes, class_bias=bias, seed=seed)
    if bias:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            with_random_classes(scores)
    return Explainer(classifier, scores.eval(), words, table, objective)
