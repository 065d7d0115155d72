"""Candidates in one call: generated, found and retrieved."""

from __future__ import annotations

from dataclasses import replace

from metricsmith.optimizers.candidates import generate_candidates, retrieve_candidates


def gather(rows, task, options, sources, recommender=None):
    options = replace(options, recommender=recommender)
    return retrieve_candidates(generate_candidates(rows, task, options, sources), task, options)
