"""The jobs of the annotating page, on the server's side: what `draft` and `teach` need, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whytube.errors import ArgumentError
from whytube.web.agreement import around
from whytube.web.store_jobs import key_of

if TYPE_CHECKING:
    from whytube.web.annotation_state import State, Track
    from whytube.web.site import Site
    from whytube.web.store_jobs import StoredJob
    from whytube.web.work import Outcome

ACTOR = "actor"
"""Reserved: the boxes of whoever acts are no word, see data/source.py."""
MOST_VIDEOS = 10_000


def prepare_draft(site: Site, given: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Name the videos to look at: those asked for, or all that the model has not looked at."""
    if given["videos"] is not None:
        missing = [video for video in given["videos"] if site.store.video(video) is None]
        if missing:
            raise LookupError("there is no such video: it may have been deleted")
        return None, {"videos": given["videos"]}
    seen = site.annotations.drafts(site.model["hash"])
    videos = [video.id for video in site.store.list_videos(MOST_VIDEOS, 0) if video.id not in seen]
    if not videos:
        raise ArgumentError("the model has looked at all videos already")
    return None, {"videos": videos}


def gather_draft(site: Site, job: StoredJob) -> dict[str, Any]:
    """Collect the clips of the videos that are still there."""
    found = [site.store.video(ident) for ident in job.parameters["videos"]]
    videos = [
        {"id": video.id, "clip": str(site.intake.clip(video.id)), "frames": video.frames}
        for video in found
        if video is not None
    ]
    return {"videos": videos}


def keep_draft(site: Site, _: StoredJob, outcome: Outcome) -> None:
    """Keep what the model proposed."""
    told = outcome.document or {}
    for video, drafts in told["videos"].items():
        site.annotations.keep_draft(video, told["model"], drafts["predicted"], drafts["drafts"])


def prepare_teach(site: Site, given: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Pin the versions of all annotations: what is drawn while the job waits is taught the next time."""
    states = site.annotations.states()
    versions = {video: state.version for video, state in sorted(states.items()) if state.tracks or state.marks}
    if not any(states[video].boxes for video in versions):
        raise ArgumentError("there is no box to learn from: draw one first")
    asked = None
    if given["video"] is not None:
        if site.store.video(given["video"]) is None:
            raise LookupError("there is no such video: it may have been deleted")
        asked = {"video": given["video"], "why": given["why"], "why_not": given["why_not"]}
    return None, {"versions": versions, "asked": asked, "steps": given["steps"]}


def gather_teach(site: Site, job: StoredJob) -> dict[str, Any]:
    """Collect what was drawn, at the versions that the job was asked for."""
    videos = []
    for ident, version in job.parameters["versions"].items():
        video = site.store.video(ident)
        if video is None:
            continue
        state = site.annotations.state_at(ident, version)
        told = drawn(state, frames=video.frames)
        if told["present"]:
            label = None if state.label is None else state.label[0]
            videos.append({"clip": str(site.intake.clip(ident)), "label": label, **told})
    asked = job.parameters["asked"]
    if asked is not None:
        video = site.store.video(asked["video"])
        if video is None:
            raise ArgumentError("the video that was asked about was deleted")
        known = {"clip": str(site.intake.clip(video.id)), "name": video.name, "hash": site.store.video_hash(video.id)}
        asked = {**asked, **known}
    return {"videos": videos, "asked": asked, "folder": str(site.taught.clear(job.id)), "base": site.taught.base}


def keep_teach(site: Site, job: StoredJob, outcome: Outcome) -> None:
    """Keep the taught model, and the answers before and after as results."""
    told, report = outcome.document or {}, outcome.value or {}
    asked: dict[str, str] = {}
    question = job.parameters["asked"]
    if question is not None and site.store.video(question["video"]) is not None:
        how = {"why": question["why"], "why_not": question["why_not"], **told["how"]}
        for name, model in (("before", told["before_hash"]), ("after", told["model"]["hash"])):
            asked[name] = key_of("explain", question["video"], model, how)[:32]
            site.store.add_result(asked[name], question["video"], told[name])
    site.taught.add(job.id, report, told["model"], asked)


def drawn(state: State, *, frames: int) -> dict[str, Any]:
    """Sum up what all annotators say of a video: presence, and a tube per attribute that is there.

    present: by most of those who say; a tie counts as there. tubes: on the frames from the first to the last key of
    each annotator, the box around all of one's tracks, and the mean over annotators.
    """
    votes: dict[str, list[bool]] = {}
    for (_, word), value in state.present.items():
        if word != ACTOR:
            votes.setdefault(word, []).append(value == "has")
    present = {word: 2 * sum(given) >= len(given) for word, given in sorted(votes.items())}
    tubes = {}
    for word, there in present.items():
        tube = _mean_tube([track for track in state.tracks.values() if track.attribute == word], frames)
        if there and tube["frames"]:
            tubes[word] = tube
    return {"present": present, "tubes": tubes}


def _mean_tube(tracks: list[Track], frames: int) -> dict[str, Any]:
    by: dict[str, list[Track]] = {}
    for track in tracks:
        by.setdefault(track.annotator, []).append(track)
    found: dict[str, list[Any]] = {"frames": [], "boxes": []}
    looked = sorted({frame for track in tracks for frame in track.span if frame < frames})
    for frame in looked:
        boxes = [box for own in by.values() if (box := around(own, frame)) is not None]
        if boxes:
            found["frames"].append(frame)
            found["boxes"].append([sum(corner) / len(boxes) for corner in zip(*boxes, strict=True)])
    return found
