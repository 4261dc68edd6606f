from pydantic import TypeAdapter

from whytube.web.annotation_actions import Action
from whytube.web.annotation_state import Entry, fold
from whytube.web.suggestions import COUNT, PER_VIDEO, drawn_videos, suggest

ACTIONS = TypeAdapter(Action)


def said(*actions):
    return fold([Entry(n, "ann", 0.0, ACTIONS.validate_python(action)) for n, action in enumerate(actions, 1)])


def drawn(word):
    return {"type": "set_key", "attribute": word, "frame": 0, "box": [0, 0, 9, 9]}


def mark(word, value="has"):
    return {"type": "mark", "attribute": word, "value": value}


def draft(word, fit, likely=True):
    return {"attribute": word, "fit": fit, "likely": likely, "keys": []}


def told(found):
    return [(one.video, one.attribute) for one in found]


def test_words_with_fewest_boxes_come_first_and_then_the_least_sure():
    drafts = {"v1": ("a", [draft("cat", 0.9), draft("dog", 0.1)]), "v2": ("a", [draft("cat", 0.4)])}
    found = suggest(["v1", "v2"], {}, drafts)
    assert told(found) == [("v1", "dog"), ("v2", "cat")]
    assert found[0].why == "no box of it yet, and the model is 10% sure where it is"
    states = {"v1": said(drawn("dog"))}
    found = suggest(["v1", "v2"], states, drafts | {"v2": ("a", [draft("cat", 0.4), draft("dog", 0.2)])})
    assert told(found) == [("v2", "cat"), ("v2", "dog")]
    assert found[1].why == "drawn in 1 video so far, and the model is 20% sure where it is"
    assert drawn_videos(states) == {"dog": 1}


def test_what_a_video_lacks_is_not_proposed_and_what_it_has_is():
    drafts = {"v": ("a", [draft("cat", 0.5), draft("dog", 0.5, likely=False)])}
    assert told(suggest(["v"], {"v": said(mark("cat", "has_not"))}, drafts)) == []
    assert told(suggest(["v"], {"v": said(mark("dog"), mark("new word"))}, drafts)) == [("v", "new word"), ("v", "cat")]
    assert suggest(["v"], {"v": said(mark("new word"))}, {})[0].why.endswith("the model has no idea where it is")


def test_a_list_is_short_and_of_many_words_and_videos():
    drafts = {f"v{n}": ("a", [draft(f"word {m}", 0.5) for m in range(9)]) for n in range(9)}
    found = suggest(list(drafts), {}, drafts)
    assert len(found) == COUNT == len({one.attribute for one in found})
    assert max([one.video for one in found].count(video) for video in drafts) == PER_VIDEO
