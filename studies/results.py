"""Put results together: over seeds, as loss curves, as tables in pages. `make results` runs `pages`.

python studies/results.py pool SEED0.json SEED1.json --out results/world.json
python studies/results.py curves "ours=ours.json" "paper=paper.json" --out curves.json
python studies/results.py right runs/classifier.json --least 0.99
python studies/results.py pages results docs/results.md docs/benchmark.md --images docs/images
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a program, Python looks in studies/ alone


def main() -> None:
    """Read the command line and run a subcommand; a wrong input ends with its message and exit code 2."""
    from whytube.errors import WhytubeError

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("pool", help="Average results over seeds or splits; intervals are over the runs.")
    add.add_argument("files", nargs="+", type=Path, help="Files that `whytube evaluate --out` wrote.")
    add.add_argument("--common", action="store_true", help="Leave out methods that not all of the files have.")
    add = commands.add_parser("curves", help="Put loss curves of training runs side by side.")
    add.add_argument("runs", nargs="+", help="TITLE=FILE, a file that `whytube train ... --save` wrote.")
    for command in list(commands.choices.values()):
        command.add_argument("--out", type=Path, required=True, help="The file to write; replaced if it exists.")
    add = commands.add_parser("pages", help="Write what stands between marks in pages anew, see studies/page.py.")
    add.add_argument("folder", type=Path, help="Folder of results.")
    add.add_argument("pages", nargs="+", type=Path, help="Markdown files with marks.")
    add.add_argument("--images", type=Path, required=True, help="Folder for their pictures.")
    add = commands.add_parser(
        "right", help="Whether a classifier is right on enough validation clips: exit code 0, or 1."
    )
    add.add_argument("file", type=Path, help="A file that `whytube train classifier --val N --save` wrote.")
    add.add_argument("--least", type=float, required=True, help="Share of the clips.")
    arguments = parser.parse_args()
    run = {"pool": pool, "curves": curves, "pages": pages, "right": right}
    try:
        run[arguments.command](arguments)
    except WhytubeError as error:
        parser.error(str(error))


def pool(arguments: argparse.Namespace) -> None:
    """Average results, and print the table."""
    from rich.console import Console

    from studies.pool import pool as pooled
    from whytube.cli.demo import print_results
    from whytube.evaluation.results import Results

    results = pooled([Results.load(path) for path in arguments.files], common=arguments.common)
    results.save(arguments.out)
    print_results(results, Console())


def curves(arguments: argparse.Namespace) -> None:
    """Collect loss curves, and print where they began and ended."""
    from studies.page import curves_table
    from studies.pool import curves as collected
    from whytube.errors import ArgumentError
    from whytube.files import write_whole

    parts = [text.rpartition("=") for text in arguments.runs]
    for title, equals, path in parts:
        if not equals:
            raise ArgumentError(f"expected TITLE=FILE, got {title or path!r}")
    found = collected({title: Path(path) for title, _, path in parts})
    write_whole(arguments.out, json.dumps(found, indent=1, allow_nan=False) + "\n")
    print(curves_table(found["curves"], found["metrics"]))


def right(arguments: argparse.Namespace) -> None:
    """End with exit code 1 where the classifier is wrong too often; print how often it is right."""
    from whytube.errors import DataError
    from whytube.files import read_json

    found = read_json(arguments.file, error=DataError)
    reached = found.get("classifier", {}).get("val accuracy") if isinstance(found, dict) else None
    if reached is None:
        raise DataError(f"{arguments.file} has no accuracy on validation clips. Train with `--val N --save FILE.json`")
    print(f"{arguments.file}: {reached:.3f} of the validation clips right, {arguments.least:g} wanted")
    if reached < arguments.least:
        sys.exit(1)


def pages(arguments: argparse.Namespace) -> None:
    """Write what stands between the marks of pages anew, and the pictures that they show."""
    from studies.losses import loss_pictures
    from studies.negatives import pictures
    from studies.page import fill_page, read_found
    from studies.series import FRONT, effort_pictures, front_picture
    from whytube.errors import ArgumentError
    from whytube.files import make_folder, write_whole

    found = read_found(arguments.folder)
    if not found.runs:
        raise ArgumentError(f"there are no results in {arguments.folder}: `whytube evaluate --out` writes them")
    missing = [str(path) for path in arguments.pages if not path.is_file()]
    if missing:
        raise ArgumentError(f"there is no {', '.join(missing)}: figures are written into pages that are there")
    front = front_picture(found.runs)
    drawn = pictures(found.runs) | effort_pictures(found.runs) | loss_pictures(arguments.folder)
    make_folder(arguments.images)
    for name, picture in (drawn | ({} if front is None else {FRONT: front})).items():
        write_whole(arguments.images / name, picture)
    for path in arguments.pages:
        fill_page(path, found, arguments.images)
    print(f"{len(arguments.pages)} pages from {len(found.runs)} results")


if __name__ == "__main__":
    main()
