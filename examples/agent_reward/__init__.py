"""A service agent, optimised by a reward that can be verified and by one that is induced from ratings."""
