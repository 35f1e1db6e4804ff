"""What archlang shows: pictures of graphs, inspections of a model, and reports and tables of runs."""
