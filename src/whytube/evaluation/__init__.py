"""What explanations are worth: metrics, baselines and peers behind one protocol, the suite that runs them.

metrics.py     one case at a time: negative class accuracy, concept accuracy, tube area, ...
methods/       baselines, controls and peers; anything that is a `Method` of `whytube.search.verify` can join them
rules.py       what every answer must keep: shapes, the frame, the area
runs.py        what a method asks of the classifier, counted
judge.py       mask regions, run the classifier again, and lay out all figures of a batch
curves.py      insertion and deletion over the regions of an answer
record.py      a short record of every clip
suite.py       evaluate(): methods x clips x negative classes x fills -> Results
results.py     Results: typed figures of every method, saved as JSON
summary.py     figures of many cases -> means, curves, intervals by bootstrap over clips
compare.py     differences between methods on the same clips, with intervals and p-values
"""

from whytube.evaluation.methods import METHODS, make_methods
from whytube.evaluation.results import Results
from whytube.evaluation.suite import evaluate

__all__ = ["METHODS", "Results", "evaluate", "make_methods"]
