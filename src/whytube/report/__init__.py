"""What a person looks at: overlay videos, pictures and the report; the only place that draws."""

from whytube.report.html import notebook_html, source_problem, write_report
from whytube.report.masked import write_masked_video
from whytube.report.overlay import contact_sheet, overlay_frames, overlay_video, read_as

__all__ = [
    "contact_sheet",
    "notebook_html",
    "overlay_frames",
    "overlay_video",
    "read_as",
    "source_problem",
    "write_masked_video",
    "write_report",
]
