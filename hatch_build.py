"""Compiles ``rmqtools/compiled`` when a wheel is built; without a C compiler the wheel is pure Python.

The module needs only CPython's stable ABI of 3.11, so one wheel per platform serves all later versions.
"""

import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FOLDER = "rmqtools/compiled"
MODULE = "rmqtools.compiled._twins"


def compile_twins(root: Path, *, in_place: bool, flags: Sequence[str] = ()) -> Path:
    """Compile the module, for use in this checkout or into ``.build``; return the file.

    ``flags`` go to the compiler and to the linker.

    Raises:
        Exception: as of setuptools: no compiler, no headers of Python, or the compiler's error.
    """
    from setuptools import Distribution, Extension  # only needed here, and slow
    from setuptools.command.build_ext import build_ext

    sources = sorted(str(path.relative_to(root)) for path in (root / FOLDER).glob("*.c"))
    # No paths of this machine: equal bytes everywhere. No names that calls between the files would look up.
    plain = () if os.name == "nt" else ("-g0", "-fvisibility=hidden")
    module = Extension(
        MODULE,
        sources,
        py_limited_api=True,
        extra_compile_args=[*(flags or plain)],
        extra_link_args=[*flags],
    )
    command = build_ext(Distribution({"name": "rmqtools", "ext_modules": [module]}))
    command.inplace, command.force = in_place, True
    command.build_temp = command.build_lib = str(root / ".build" / "compiled")
    command.ensure_finalized()
    before = Path.cwd()
    os.chdir(root)
    try:
        command.run()
        return root / command.get_ext_fullpath(MODULE)
    finally:
        os.chdir(before)


def wheel_tag() -> str | None:
    """Return the tag of a wheel that this interpreter compiles; None: it cannot use the module.

    Free-threaded builds and other implementations of Python have no stable ABI of 3.11.
    """
    stable = [tag.platform for tag in sys_tags() if (tag.interpreter, tag.abi) == ("cp311", "abi3")]
    if not stable:
        return None
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    # On Linux get_platform has the kernel's architecture, also for an interpreter of 32 bits.
    return f"cp311-abi3-{next((each for each in stable if each.startswith('linux_')), platform)}"


class CompiledTwins(BuildHookInterface[Any]):
    """Adds the compiled module to a wheel; compiles it in place for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; if that fails, say so and build a wheel without it."""
        if self.target_name != "wheel" or os.environ.get("RMQTOOLS_PURE_PYTHON", "0") not in ("", "0"):
            return
        if (tag := wheel_tag()) is None:
            self.app.display_warning(
                "rmqtools is built without its compiled module: it needs CPython with the GIL"
            )
            return
        try:
            built = compile_twins(Path(self.root), in_place=version == "editable")
        except Exception as error:  # noqa: BLE001 - whatever keeps it from compiling: Python can do all it does
            self.app.display_warning(f"rmqtools is built without its compiled module: {error}")
            return
        if version == "editable":
            return
        build_data["force_include"][str(built)] = f"{FOLDER}/{built.name}"
        build_data["pure_python"] = False
        build_data["tag"] = tag
