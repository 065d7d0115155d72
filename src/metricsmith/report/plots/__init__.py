"""The plots of a report as plain SVG: one file per plot, drawn for a phone and scaled up."""
