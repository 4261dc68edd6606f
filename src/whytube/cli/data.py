"""`whytube data`: write the embedded world as files, index public data sets, check a folder of your own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whytube.checks import check_choice, unknown_name
from whytube.cli.options import Json, Overwrite, Seed, print_result, progress_bar
from whytube.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from whytube.data.formats import Facts
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
Format = Annotated[str, typer.Option(help="cvat, beaverdam, label-studio, coco or tables.")]


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


@app.command("import-boxes")
def import_boxes(
    files: Annotated[list[Path], typer.Argument(help="Files of one format; one may hold several videos.")],
    data: Annotated[Path, typer.Option(help="The data folder that the boxes are of: see docs/data.md.")],
    format: Format,
    video: Annotated[
        str | None, typer.Option(help="The video that the file is of, where it names none or names it differently.")
    ] = None,
    annotator: Annotated[str | None, typer.Option(help="Take only what this annotator drew and marked.")] = None,
    as_json: Json = False,
) -> None:
    """Take boxes and marks of an annotation tool into a data folder.

    The formats are those of CVAT for video 1.1, BeaverDam, Label Studio, COCO for videos, and whytube's own table.
    Boxes go to boxes.csv, with those between key frames. They replace the boxes of the same video and attribute; all
    others stay. Where a video turns out to have other attributes than its class, video_attributes.csv says so.

    Example: `whytube data import-boxes annotations.xml --format cvat --data my_videos`
    """
    from whytube.data.formats import FORMATS, read_annotations
    from whytube.data.formats.folder import Folder, joined, take_in

    check_choice(format, "format", FORMATS)
    if video is not None and len(files) > 1:
        raise ArgumentError("--video is for one file: import the others by themselves")
    folder = Folder(data)
    read = []
    for file in files:

        def describe(name: str, own: str = file.stem) -> Facts:
            return folder.describe(video or name or own)

        read += read_annotations(file, format=format, describe=describe)
    if video is not None and len(read) > 1:
        raise ArgumentError(f"--video is for a file of one video, and {files[0]} has {len(read)}")
    chosen = [one if annotator is None else one.of(annotator) for one in joined(read)]
    if annotator is not None and not any(one.tracks or one.marks for one in chosen):
        raise unknown_name("annotator", annotator, sorted({name for one in read for name in one.annotators}))
    taken = take_in(folder, chosen)
    print_result(str(taken), asdict(taken), as_json=as_json)


@app.command("export-boxes")
def export_boxes(
    out: Annotated[Path, typer.Option(help="File to write; a folder for several videos with cvat or beaverdam.")],
    format: Format,
    data: Annotated[Path | None, typer.Option(help="The data folder: see docs/data.md.")] = None,
    video: Annotated[list[str] | None, typer.Option(help="A video to export; all that have boxes by default.")] = None,
    explanation: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A saved explanation, whose tubes to export instead.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write the boxes of a data folder, or the tubes of explanations, for an annotation tool.

    Frames between two boxes of a data folder stay empty, as they are in boxes.csv. CVAT and BeaverDam have a file for
    each video: with several videos --out is a new folder.

    Example: `whytube data export-boxes --data my_videos --format cvat --out for_cvat`
    """
    from whytube.data.formats import FORMATS, explained
    from whytube.data.formats.folder import Folder, write_out
    from whytube.explanation import Explanation

    check_choice(format, "format", FORMATS)
    if (data is None) == (not explanation):
        raise ArgumentError(
            "give either --data with a folder, or --explanation with a file of `whytube explain --save`"
        )
    found = [explained(Explanation.load(path)) for path in explanation or ()]
    if data is not None:
        folder = Folder(data)
        items = [folder.find(name) for name in video] if video else [item for item in folder.data.videos if item.boxes]
        if not items:
            raise DataError(f"{data} has no boxes: there is nothing to export")
        with progress_bar("reading videos") as progress:
            for done, item in enumerate(items, 1):
                found.append(folder.annotations(item))
                progress(done, len(items))
    written = write_out(out, found, format=format, overwrite=overwrite)
    tracks = sum(len(one.tracks) for one in found)
    result = {"out": str(out), "files": [str(path) for path in written], "videos": len(found), "tracks": tracks}
    print_result(f"wrote {tracks} tracks of {len(found)} videos to {out}", result, as_json=as_json)


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
