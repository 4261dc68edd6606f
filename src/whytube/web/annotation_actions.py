"""What a person can do to the annotation of a video, as JSON; names and boxes are checked here.

A track is named by who drew it, its attribute and a number, so that two tabs that draw the same attribute at once draw
one track. Boxes are x1 y1 x2 y2 in pixels of the video's own frames, x2 and y2 exclusive; frames count from 0.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from whytube.web.messages import Message

LONGEST_NAME = 255
MOST_KEYS = 100_000
FARTHEST = 1e6
LAST_FRAME = 2**31 - 1
MOST_TRACKS = 10_000


def check_name(text: str) -> str:
    """Require a name that every format can hold, see `check_text` of data/formats/track.py, which would load torch."""
    name = text.strip()
    if not name or not name.isprintable():
        raise ValueError("must be printable letters, on one line")
    return name


def check_box(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Require a box with an area; corners are rounded to 1e-6 pixel."""
    x1, y1, x2, y2 = (round(value, 6) + 0.0 for value in box)  # as data/formats has them; no -0.0
    if x2 <= x1 or y2 <= y1:
        raise ValueError(f"must be x1, y1, x2, y2 with x1 < x2 and y1 < y2, got {[x1, y1, x2, y2]}")
    return x1, y1, x2, y2


Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(check_name)]
Corner = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST, allow_inf_nan=False)]
Box = Annotated[tuple[Corner, Corner, Corner, Corner], Field(strict=False), AfterValidator(check_box)]
Frame = Annotated[int, Field(ge=0, le=LAST_FRAME)]
Number = Annotated[int, Field(ge=1, le=MOST_TRACKS)]
Origin = Literal["drawn", "draft", "import"]
Present = Literal["has", "has_not"]


class Key(Message):
    """A key frame: the box there.

    outside: not seen from here up to the next key; until here the box still moves to this one. occluded: partly hidden.
    """

    frame: Frame
    box: Box
    outside: bool = False
    occluded: bool = False


def check_keys(keys: list[Key]) -> list[Key]:
    """Require one key per frame; sorted by frame."""
    if len({key.frame for key in keys}) < len(keys):
        raise ValueError("must have one key per frame, got several for one frame")
    return sorted(keys, key=lambda key: key.frame)


Keys = Annotated[list[Key], Field(min_length=1, max_length=MOST_KEYS), AfterValidator(check_keys)]


class SetKey(Key):
    """Put a box on a key frame; the track begins with its first."""

    type: Literal["set_key"]
    attribute: Name
    track: Number = 1


class DeleteKey(Message):
    """Take a key frame away; a track without keys is gone."""

    type: Literal["delete_key"]
    attribute: Name
    track: Number = 1
    frame: Frame


class SetTrack(Message):
    """Put a whole track in the place of what was there: an accepted draft, or one that was imported."""

    type: Literal["set_track"]
    attribute: Name
    track: Number = 1
    keys: Keys
    origin: Origin = "drawn"


class DeleteTrack(Message):
    """Take a track away."""

    type: Literal["delete_track"]
    attribute: Name
    track: Number = 1


class Mark(Message):
    """Say whether the video has an attribute; "unknown" takes back what was said."""

    type: Literal["mark"]
    attribute: Name
    value: Literal["has", "has_not", "unknown"]


class Label(Message):
    """Say which class the video is of; null for what the model says."""

    type: Literal["label"]
    label: Name | None


class Undo(Message):
    """Take back the annotator's last action that is not taken back yet."""

    type: Literal["undo"]


class Redo(Message):
    """Do again what was last taken back; a new action ends this."""

    type: Literal["redo"]


Simple = Annotated[SetKey | DeleteKey | SetTrack | DeleteTrack | Mark | Label, Field(discriminator="type")]


class Batch(Message):
    """Several at once, taken back at once: an import."""

    type: Literal["batch"]
    actions: Annotated[list[Simple], Field(min_length=1, max_length=MOST_TRACKS)]


Action = Annotated[
    SetKey | DeleteKey | SetTrack | DeleteTrack | Mark | Label | Batch | Undo | Redo, Field(discriminator="type")
]
