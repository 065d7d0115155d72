"""Measurements that compile nothing: probing a metric, comparing ways to make one, watching a reward."""
