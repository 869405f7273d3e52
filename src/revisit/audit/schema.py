"""A name for the contents of the files that the audit writes, and for parts of them."""

from __future__ import annotations

from typing import Any

Content = dict[str, Any]  # of audit.json, horizon.json, sweep.json, steadiness.json, real.json and benchmarks.json
