"""What watches the stacks: rules of the JMX exporter, the catalogue of metrics, alerts and dashboards. No Pulumi."""
