"""Networks on this machine: one loader, one batcher, and one file for each way in which a metric uses a network."""
