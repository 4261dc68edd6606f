"""What a worker does with a shard: read ahead, explain a few videos at a time, and write what became of each."""

from __future__ import annotations

import errno
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.asking import Asked as Question
from whytube.asking import SameClassError
from whytube.bulk.listing import is_address, one_line, open_address
from whytube.errors import ArgumentError, DataError, WhytubeError
from whytube.given import Reading, model_hash, video_hash
from whytube.models import load_model
from whytube.search.anytime import Effort
from whytube.video import iter_windows, probe, read_clip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whytube.bulk.output import Asked, Output
    from whytube.bulk.tables import Part, Row
    from whytube.explanation import Explanation
    from whytube.search.verify import Question as Ranked
    from whytube.video import Clip

FILLS = ("mean", "blur", "freeze")
FULL = (errno.ENOSPC, errno.EDQUOT)
DEATHS = 3
"""A video that so many workers died of is given up."""


@dataclass(frozen=True)
class Read:
    """A clip of a row, or what is wrong with it; content: the hash of its video."""

    row: Row
    clip: Clip | None = None
    content: str = ""
    error: str = ""


@dataclass(frozen=True)
class Outcome:
    """Of a shard: videos explained and failed; stop: why nothing more can be written."""

    shard: int
    explained: int = 0
    failed: int = 0
    stop: str = ""


class Work:
    """Explains shards of a run; holds the model."""

    def __init__(self, output: Output, asked: Asked, *, device: str = "cpu", threads: int | None = None) -> None:
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        self.output, self.asked = output, asked
        self.model = load_model(asked.model, device=device)
        self.weights = model_hash(self.model.classifier)  # once: of a large network it takes as long as a search
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="reading ahead")
        self._following: int | None = None
        self._begun: _Begun | None = None

    def __call__(self, shard: int, following: int | None = None) -> Outcome:
        """Explain a shard and write it; one that is written already stays.

        following: the shard that comes next, whose first videos are read while the last ones of this are explained.
        """
        try:
            self.output.require_shared()
        except DataError as error:
            return Outcome(shard, stop=str(error))
        rows = self._rows(shard)
        if self._begun is not None and self._begun.shard != shard:
            self._give_up()
        begun, self._begun, self._following = self._begun, None, following
        if self.output.is_done(shard):
            self._begun = begun
            self._give_up()  # another driver was quicker; once the reading has ended
        else:
            try:
                with self.output.writing(shard) as part:
                    self._explain(rows, part, begun)
            except DataError as error:  # the folder of the answers, not a video, is at fault
                self._give_up()
                return Outcome(shard, stop=str(error))
            except BaseException:
                self._give_up()
                raise
            finally:
                self.output.finish(row.row for row in rows)  # whoever comes here did not die of a video
        failed = self.output.failed(shard)
        return Outcome(shard, len(rows) - failed, failed)

    def close(self) -> None:
        """Read nothing more; videos that were read for nothing are not in hand any more."""
        self._reader.shutdown(wait=True, cancel_futures=True)
        if self._begun is not None:
            self.output.finish(row.row for row in self._begun.rows)
        self._begun = None

    def _give_up(self) -> None:
        self.close()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="reading ahead")

    def _begin_following(self) -> None:
        """Have the first videos of the next shard read, unless a worker died of one of its videos."""
        shard, self._following = self._following, None
        if shard is None or self.output.is_done(shard):
            return
        rows = self._rows(shard)
        if not any(self.output.attempts(row.row) for row in rows):
            self._begun = _Begun(shard, rows, _Ahead(self._reader, self._read(rows), self.asked.batch))

    def _explain(self, rows: Sequence[Row], part: Part, begun: _Begun | None) -> None:
        if begun is not None:
            self._group(rows, begun.groups, part, last=True)
            return
        careful = [row for row in rows if self.output.attempts(row.row)]
        for row in careful:  # one at a time, so that it is known which video a worker dies of
            if self.output.attempts(row.row) >= DEATHS:
                part.fail(row, f"given up: {DEATHS} workers died of it, for lack of memory perhaps")
                continue
            self._group([row], _Ahead(self._reader, self._read([row]), 1), part, last=False)
        fresh = [row for row in rows if row not in careful]
        self._group(fresh, _Ahead(self._reader, self._read(fresh), self.asked.batch), part, last=True)

    def _group(self, rows: Sequence[Row], groups: _Ahead, part: Part, *, last: bool) -> None:
        """Explain videos, a group of clips at a time, while the next ones are read; last: of the shard."""
        for group in groups.each(self._begin_following if last else None):
            for read in group:
                if read.error:
                    part.fail(read.row, read.error)
            for found in self._answers([read for read in group if not read.error]):
                if isinstance(found, Read):
                    part.fail(found.row, found.error)
                else:
                    part.answer(found)
            # Of a video in windows more may come in the next group.
            more = None if self.asked.window is None else group[-1].row
            self.output.finish(read.row.row for read in group if read.row != more)
        self.output.finish(row.row for row in rows)

    def _read(self, rows: Sequence[Row]) -> Iterator[Read]:
        """Yield the clips of rows: one each, or the windows that slide over each."""
        classifier = self.model.classifier
        for row in rows:
            self.output.attempt([row.row])
            path = Path(row.video)
            try:
                with _local(row.video) as path:
                    content = video_hash(path)
                    if self.asked.window is None:
                        yield Read(row, read_clip(path, frames=classifier.frames, size=classifier.size), content)
                        continue
                    stride = self._stride(path)
                    for clip in iter_windows(path, frames=classifier.frames, stride=stride, size=classifier.size):
                        yield Read(row, clip, content)
            except Exception as error:  # whatever a file does to a decoder, the others are read
                if isinstance(error, OSError) and error.errno in FULL:
                    raise DataError(f"no room for a copy of {row.video} in {tempfile.gettempdir()}") from error
                yield Read(row, error=told(error).replace(str(path), row.video))

    def _stride(self, path: Path) -> int:
        """Frames from one to the next of a window; of a video that is shorter than one, spread over all of it."""
        assert self.asked.window is not None
        info, frames = probe(path), self.model.classifier.frames
        return max(1, min(round(info.fps * self.asked.window / frames), -(-info.frames // frames)))

    def _answers(self, reads: Sequence[Read]) -> Iterator[dict[str, Any] | Read]:
        """Explain clips together; where that fails, each by itself, so that one does not spoil the others."""
        if not reads:
            return
        try:
            whole = self._asked(reads)
        except Exception as error:  # a network of the user's own may raise anything
            if len(reads) == 1:
                same = f"classified as {self.asked.negatives[0]}, the class that was asked about"
                why = same if isinstance(error, SameClassError) else told(error)
                yield replace(reads[0], clip=None, error=why)
                return
            for read in reads:
                yield from self._answers([read])
            return
        for read, explanations in zip(reads, whole, strict=True):
            for explanation in explanations:
                yield _answer(read, explanation, windowed=self.asked.window is not None)

    def _asked(self, reads: Sequence[Read]) -> list[tuple[Explanation, ...]]:
        names: list[str | None] | None = [None]
        if self.asked.negatives == "all":
            names = None
        elif self.asked.negatives == "label":
            names = None  # all are ranked, and `_true_classes` takes one of them
        elif not isinstance(self.asked.negatives, str):
            names = list(self.asked.negatives)
        effort = Effort(tubes=self.asked.effort, area=self.asked.area)
        reading = Reading(sampling="uniform" if self.asked.window is None else "window")
        clips = [read.clip for read in reads if read.clip is not None]
        contents = [read.content for read in reads if read.clip is not None]
        question = Question(
            clips,
            self.model,
            None,
            names,
            k=self.asked.k,
            fills=FILLS,
            effort=effort,
            reading=reading,
            contents=contents,
            weights=self.weights,
        )
        if self.asked.negatives == "label":
            question.question = self._true_classes(question.question, [read.row for read in reads])
        return question.told(question.answer())

    def _true_classes(self, question: Ranked, rows: Sequence[Row]) -> Ranked:
        """Ask about the true class of each clip, or the most probable other one where it is not known or predicted."""
        classes = self.model.classifier.classes
        wanted = []
        for row, ranked in zip(rows, question.negative.tolist(), strict=True):
            true = classes.index(row.label) if row.label in classes else -1
            wanted.append([true if true in ranked else ranked[0]])
        return replace(question, negative=question.negative.new_tensor(wanted))

    def _rows(self, shard: int) -> list[Row]:
        """Look up the rows of a shard, with labels as the classifier writes them."""
        return [replace(row, label=self._class(row.label)) for row in self.output.rows(shard)]

    def _class(self, label: str) -> str:
        """Write a label as the classifier does, whose blanks or capitals may be others; one that it lacks stays."""
        try:
            return self.model.classifier.classes[self.model.classifier.class_index(label)] if label else ""
        except ArgumentError:
            return label


@contextmanager
def _local(video: str) -> Iterator[Path]:
    """Give a path to a video; one in an object store is copied to a temporary file for the length of the block."""
    if not is_address(video):
        yield Path(video)
        return
    import shutil

    system, path = open_address(video)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / Path(path).name
        try:
            source = system.open_input_stream(path)
        except OSError as error:
            raise DataError(f"cannot read {video}: {one_line(error)}") from error
        with source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        yield target


class _Ahead:
    """Groups of `batch` reads, read in a thread: one while the last is worked on, so that few are held at a time."""

    def __init__(self, reader: ThreadPoolExecutor, reads: Iterator[Read], batch: int) -> None:
        self.reader, self.reads, self.batch = reader, reads, batch
        self.coming = reader.submit(self._group)

    def _group(self, then: Callable[[], None] | None = None) -> list[Read]:
        found = list(islice(self.reads, self.batch))
        if not found and then is not None:
            then()
        return found

    def each(self, then: Callable[[], None] | None) -> Iterator[list[Read]]:
        """Yield the groups; once all are read, call `then` in the reading thread."""
        while now := self.coming.result():
            self.coming = self.reader.submit(self._group, then)
            yield now


@dataclass(frozen=True)
class _Begun:
    """A shard whose first videos are being read."""

    shard: int
    rows: Sequence[Row]
    groups: _Ahead


def told(error: BaseException) -> str:
    """Write in one line what went wrong."""
    return str(error) if isinstance(error, WhytubeError) else f"{type(error).__name__}: {' '.join(str(error).split())}"


def _answer(read: Read, explanation: Explanation, *, windowed: bool) -> dict[str, Any]:
    """Lay out an explanation as a row of the table of answers."""
    times = explanation.times or (None,)
    return {
        "row": read.row.row,
        "video": read.row.video,
        "label": read.row.label,
        "start": times[0] if windowed else None,
        "end": times[-1] if windowed else None,
        "predicted": explanation.said,
        "positive": explanation.positive,
        "negative": explanation.negative,
        "p_positive": explanation.probabilities[explanation.positive],
        "p_negative": explanation.probabilities[explanation.negative],
        "explained": explanation.explained,
        "sentence": explanation.sentence,
        "reasons": [
            {
                "attribute": reason.attribute,
                "fit": reason.fit,
                "score": reason.score,
                "verdict": reason.verdict,
                "fall": reason.fall,
                **reason.tube.to_dict(),
                "evidence": [asdict(evidence) for evidence in reason.evidence],
            }
            for reason in explanation.reasons
        ],
        "frames": list(explanation.frames),
        "fps": explanation.fps,
        "duration": explanation.duration,
        "height": explanation.size[0],
        "width": explanation.size[1],
        "video_hash": read.content,
        "model": explanation.model,
        "model_hash": explanation.model_hash,
        "settings": json.dumps(explanation.settings),
        "versions": json.dumps(explanation.versions),
    }
