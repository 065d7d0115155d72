"""Tuning a judge: a search that DSPy's optimisers do, and a choice by the statistic that is wanted."""
