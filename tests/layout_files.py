"""A small data set in the layout of docs/data.md, to be broken in one place by each test."""

import shutil

from video_files import make_video

ATTRIBUTES = "class,with ball,jumping,indoor\ndunk,1,1,1\nsurf,0,0,0\nvault,0,1,1\n"
SPLITS = "video,split\nvideos/dunk/a.mp4,train\ndunk/b,test\nsurf/c.mp4,train\nvideos/vault/d,val\n"
BOXES = "video,attribute,frame,x1,y1,x2,y2\ndunk/a,with ball,0,8,6,24,18\ndunk/a,with ball,10,16,12,32,24\n"
VIDEOS = ("dunk/a.mp4", "dunk/b.mp4", "surf/c.mp4", "vault/d.mp4")


def write(folder, name, text):
    """Write one text file of the data set."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def make_dataset(folder, videos=VIDEOS, **files):
    """Write 20-frame videos of 64 x 48 pixels and the CSV files; a file given as None is left out."""
    first = None
    for name in videos:
        path = folder / "videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        first = shutil.copy(first, path) if first else make_video(path)
    texts = {"attributes": ATTRIBUTES, "splits": SPLITS, "boxes": BOXES} | files
    for name, text in texts.items():
        if text is not None:
            write(folder, f"{name}.csv", text)
    return folder
