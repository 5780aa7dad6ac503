"""What is published: predict, combine, save, load. Nothing here sees an output."""

from cloakgp.release.archive import ReleaseFileError
from cloakgp.release.measurement import Measurement, Published
from cloakgp.release.release import Release

__all__ = ["Measurement", "Published", "Release", "ReleaseFileError"]
