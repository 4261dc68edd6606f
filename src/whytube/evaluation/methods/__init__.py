"""Baselines, controls and peers: each a small class that answers a Question with Regions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whytube.checks import check_int, fail, unknown_name
from whytube.evaluation.methods import gradients, perturbations
from whytube.evaluation.methods.baselines import Centre, DetectorBox, TrueBox
from whytube.evaluation.methods.controls import (
    Called,
    RandomAttribute,
    RandomTube,
    RandomVerified,
    Remembered,
    ShuffledAttributes,
)
from whytube.evaluation.methods.counterparts import COUNTERPARTS, Unverified, Verified, available, counterpart
from whytube.evaluation.methods.maps import TUBES, MapMaker, MapMethod, VerifiedMap
from whytube.evaluation.methods.own import load_method
from whytube.evaluation.methods.shuffled_scores import ShuffledScores
from whytube.explainer.explainer import Explainer
from whytube.search.anytime import AREA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.evaluation.judge import TruthMethod
    from whytube.search.verify import Method

__all__ = [
    "CONTROLS",
    "COUNTERPARTS",
    "GROUPS",
    "MAKERS",
    "METHODS",
    "Called",
    "Centre",
    "Chosen",
    "DetectorBox",
    "MapMaker",
    "MapMethod",
    "RandomAttribute",
    "RandomTube",
    "RandomVerified",
    "Remembered",
    "ShuffledAttributes",
    "ShuffledScores",
    "TrueBox",
    "Unverified",
    "Verified",
    "VerifiedMap",
    "available",
    "load_method",
    "make_methods",
]

MAKERS = {maker.name: maker for maker in (*gradients.MAKERS, *perturbations.MAKERS)}
"""Makers of maps, by name."""


@dataclass(frozen=True)
class Chosen:
    """What all methods of an evaluation share.

    seed: of what is left to chance. tubes: how many a verified method tries. area: share of the clip's volume that a
    tube covers, at most. makers: of maps, by name; a method and its verified form have the same one.
    """

    seed: int = 0
    tubes: int = TUBES
    area: float = AREA
    makers: dict[str, MapMaker] = field(
        default_factory=lambda: {name: one.remembered() for name, one in MAKERS.items()}
    )

    def one_shot(self, name: str, classifier: VideoClassifier, source: Source) -> MapMethod:
        """Make the best tube of a map a method."""
        return MapMethod(classifier, self.makers[name], source.table, self.area, self.seed)

    def verified(self, name: str, classifier: VideoClassifier, source: Source) -> VerifiedMap:
        """Make the best of several tubes of a map a method."""
        return VerifiedMap(classifier, self.makers[name], source.table, self.area, self.seed, self.tubes)


METHODS: dict[str, Callable[[VideoClassifier, Source, Chosen], Method | TruthMethod]] = {
    "centre": lambda _, source, chosen: Centre(source.attribute_names, seed=chosen.seed),
    "random-tube": lambda _, source, chosen: RandomTube(source.table, seed=chosen.seed),
    "random-verified": lambda classifier, source, chosen: RandomVerified(
        classifier, source.table, tubes=chosen.tubes, area=chosen.area, seed=chosen.seed
    ),
    "detector-box": lambda _, __, chosen: DetectorBox(seed=chosen.seed),
    "true-box": lambda _, __, chosen: TrueBox(seed=chosen.seed),
    **{name: lambda *made, name=name: made[2].one_shot(name, *made[:2]) for name in MAKERS},
    **{f"{name}-verified": lambda *made, name=name: made[2].verified(name, *made[:2]) for name in MAKERS},
}
"""Methods that need no training, by name."""

CONTROLS: dict[str, Callable[[Method, VideoClassifier, Source, Chosen], Method]] = {
    "random-tube": lambda like, _, source, chosen: RandomTube(source.table, like=like, seed=chosen.seed),
    "random-attribute": lambda like, _, source, chosen: RandomAttribute(like, source.table, seed=chosen.seed),
    "shuffled-attributes": lambda like, _, source, chosen: ShuffledAttributes(
        like, len(source.attribute_names), seed=chosen.seed
    ),
    "shuffled-scores": lambda like, classifier, _, chosen: ShuffledScores(like, classifier, seed=chosen.seed),
    "ours-regions": lambda like, *_: _explainer(like, "ours-regions").regions(),
    "predicted": lambda like, *_: _explainer(like, "predicted").predicted(),
}
"""What remains of a method once its tube or word is left to chance, by name; first the method that is controlled."""

GROUPS = {"all-peers": tuple(name for maker in MAKERS for name in (maker, f"{maker}-verified"))}
"""Names that stand for several methods."""


def _explainer(like: Method, name: str) -> Explainer:
    """Return the explainer behind a method, of which `name` is another form."""
    own = like.method if isinstance(like, Remembered) else like
    if not isinstance(own, Explainer):
        raise fail(name, "beside an explainer with words", f"{like.name!r}, which has none")
    return own


def make_methods(
    names: Iterable[str],
    classifier: VideoClassifier,
    source: Source,
    *,
    like: Method | None = None,
    explainers: Mapping[str, Explainer] | None = None,
    seed: int = 0,
    tubes: int = TUBES,
    area: float = AREA,
) -> list[Method | TruthMethod]:
    """Make methods by name, or by that of a group; with `like`, also the controls of that method.

    explainers: by name, those of which counterparts can be made, see COUNTERPARTS; `like` is one of them.
    tubes: how many a verified method tries for a clip and negative class. area: share of the clip's volume that a tube
    of a map covers, at most.
    """
    controls = {} if like is None else CONTROLS
    wanted = list(dict.fromkeys(one for name in names for one in GROUPS.get(name, (name,))))
    for name in wanted:
        if name not in METHODS and name not in controls and name not in COUNTERPARTS:
            raise unknown_name("method", name, {**METHODS, **controls, **GROUPS, **COUNTERPARTS})
    chosen = Chosen(seed, check_int(tubes, "tubes", 1), area)
    own = like.method if isinstance(like, Remembered) else like
    known = ({own.name: own} if isinstance(own, Explainer) else {}) | dict(explainers or {})
    response = next((one.response for one in known.values() if one.response is not None), None)

    def make(name: str) -> Method | TruthMethod:
        if name in COUNTERPARTS:
            return counterpart(name, known, response)
        if like is not None and name in controls:
            return controls[name](like, classifier, source, chosen)
        return METHODS[name](classifier, source, chosen)

    return [make(name) for name in wanted]
