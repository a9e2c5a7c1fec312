// The module that carries OLM's CRDs in its crds/ folder. Only its files are read, so nothing it needs is listed.
module rt-inventory/olm

go 1.26.0

require github.com/operator-framework/api v0.30.0
