"""What explanations are worth: metrics, baselines and peers behind one protocol, the suite that runs them.

metrics.py     one case at a time: negative class accuracy, concept accuracy, tube area, ...
methods/       baselines, controls and peers; anything that is a `Method` of `whytube.search.question` can join them
judge.py       mask regions, run the classifier again, and lay out all figures of a batch
record.py      a short record of every clip
suite.py       evaluate(): methods x clips x negative classes x fills -> one dictionary
summary.py     figures of many cases -> means, intervals, curves
intervals.py   bootstrap over clips, results over seeds
"""

from whytube.evaluation.intervals import over_seeds
from whytube.evaluation.methods import METHODS, make_methods
from whytube.evaluation.suite import evaluate

__all__ = ["METHODS", "evaluate", "make_methods", "over_seeds"]
