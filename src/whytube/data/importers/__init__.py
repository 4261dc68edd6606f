"""Data sets as people have them after unpacking, indexed in the layout of docs/data.md; no video is copied or opened.

index.py            what all importers share: finding the listed videos, holding some out, writing the folder
mat.py              MATLAB files, for those who have scipy
ucf101_24.py        UCF101's videos and split lists, the corrected boxes of Singh et al.
olympic_sports.py   .seq files and the user's own lists
jhmdb.py            the official folders, or one pack with actor and part boxes
"""

from whytube.data.importers.index import Imported
from whytube.data.importers.jhmdb import import_jhmdb
from whytube.data.importers.olympic_sports import import_olympic_sports
from whytube.data.importers.ucf101_24 import import_ucf101_24

__all__ = ["Imported", "import_jhmdb", "import_olympic_sports", "import_ucf101_24"]
