"""The report of judges held against people who may rightly disagree."""
