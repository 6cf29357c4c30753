"""Property tests here must not fail because a machine is busy."""

from hypothesis import settings

settings.register_profile("protocol", deadline=None)
settings.load_profile("protocol")
