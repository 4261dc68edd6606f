"""The twin of your_own_model.py: the same by hand, with torch hooks and the layer alone, and where both must agree.

    python examples/your_own_model_by_hand.py

It shows what `wrap`, the contrastive map and an explainer of the paper's kind are made of.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch.nn import functional

import whytube
from whytube.data.export import export_world
from whytube.data.layout import read_dataset
from whytube.explainer.scores import shape_windows
from whytube.search.grad_cam import contrastive_maps
from whytube.search.verify import ask
from whytube.training.explainer import fit_explainer
from whytube.training.recipe import Recipe
from your_own_model import FRAMES, SIZE, YourNet, train


def features_by_hand(net: YourNet, clips: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits (B, C) and what two layers give, finer first; the hooks go whatever happens."""
    maps: list[torch.Tensor] = []
    hooks = [layer.register_forward_hook(lambda _m, _x, out: maps.append(out)) for layer in (net.stem, net.body)]
    try:
        logits = net((clips - 0.45) / 0.225)
    finally:
        for hook in hooks:
            hook.remove()
    return logits, maps


def contrast_by_hand(net: YourNet, clip: torch.Tensor, a: int, b: int) -> torch.Tensor:
    """Where the last map speaks for A rather than B: Grad-CAM of the difference of their logits, (t, h, w)."""
    logits, maps = features_by_hand(net, clip)
    (slope,) = torch.autograd.grad(logits[0, a] - logits[0, b], maps[-1])
    return torch.einsum("d,dthw->thw", slope[0].mean((1, 2, 3)), maps[-1][0]).relu().detach()


def scores_by_hand(maps: list[torch.Tensor], weights: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """m_cs of one clip as the paper writes it, w_cs = w_c * w_s + w_c + w_s, in four shapes: (1, C, S, K, T, H, W).

    weights: (w_c, w_s) of each map, (C, d, 3, 3) and (S, d, 3, 3). The coarser map comes to the finer one's grid.
    """
    volumes = []
    for features, (w_c, w_s) in zip(maps, weights, strict=True):
        kernels = w_c[:, None] * w_s + w_c[:, None] + w_s  # (C, S, d, 3, 3)
        shaped = kernels[:, :, None] * shape_windows().view(1, 1, 4, 1, 3, 3)
        frames = features[0].transpose(0, 1)  # (t, d, h, w)
        found = functional.conv2d(frames, shaped.flatten(0, 2), padding=1)
        volume = found.transpose(0, 1).unflatten(0, shaped.shape[:3])  # (C, S, 4, t, h, w)
        whole = functional.interpolate(volume.flatten(0, 1), size=maps[0].shape[2:], mode="nearest")
        volumes.append(whole.unflatten(0, volume.shape[:2]))
    return torch.cat(volumes, 2)[None]


def main(folder: Path, *, count: int = 60, steps: int = 10, clips: int = 60) -> None:
    """Do both, and fail where they differ."""
    data = read_dataset(export_world(folder / "world", count=count, size=SIZE[0], frames=FRAMES))
    source = data.source(frames=FRAMES, size=SIZE)
    torch.manual_seed(0)
    net = YourNet(len(data.classes))
    train(net, source, steps)
    net.eval()
    model = whytube.wrap(net, classes=data.classes, frames=FRAMES, size=SIZE, mean=(0.45,) * 3, std=(0.225,) * 3)
    clip = source.batch("test", [0]).clips

    logits, maps = features_by_hand(net, clip)
    found = model.features(clip)
    torch.testing.assert_close(found.logits, logits)
    torch.testing.assert_close(list(found.maps), maps)
    a, b = logits[0].argsort(descending=True)[:2].tolist()
    by_hand = contrast_by_hand(net, clip, a, b)
    torch.testing.assert_close(contrastive_maps(model, clip, torch.tensor([a]), torch.tensor([[b]]))[0, 0], by_hand)

    recipe = Recipe(clips=clips, batch_size=30, optimizer="adamw", lr=1e-3)
    explainer, _ = fit_explainer(model, source, recipe, objective="paper-sgd")
    weights = list(zip(explainer.scores.class_weights, explainer.scores.attribute_weights, strict=True))
    with torch.no_grad():
        volumes = scores_by_hand([h.detach() for h in maps], weights)
        path = whytube.max_subpath_difference(volumes, torch.tensor([a]), torch.tensor([[b]]))
    value, best = path.value[0, 0].max(0)
    answer = explainer(ask(explainer.classifier, clip), 1)
    torch.testing.assert_close(answer.scores[0, 0, 0], value, rtol=1e-3, atol=1e-3)
    attribute = explainer.attribute_names[best]
    assert explainer.attribute_names[answer.attribute_ids[0, 0, 0]] == attribute
    print(f"{data.classes[a]}, not {data.classes[b]}: {attribute!r}, score {value:.3f}, both ways")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
