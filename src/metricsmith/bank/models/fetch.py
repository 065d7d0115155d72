"""Published weights into this machine's cache: only when asked for, checked by their hash, and never run."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from metricsmith.bank.models.convert import convert
from metricsmith.bank.models.spec import INSTALL, ModelSpec
from metricsmith.errors import ModelFailure, NeedsError
from metricsmith.metric import content_hash

__all__ = ["Download", "RemoteFile", "fetch", "find_files"]

# Config and tokenizer, and nothing that is code; files in a repository's folders belong to other frameworks.
TEXTS = ("*.json", "*.txt", "*.model", "*.jinja")
SECONDS = 30.0  # without a byte, after which a connection counts as lost


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at the hub, or at an address of its own.

    Parameters
    ----------
    id, revision, name : str
        The hub's repository and commit, and the file in it; or the address, and the server's mark of its version.
    size : int
        Bytes.
    digest : str
        Its sha256 (64 hex digits) or, of small files, git's hash (40); empty where none is published.
    """

    id: str
    revision: str
    name: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Download:
    """The files that a metric's weights are made of, in the order in which they are fetched: pickles first."""

    spec: ModelSpec
    revision: str
    files: tuple[RemoteFile, ...]

    @property
    def missing(self) -> list[RemoteFile]:
        """The files that are not on this machine."""
        return [file for file in self.files if not _place(self.spec, file).exists()]


def find_files(spec: ModelSpec) -> Download:
    """Ask the hub for the files of a spec's weights; nothing is fetched.

    Raises
    ------
    ModelFailure
        If the hub cannot be reached, refuses, or has no weights there.
    NeedsError
        If the weights must be converted and the extra for it is not installed.
    """
    with _plain_words(spec):
        if "://" in spec.id:
            return _at_address(spec)
        revision, there = _listed(spec.id, spec.revision)
        safe = [name for name in there if fnmatch(name, "*.safetensors") and "/" not in name]
        pickled = [name for name, _ in spec.pickles]
        if not safe and not pickled and not spec.file:
            pickled = [name for name in there if name == "pytorch_model.bin"]
        texts = _listed(spec.base, "main")[1] if spec.base else there
        wanted = [spec.file] if spec.file else [*pickled, *safe]
        if not wanted or (gone := [name for name in wanted if name not in there]):
            raise ModelFailure(
                f"{spec.name}: {spec.id}, revision {revision}, has no {gone[0] if wanted else 'weights'}; "
                "a newer version of metricsmith may know where they are"
            )
    done = _place(spec, RemoteFile(spec.id, revision, "", 0, ""))
    left = [name for name in wanted if name not in pickled or not (done / _converted_name(name)).exists()]
    if any(name in pickled for name in left) and not (find_spec("torch") and find_spec("safetensors")):
        raise NeedsError(f"{spec.name}: its weights are published as a pickle; to convert them {INSTALL}")
    files = [there[name] for name in left]
    if not spec.file:
        files += [file for name, file in texts.items() if "/" not in name and any(fnmatch(name, one) for one in TEXTS)]
    return Download(spec, revision, tuple(files))


def fetch(download: Download) -> Path:
    """Fetch what is missing, check all, convert pickles, and make it the weights of the spec's revision.

    What was fetched before a cut is kept, and the next call goes on from there. A revision becomes visible to others
    with its last file. A pickle is deleted once it is converted, unless it lay in the cache before: nobody needs it.

    Returns
    -------
    Path
        The folder of the weights.

    Raises
    ------
    ModelFailure
        If the hub cannot be reached or refuses, or a file is another than the hub says; such a file is deleted.
    NeedsError
        If a pickle holds anything but weights; it is deleted, and nothing of it was run.
    """
    spec = download.spec
    prefixes = dict(spec.pickles)
    folder = _place(spec, RemoteFile(spec.id, download.revision, "", 0, ""))
    with _plain_words(spec):
        for file in download.files:
            found_before = _place(spec, file).exists()
            path = _fetched(spec, file)
            if not spec.file and file.name.endswith((".bin", ".pt", ".ckpt")):
                try:
                    convert(path, folder / _converted_name(file.name), prefixes.get(file.name, ""))
                finally:
                    if not found_before:
                        _delete(path)
            elif file.id == spec.base:
                shutil.copyfile(path, folder / file.name)
        if "://" not in spec.id and spec.revision != download.revision:
            reference = folder.parents[1] / "refs" / spec.revision
            reference.parent.mkdir(parents=True, exist_ok=True)
            reference.write_text(download.revision, "utf-8")
    return spec.location()


def _repository(spec: ModelSpec, name: str) -> Path:
    return spec.cache() / f"models--{name.replace('/', '--')}"


def _place(spec: ModelSpec, file: RemoteFile) -> Path:
    """The path of a file in the hub's cache; files with an address lie in a folder of their own there."""
    if "://" in file.id:
        return spec.cache() / "metricsmith" / file.name
    return _repository(spec, file.id) / "snapshots" / file.revision / file.name


def _converted_name(pickled: str) -> str:
    """``model.safetensors`` for ``pytorch_model.bin``, and ``gate.safetensors`` for ``checkpoints/gate.pt``."""
    return f"{Path(pickled).stem.removeprefix('pytorch_')}.safetensors"


def _endpoint() -> str:
    from huggingface_hub.constants import ENDPOINT

    return os.environ.get("HF_ENDPOINT") or ENDPOINT


def _listed(name: str, revision: str) -> tuple[str, dict[str, RemoteFile]]:
    """The commit of a revision, and its files by name."""
    from huggingface_hub import HfApi

    info = HfApi(endpoint=_endpoint()).model_info(name, revision=revision, files_metadata=True, timeout=SECONDS)
    commit = str(info.sha)
    if not re.fullmatch("[0-9a-f]{40}", commit):  # it becomes a folder's name
        raise ModelFailure(f"{name}: {_endpoint()} names the commit {commit!r:.60}, which is none; nothing was fetched")
    return commit, {
        one.rfilename: RemoteFile(
            name, commit, one.rfilename, one.size or 0, one.lfs.sha256 if one.lfs else one.blob_id or ""
        )
        for one in sorted(info.siblings or (), key=lambda one: str(one.rfilename))
    }


def _at_address(spec: ModelSpec) -> Download:
    import httpx

    address = f"{spec.id}/{spec.file}"
    answer = httpx.head(address, follow_redirects=True, timeout=SECONDS).raise_for_status()
    if answer.headers.get("Content-Type", "").startswith("text/"):
        raise ModelFailure(f"{spec.name}: {address} answers with a page and not with weights; nothing was fetched")
    size = int(answer.headers.get("Content-Length", 0))
    version = content_hash(size, answer.headers.get("ETag"), answer.headers.get("Last-Modified"))[:12]
    return Download(spec, version, (RemoteFile(address, version, spec.file, size, spec.weights),))


def _fetched(spec: ModelSpec, file: RemoteFile) -> Path:
    """The path of a file that is here and has its hash; one that has another is deleted."""
    if "://" in file.id:
        path = _from_address(file, _place(spec, file))
    else:
        from huggingface_hub import hf_hub_download

        # The library compares sizes alone, and takes a blob that it finds for what its name says.
        path = Path(
            hf_hub_download(file.id, file.name, revision=file.revision, cache_dir=spec.cache(), endpoint=_endpoint())
        )
    if file.digest and (found := _digest(path, len(file.digest))) != file.digest:
        _delete(path)
        raise ModelFailure(
            f"{spec.name}: {file.name} arrived with hash {found}, {file.id} says {file.digest}; it was deleted and "
            "nothing was read from it: fetch it again, or by another network"
        )
    return path


def _from_address(file: RemoteFile, path: Path) -> Path:
    """Fetch a file, going on where an earlier call for the same version of it was cut."""
    import httpx
    from tqdm import tqdm

    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{file.revision}.incomplete")
    start = part.stat().st_size if part.exists() else 0
    if start < file.size or not file.size:
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with (
            httpx.stream("GET", file.id, headers=headers, follow_redirects=True, timeout=SECONDS) as answer,
            tqdm(desc=file.name, initial=start, total=file.size or None, unit="B", unit_scale=True) as progress,
        ):
            answer.raise_for_status()
            with part.open("ab" if answer.status_code == httpx.codes.PARTIAL_CONTENT else "wb") as target:
                for chunk in answer.iter_bytes():
                    target.write(chunk)
                    progress.update(len(chunk))
    if file.size and (found := part.stat().st_size) != file.size:
        part.unlink()
        raise ModelFailure(f"{file.id} arrived with {found} bytes of {file.size}; it was deleted: fetch it again")
    part.replace(path)
    return path


def _digest(path: Path, digits: int) -> str:
    """The sha256 of a file, or the 40 digits by which git knows it."""
    if digits == 64:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def _delete(path: Path) -> None:
    """Delete a file of the cache with the blob that it leads to, and the folders that are empty without it."""
    blob = path.resolve()
    path.unlink(missing_ok=True)
    blob.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()
        path.parents[1].rmdir()


@contextmanager
def _plain_words(spec: ModelSpec) -> Iterator[None]:
    """Say in one sentence why something could not be fetched; what has arrived stays for the next call."""
    import httpx
    import requests
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    unreachable: tuple[Any, ...] = (requests.ConnectionError, requests.Timeout, LocalEntryNotFoundError)
    try:
        yield
    except (OSError, httpx.HTTPError) as problem:
        where = spec.id if "://" in spec.id else f"{spec.id} at {_endpoint()}"
        if isinstance(problem, OfflineModeIsEnabled) or isinstance(problem.__cause__, OfflineModeIsEnabled):
            reason = "HF_HUB_OFFLINE forbids it: unset it"
        elif isinstance(problem, (*unreachable, httpx.TransportError)):
            reason = "no connection, or it was cut"
        else:
            reason = " ".join(str(problem).split())
        raise ModelFailure(
            f"{spec.name}: {where} could not be fetched: {reason}; the same command goes on from what is here"
        ) from problem
