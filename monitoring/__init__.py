"""Monitoring of the stacks: exporter rules, scraping, alerts and dashboards, as data that the components ship."""
