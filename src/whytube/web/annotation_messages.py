"""Bodies and answers of the routes about annotations and teaching."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from whytube.web.annotation_actions import (  # noqa: TC001 - pydantic reads them
    Action,
    Key,
    Name,
    Origin,
    Present,
)
from whytube.web.messages import Id, Message, Video

Format = Literal["cvat", "beaverdam", "label-studio", "coco", "tables"]


class TrackOut(Message):
    """Boxes of an attribute by one annotator, named by attribute and number; origin: where they first came from."""

    annotator: str
    attribute: str
    track: int
    origin: Origin
    keys: list[Key]


class MarkOut(Message):
    """What an annotator says of an attribute."""

    annotator: str
    attribute: str
    value: Present


class LabelOut(Message):
    """The class that a person gave to a video."""

    label: str
    annotator: str


class Annotation(Message):
    """All that was said of a video. undo, redo: how many actions each annotator can take back, or do again."""

    video: Id
    version: int
    label: LabelOut | None
    tracks: list[TrackOut]
    marks: list[MarkOut]
    undo: dict[str, int]
    redo: dict[str, int]


class ActionIn(Message):
    """Something that a person does. version: of the annotation that they saw.

    request: names it, so that sending it twice does it once.
    """

    version: Annotated[int, Field(ge=0, le=2**53)]
    annotator: Name
    action: Action
    request: Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")] | None = None


class OutOfDate(Message):
    """The action was meant for an older version: look at the current state, and do it again on top of that."""

    detail: str
    state: Annotation


class VideoRow(Message):
    """A video in the list. predicted: what the model says it is, where it has looked. boxes: on key frames."""

    video: Video
    version: int
    label: str | None
    predicted: str | None
    boxes: int
    tracks: int
    marks: int
    annotators: list[str]


class WordRow(Message):
    """A word that can be marked and drawn. known: the model has it. boxes, videos: drawn of it."""

    word: str
    known: bool
    boxes: int
    videos: int


class Suggestion(Message):
    """A video and an attribute whose boxes would help much, and why."""

    video: Id
    attribute: str
    boxes: int
    fit: float | None
    why: str


class Overview(Message):
    """Everything on one page: videos, the newest first, words, classes, and what would help most."""

    videos: list[VideoRow]
    words: list[WordRow]
    classes: list[str]
    suggestions: list[Suggestion]
    undrafted: int


class WordIn(Message):
    """A new word."""

    word: Name
    annotator: Name


class Draft(Message):
    """The tube that the model takes for an attribute; fit: how sure it is, null where that is not known."""

    attribute: str
    fit: float | None
    likely: bool
    keys: list[Key]


class Drafts(Message):
    """What the model proposes for a video; predicted is null where it has not looked."""

    predicted: str | None
    drafts: list[Draft]


class Pair(Message):
    """How far two annotators agree: see whytube/web/agreement.py. null where there is nothing to compare."""

    annotators: Annotated[list[str], Field(min_length=2, max_length=2)]
    iou: float | None
    tracks: int
    frames: int
    agree: float | None
    kappa: float | None
    marks: int


class Agreement(Message):
    """How far annotators agree, and how that is computed."""

    pairs: list[Pair]
    how: str


class Imported(Message):
    """What an import brought: new tracks and marks per video, and how many were there already."""

    videos: dict[str, int]
    same: int


class Teachable(Message):
    """What teaching would use: words with the number of videos with boxes of them. can: whether the model has words."""

    videos: int
    words: dict[str, int]
    can: bool


class TaughtModel(Message):
    """A model that was taught. report: words with how well they were placed on held-out boxes, before and after.

    asked: the results before and after of the question that was asked with it.
    """

    id: Id
    created: str
    current: bool
    report: dict[str, Any]
    asked: dict[str, str] | None


class TaughtModels(Message):
    """Models that were taught from the one that the server was started with, newest first; current: which answers."""

    base: str
    current: Id | None
    models: list[TaughtModel]


class UseIn(Message):
    """The model to answer with from now on; null for the one that the server was started with."""

    model: Id | None
