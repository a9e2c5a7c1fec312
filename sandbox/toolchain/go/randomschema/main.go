// Command randomschema writes the Pulumi schema of the random provider, which is committed beside the provider's main
// package. With another version of the provider, in sandbox/toolchain/go:
//
//	go run ./randomschema schema --out pulumi-resource-random --skip-docs --skip-examples
package main

import (
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfgen"

	"rt-inventory/tools/randominfo"
)

func main() { tfgen.Main("random", randominfo.Provider()) }
