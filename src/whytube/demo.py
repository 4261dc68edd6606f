"""`whytube demo`: plant a moving patch in noise, find it with the layer, draw both in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from whytube.subpath import Subpath

STEPS, HEIGHT, WIDTH = 12, 10, 14
_SHADES = " .:-=+*#"


def planted_volume(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores (1, T, H, W) of noise around -1 with a patch that walks, and its cells (T, 3), -1 where there is none."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(1, STEPS, HEIGHT, WIDTH, generator=generator) * 0.6 - 1.0
    cells = torch.full((STEPS, 3), -1)
    first = int(torch.randint(1, 4, (), generator=generator))
    last = int(torch.randint(STEPS - 3, STEPS, (), generator=generator))
    place = torch.tensor([HEIGHT // 2, 3])
    for t in range(first, last):
        place = place + torch.tensor([int(torch.randint(-1, 2, (), generator=generator)), t % 2])
        place = place.clamp(torch.tensor([0, 0]), torch.tensor([HEIGHT - 1, WIDTH - 1]))
        scores[0, t, place[0], place[1]] += 3.0
        cells[t] = torch.tensor([0, *place.tolist()])
    return scores, cells


def draw(scores: torch.Tensor, found: Subpath, planted: torch.Tensor, console: Console) -> None:
    """Print every time step as a small picture: brighter is a higher score, the found tube in green."""
    table = Table(box=None, padding=(0, 2))
    pictures = [_picture(scores[0, t], found.cells[t], f"t = {t}") for t in range(STEPS)]
    for row in range(0, STEPS, 4):
        table.add_row(*pictures[row : row + 4])
    console.print(table)
    first, last = int(found.start), int(found.stop) - 1
    hits = int(((found.cells == planted).all(1) & (planted[:, 0] >= 0)).sum())
    console.print(
        f"The best tube runs from step {first} to {last} with score {float(found.value):.2f}; "
        f"it covers {hits} of the {int((planted[:, 0] >= 0).sum())} planted cells."
    )


def _picture(plane: torch.Tensor, cell: torch.Tensor, title: str) -> Text:
    text = Text(title + "\n")
    levels = ((plane + 2.5) / 4.5 * len(_SHADES)).long().clamp(0, len(_SHADES) - 1)
    for i, row in enumerate(levels.tolist()):
        for j, level in enumerate(row):
            here = cell.tolist()[1:] == [i, j]
            text.append("█" if here else _SHADES[level], style="bold green" if here else "dim")
        text.append("\n")
    return text
