"""Reports: tables with intervals, differences, costs and the papers' numbers; plots."""
