"""Names of ``dhkappa.resources`` for modules that still import them from here."""

from dhkappa.resources import Progress as Progress
