// The modules that carry the CRDs of the Prometheus Operator and of KEDA. Only their files are read, so nothing that
// they need is listed.
module rt-inventory/monitoring

go 1.26.0

require (
	github.com/kedacore/keda/v2 v2.18.1
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
