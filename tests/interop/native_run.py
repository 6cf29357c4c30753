"""Runs a program that imports ``rocketmq`` on an installed native client.

    python native_run.py PACKAGES LIBRARY PROGRAM ARGUMENT...

PACKAGES is the directory that the client was installed into, LIBRARY the shared library it shall load.
"""

import ctypes.util
import runpy
import sys

packages, library, program, *arguments = sys.argv[1:]
sys.path.insert(0, packages)
if library:
    ctypes.util.find_library = lambda name: library
sys.argv = [program, *arguments]
runpy.run_path(program, run_name="__main__")
