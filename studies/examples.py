"""Examples on videos, as in the paper's Fig. 6, good and bad: those whose masking moved the decision most, and least.

    python studies/examples.py --data DATA [--model jhmdb-i3d] [--count 24] [--each 3] --out FOLDER

DATA is a folder of videos, such as `whytube data import jhmdb` writes from your own copy. The first `count` test
videos are explained, "why the predicted class, not the next probable one?". They are ranked by how much p(A) - p(B)
fell once the tube of the first reason was masked, the mean over the judging fills; an answer without a reason counts as
0. The `each` best and the `each` worst become contact sheets: best-1.jpg, ..., worst-1.jpg, ... . index.md shows them,
examples.json says all of them with commit, seed, device and versions.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from PIL import Image

from whytube.data.layout import read_dataset
from whytube.errors import ArgumentError, WhytubeError
from whytube.explaining import explain
from whytube.files import make_folder, whole_file, write_whole
from whytube.models import find_device, load_model
from whytube.report import contact_sheet
from whytube.versions import provenance

if TYPE_CHECKING:
    from whytube.data.layout.dataset import Item
    from whytube.explanation import Explanation

RULE = "largest and smallest fall of p(A) - p(B) once the first reason's tube is masked, mean over the judging fills"


def main() -> None:
    """Explain, rank, draw."""
    options = _options()
    try:
        found = examples(options.data, options.model, count=options.count, effort=options.effort, device=options.device)
        told = draw(found, options.out, each=options.each, columns=options.columns, scale=options.scale)
    except WhytubeError as error:
        raise SystemExit(f"error: {error}") from error
    origin = provenance(torch.device(options.device), seed=0) | {"data": Path(options.data).name}
    document = {"rule": RULE, "videos": len(found), "model": Path(options.model).name, "effort": options.effort}
    text = json.dumps(document | {"examples": told, "provenance": origin}, indent=1)
    write_whole(Path(options.out) / "examples.json", text + "\n")
    write_whole(Path(options.out) / "index.md", page(told))
    print(f"{options.out}: {len(told)} of {len(found)} explanations")


def examples(
    data: str, model: str, *, count: int, effort: str = "normal", device: str = "cpu"
) -> list[tuple[Item, Explanation]]:
    """Explain the first test videos of a folder of data; the one whose decision moved most comes first."""
    explainer = load_model(model, device=find_device(device))
    items = read_dataset(data).items("test")[:count]
    if not items:
        raise ArgumentError(f"there are no test videos in {data}")
    found = [(item, explain(item.path, explainer, effort=effort)) for item in items]
    return sorted(found, key=lambda pair: -fall(pair[1]))


def fall(explanation: Explanation) -> float:
    """How much p(A) - p(B) fell once the first reason's tube was masked; 0 without one."""
    return (explanation.reasons[0].fall or 0.0) if explanation.reasons else 0.0


def draw(
    found: list[tuple[Item, Explanation]], out: str | Path, *, each: int, columns: int, scale: float | None = None
) -> list[dict[str, Any]]:
    """Write contact sheets of the best and the worst, and return what they show. found: best first."""
    folder = make_folder(out, error=ArgumentError)
    each = min(each, len(found) // 2)
    chosen = [(f"best-{n + 1}", found[n]) for n in range(each)]
    chosen += [(f"worst-{n + 1}", found[-1 - n]) for n in range(each)]
    told = []
    for name, (item, explanation) in chosen:
        sheet = contact_sheet(item.path, explanation, columns=columns, scale=scale)
        with whole_file(folder / f"{name}.jpg", error=ArgumentError) as part:
            Image.fromarray(sheet).save(part, format="JPEG", quality=82)
        told.append(
            {
                "picture": f"{name}.jpg",
                "video": item.name,
                "sentence": explanation.sentence,
                "fall": round(fall(explanation), 4),
                "fit": explanation.reasons[0].fit if explanation.reasons else None,
            }
        )
    return told


def page(told: list[dict[str, Any]]) -> str:
    """Write the examples as a page."""
    parts = [f"# Examples\n\nChosen by a rule: {RULE}.\n"]
    parts += [
        f"![{one['sentence']}]({one['picture']})\n\n`{one['video']}`: {one['sentence']}. Fall {one['fall']:.2f}.\n"
        for one in told
    ]
    return "\n".join(parts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of videos, see docs/data.md")
    parser.add_argument("--model", default="jhmdb-i3d")
    parser.add_argument("--count", type=int, default=24, help="test videos that are explained")
    parser.add_argument("--each", type=int, default=3, help="how many of the best, and of the worst, are drawn")
    parser.add_argument("--columns", type=int, default=5, help="frames of a contact sheet")
    parser.add_argument("--scale", type=float, help="size of a frame, as a multiple of the video's")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", required=True, type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
