"""Files written in places where others may plant links: a link is removed or refused, never followed."""

import os
from pathlib import Path
from typing import IO

PRIVATE = 0o600
"""Mode of a file that only its owner may read."""


def open_new(path: Path, *, mode: int = 0o666) -> IO[str]:
    """Open a file of UTF-8 text for writing, in place of whatever has this name.

    Args:
        path: the file. A link with this name is removed; its target stays as it is.
        mode: permissions of the new file, less the umask.

    Raises:
        OSError: it cannot be made.
    """
    return os.fdopen(open_new_descriptor(path, mode=mode), "w", encoding="utf-8")


def open_new_descriptor(path: Path, *, mode: int = 0o666) -> int:
    """As :func:`open_new`; return the file's descriptor, for reading and writing."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def replace_text(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write a file in one step: readers see the old text or the new one.

    A link with this name is replaced by the file. The new text stands beside it for a moment, as ``.part``.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(path.name + ".part")
    with open_new(part, mode=mode) as file:
        file.write(text)
    part.replace(path)


def make_private(folder: Path) -> None:
    """Create a folder that only its owner may enter; restrict an existing one.

    Raises:
        OSError: it cannot be made, it is a link, or it belongs to another user.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if (owner := os.fstat(descriptor).st_uid) != os.geteuid():  # root could change it all the same
            raise PermissionError(f"{folder} belongs to another user ({owner}): name another folder")
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)
