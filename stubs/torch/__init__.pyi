# What types are checked against: torch itself need not be there, and its own types would take a minute.
from typing import Any

def __getattr__(name: str) -> Any: ...
