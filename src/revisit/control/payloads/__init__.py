"""Payloads: a camera path in the form that the loader of a generator takes, and what that loader makes of it.

Each module writes some forms and reads them again from nothing but the files, by the rules of the loader; the reader
tells what is really delivered, which may be coarser than what was meant. To add a form, describe its files in
families.yaml, and write `write_<form>` and `read_<form>`.
"""

from revisit.control.payloads import arrays, documents, words
from revisit.control.payloads.family import Family, LoadedPath, PayloadError, PayloadRequest
from revisit.core.text import read_package_yaml

MODULES = (arrays, documents, words)
FUNCTIONS = {name: value for module in MODULES for name, value in vars(module).items()}
FAMILIES: dict[str, Family] = {
    id: Family(id, FUNCTIONS[f"write_{id}"], FUNCTIONS[f"read_{id}"], **facts)
    for id, facts in read_package_yaml(__name__, "families.yaml").items()
}

__all__ = ["FAMILIES", "Family", "LoadedPath", "PayloadError", "PayloadRequest"]
