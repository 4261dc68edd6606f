"""Bodies and answers of the API. They are strict: what the OpenAPI description does not allow is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

ID = r"^[0-9a-f]{32}$"
Id = Annotated[str, Field(pattern=ID, examples=["0123456789abcdef0123456789abcdef"])]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Box = Annotated[list[Number], Field(min_length=4, max_length=4)]


class Message(BaseModel):
    """What all bodies and answers share."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Problem(Message):
    """Why a request was refused: what was expected, what came, what to do."""

    detail: str


class Health(Message):
    """Whether the server answers, and what it has to do."""

    status: Literal["ok"]
    version: str
    model: str
    queued: int
    running: int


class LimitsOut(Message):
    """The most that the server takes of a video, and jobs that may wait."""

    bytes: int
    seconds: float
    frames: int
    pixels: int
    queue: int


class ModelOut(Message):
    """What the model knows, and what may be asked of it."""

    name: str
    classes: list[str]
    attributes: list[str]
    words: bool
    frames: int
    size: list[int] = Field(min_length=2, max_length=2)
    efforts: dict[str, int]
    fills: list[str]
    limits: LimitsOut


class Video(Message):
    """A video that is kept. Frame i is shown at i / fps seconds of `play`; width and height are its own, as shown."""

    id: Id
    name: str
    frames: int
    fps: float
    duration: float
    width: int
    height: int
    created: str
    bytes: int


class Videos(Message):
    """Videos, the newest first."""

    videos: list[Video]


class Example(Message):
    """A clip of the embedded world."""

    name: str
    title: str


class Examples(Message):
    """Clips to start with; none where the model does not know the embedded world."""

    examples: list[Example]


class FolderVideo(Message):
    """A video of the operator's folder."""

    key: Id
    name: str


class Folder(Message):
    """Videos of the operator's folder; none where the server was started without one."""

    videos: list[FolderVideo]


class ClassifyJob(Message):
    """Ask for the probabilities of all classes."""

    kind: Literal["classify"]
    video: Id


class ExplainJob(Message):
    """Ask why A, not B; without names, A is the predicted class and B the most probable other one."""

    kind: Literal["explain"]
    video: Id
    why: Name | None = None
    why_not: Name | None = None
    k: Annotated[int, Field(ge=1, le=5)] = 2
    effort: Literal["quick", "normal", "thorough"] | Annotated[int, Field(ge=1, le=512)] = "normal"
    area: Annotated[float, Field(ge=0.01, le=0.5)] = 0.1


class TubeIn(Message):
    """Boxes x1, y1, x2, y2 in pixels of the video's own frames, one for each of `frames`, which increase."""

    frames: list[Annotated[int, Field(ge=0, le=10_000_000)]] = Field(min_length=1, max_length=20_000)
    boxes: list[Box] = Field(min_length=1, max_length=20_000)


class WhatIfJob(Message):
    """Ask what the classifier says once a tube of one's own is masked."""

    kind: Literal["what_if"]
    video: Id
    why: Name | None = None
    why_not: Name | None = None
    tube: TubeIn


class OverlayJob(Message):
    """Ask for a video with the tubes of a result drawn on it."""

    kind: Literal["overlay"]
    result: Id
    style: Literal["boxes", "heat"] = "boxes"


class MaskedJob(Message):
    """Ask for the video with the tube of one reason masked."""

    kind: Literal["masked"]
    result: Id
    reason: Annotated[int, Field(ge=0, le=4)] = 0
    fill: Literal["mean", "blur", "freeze", "zero", "still", "shift", "noise"] = "mean"


class DraftJob(Message):
    """Ask for the model's own tubes as first drafts; null for all videos that it has not looked at yet."""

    kind: Literal["draft"]
    videos: Annotated[list[Id], Field(min_length=1, max_length=1000)] | None = None


class TeachJob(Message):
    """Teach the model what was drawn, and ask about a video before and after. steps: of learning; null for as usual."""

    kind: Literal["teach"]
    video: Id | None = None
    why: Name | None = None
    why_not: Name | None = None
    steps: Annotated[int, Field(ge=1, le=10_000)] | None = None


JobIn = Annotated[
    ClassifyJob | ExplainJob | WhatIfJob | OverlayJob | MaskedJob | DraftJob | TeachJob,
    Field(discriminator="kind"),
]
"""What may be asked. A new kind stands here, and in KINDS of work.py."""

Status = Literal["queued", "running", "done", "failed", "cancelled"]


class Progress(Message):
    """How far a job is: `done` of `total` steps, and what it is at."""

    done: int = 0
    total: int = 0
    text: str = ""


class Job(Message):
    """A piece of work. position: place in the queue, 1 for the next. result: id of the answer's document."""

    id: Id
    kind: str
    status: Status
    position: int | None
    progress: Progress
    error: str | None
    result: Id | None
    value: dict[str, Any] | None


class Result(Message):
    """An answer: the document that `whytube explain --json` prints, and the video that it is about."""

    id: Id
    video: Id
    document: dict[str, Any]


class SessionIn(Message):
    """The token that the server printed."""

    token: Annotated[str, Field(max_length=200)]
