"""What values the columns of a table may have: declared in public, never read from the data."""

from discreet.synthetic.domain.calendar_parts import Calendar
from discreet.synthetic.domain.column_domains import Bins, ColumnDomain, Keys
from discreet.synthetic.domain.frame_columns import FrameKind
from discreet.synthetic.domain.table_domain import Domain
from discreet.synthetic.domain.text_keys import FoundKeys, UnknownKeys

__all__ = ["Bins", "Calendar", "ColumnDomain", "Domain", "FoundKeys", "FrameKind", "Keys", "UnknownKeys"]
