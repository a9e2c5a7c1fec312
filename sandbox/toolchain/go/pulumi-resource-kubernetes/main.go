// Command pulumi-resource-kubernetes is Pulumi's own Kubernetes provider without Helm, Kustomize and components. Before
// the build, provider_source.py copies the provider's module, and its schema.json and terraform-mapping.json beside this
// file, which are not part of the Go package.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// version is set by the linker.
var version string

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var mapping []byte

func main() { provider.Serve("kubernetes", version, schema, mapping) }
