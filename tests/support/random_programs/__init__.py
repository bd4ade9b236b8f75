"""Random programs of the kernel language, and what they mean."""

from random_programs.model import execute
from random_programs.programs import HOST, LONG, SHORT, Generated, programs

__all__ = ["HOST", "LONG", "SHORT", "Generated", "execute", "programs"]
