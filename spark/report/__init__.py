"""What a run leaves behind: report.json, report.html, junit.xml, metrics.prom."""
