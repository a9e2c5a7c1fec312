// Command pulumi-resource-kubernetes is Pulumi's own Kubernetes provider. Its schema is not part of the Go package:
// schema.json and terraform-mapping.json are put beside this file before the build, out of the provider's own module.
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
