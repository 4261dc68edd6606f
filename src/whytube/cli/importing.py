"""`whytube data import`: index a public data set as it was unpacked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whytube.cli.options import JsonFile, Overwrite, require_new, write_json

if TYPE_CHECKING:
    from whytube.data.importers import Imported

app = typer.Typer(
    help="Index a public data set where it lies: no video is copied. The new folder is what `--data` takes.",
    no_args_is_help=True,
)

Videos = Annotated[Path, typer.Argument(help="Folder of the class folders with the videos.")]
Out = Annotated[Path, typer.Option(help="New or empty folder to write.")]
Split = Annotated[int, typer.Option(help="Which of the three official splits.", min=1, max=3)]
Val = Annotated[float, typer.Option(help="Share of the training videos to hold out as val, whole recordings.")]
Relative = Annotated[bool, typer.Option(help="Write paths from --out to the videos, to move both together.")]


@app.command("ucf101-24")
def ucf101_24(
    videos: Videos,
    annotations: Annotated[Path, typer.Option(help="Corrected boxes of Singh et al.: .pkl, or .mat (needs scipy).")],
    splits: Annotated[Path, typer.Option(help="Folder with trainlist01.txt, testlist01.txt, ...")],
    out: Out,
    split: Split = 1,
    val: Val = 0.0,
    relative: Relative = False,
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Index UCF101-24: videos of UCF101, its split lists, the corrected boxes as boxes of the actor.

    Example: `whytube data import ucf101-24 UCF-101 --annotations corrected_boxes.pkl --splits splits --out ucf`
    """
    from whytube.data.importers import import_ucf101_24

    require_new(json_file, overwrite=overwrite)
    imported = import_ucf101_24(
        videos, out, annotations=annotations, splits=splits, split=split, val=val, relative=relative
    )
    _tell(imported, json_file)


@app.command("olympic-sports")
def olympic_sports(
    videos: Videos,
    train: Annotated[Path, typer.Option(help="Text file, one class/name per line.")],
    test: Annotated[Path, typer.Option(help="Text file, one class/name per line.")],
    out: Out,
    val: Val = 0.0,
    relative: Relative = False,
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Index Olympic Sports: .seq files, your own lists, the published attributes of Liu et al.

    Example: `whytube data import olympic-sports olympic_sports --train train.txt --test test.txt --out olympic`
    """
    from whytube.data.importers import import_olympic_sports

    require_new(json_file, overwrite=overwrite)
    _tell(import_olympic_sports(videos, out, train=train, test=test, val=val, relative=relative), json_file)


@app.command("jhmdb")
def jhmdb(
    folder: Annotated[Path, typer.Argument(help="J-HMDB as unpacked, or a pack with clips.csv.")],
    out: Out,
    split: Split = 1,
    val: Val = 0.0,
    relative: Relative = False,
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Index J-HMDB: one official split, boxes of the actor from the masks, of attributes in test clips from part boxes.

    Example: `whytube data import jhmdb JHMDB --split 1 --out jhmdb-1`
    """
    from whytube.data.importers import import_jhmdb

    require_new(json_file, overwrite=overwrite)
    _tell(import_jhmdb(folder, out, split=split, val=val, relative=relative), json_file)


def _tell(imported: Imported, json_file: Path | None) -> None:
    write_json(imported.to_dict(), json_file)
    typer.echo(str(imported))
