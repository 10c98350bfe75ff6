"""Reports: tables with intervals, differences, costs, the papers' numbers beside, plots."""
