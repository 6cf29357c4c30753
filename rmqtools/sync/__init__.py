"""The blocking face; :mod:`rmqtools` has its names. Its methods run those of :mod:`rmqtools.aio`."""
