"""The version, in one place.

Saved files and the signature line carry it. It has a file of its own, because reading it from the package's root would
be an import upward.
"""

__version__ = "0.1.0"
