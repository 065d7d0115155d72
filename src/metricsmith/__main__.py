"""``python -m metricsmith`` is the command ``metricsmith``."""

from metricsmith.cli import main

if __name__ == "__main__":
    main()
