"""`whytube data`: write the embedded world as files, index public data sets, check a folder of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whytube.cli.options import Json, Seed, print_result, progress_bar

if TYPE_CHECKING:
    from whytube.data.importers import Imported

app = typer.Typer(help="Data on disk: the layout is described in docs/data.md.", no_args_is_help=True)
importing = typer.Typer(
    help="Index a public data set where it lies: no video is copied. The new folder is what `--data` takes.",
    no_args_is_help=True,
)
app.add_typer(importing, name="import")

Videos = Annotated[Path, typer.Argument(help="Folder of the class folders with the videos.")]
Out = Annotated[Path, typer.Option(help="New or empty folder to write.")]
Split = Annotated[int, typer.Option(help="Which of the three official splits.", min=1, max=3)]
Val = Annotated[float, typer.Option(help="Share of the training videos to hold out as val, whole recordings.")]
Relative = Annotated[
    bool, typer.Option("--relative", help="Write paths from --out to the videos, to move both together.")
]


@app.command("export")
def export(
    out: Out,
    count: Annotated[int, typer.Option(help="How many clips in all.")] = 480,
    size: Annotated[int, typer.Option(help="Pixels of a side.")] = 112,
    frames: Annotated[int, typer.Option(help="Frames of a clip.")] = 16,
    fps: Annotated[float, typer.Option(help="Frames per second.")] = 8.0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write the embedded world as videos, attributes and boxes.

    The videos are H.264. A folder that holds anything is never replaced: remove it first.

    Example: `whytube data export --out world --count 480`
    """
    from whytube.data.export import export_world

    settings: dict[str, Any] = {"count": count, "size": size, "frames": frames, "fps": fps, "seed": seed}
    with progress_bar("writing clips") as progress:
        folder = export_world(out, **settings, progress=progress)
    print_result(f"{count} clips in {folder}", {"folder": str(folder), **settings}, as_json=as_json)


@app.command("check")
def check(
    folder: Annotated[Path, typer.Argument(help="The folder to check.")],
    deep: Annotated[bool, typer.Option("--deep", help="Decode every frame of every video.")] = False,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a data set, and count what it holds.

    The counts are those of the paper's Table 1. Problems of one kind share a line; --json has them all. The exit code
    is 2 when the data cannot be used.

    Example: `whytube data check my_videos --deep`
    """
    from whytube.data.layout import check_dataset

    with progress_bar("checking") as progress:
        report = check_dataset(folder, deep=deep, progress=progress)
    print_result(str(report), report.to_dict(), as_json=as_json)
    raise typer.Exit(0 if report.ok else 2)


@importing.command("ucf101-24")
def ucf101_24(
    videos: Videos,
    out: Out,
    annotations: Annotated[Path, typer.Option(help="Corrected boxes of Singh et al.: .pkl, or .mat (needs scipy).")],
    splits: Annotated[Path, typer.Option(help="Folder with trainlist01.txt, testlist01.txt, ...")],
    split: Split = 1,
    val: Val = 0.0,
    relative: Relative = False,
    as_json: Json = False,
) -> None:
    """Index UCF101-24.

    It takes videos of UCF101, its split lists, and the corrected boxes as boxes of the actor.

    Example: `whytube data import ucf101-24 UCF-101 --annotations corrected_boxes.pkl --splits splits --out ucf`
    """
    from whytube.data.importers import import_ucf101_24

    imported = import_ucf101_24(
        videos, out, annotations=annotations, splits=splits, split=split, val=val, relative=relative
    )
    _print(imported, as_json=as_json)


@importing.command("olympic-sports")
def olympic_sports(
    videos: Videos,
    train: Annotated[Path, typer.Option(help="Text file, one class/name per line.")],
    test: Annotated[Path, typer.Option(help="Text file, one class/name per line.")],
    out: Out,
    val: Val = 0.0,
    relative: Relative = False,
    as_json: Json = False,
) -> None:
    """Index Olympic Sports.

    It takes .seq files, your own lists, and the published attributes of Liu et al.

    Example: `whytube data import olympic-sports olympic_sports --train train.txt --test test.txt --out olympic`
    """
    from whytube.data.importers import import_olympic_sports

    imported = import_olympic_sports(videos, out, train=train, test=test, val=val, relative=relative)
    _print(imported, as_json=as_json)


@importing.command("jhmdb")
def jhmdb(
    folder: Annotated[Path, typer.Argument(help="J-HMDB as unpacked, or a pack with clips.csv.")],
    out: Out,
    split: Split = 1,
    val: Val = 0.0,
    relative: Relative = False,
    as_json: Json = False,
) -> None:
    """Index one official split of J-HMDB.

    Boxes of the actor come from the masks, boxes of attributes in test clips from part boxes.

    Example: `whytube data import jhmdb JHMDB --split 1 --out jhmdb-1`
    """
    from whytube.data.importers import import_jhmdb

    _print(import_jhmdb(folder, out, split=split, val=val, relative=relative), as_json=as_json)


def _print(imported: Imported, *, as_json: bool) -> None:
    print_result(str(imported), imported.to_dict(), as_json=as_json)
