// Command randomschema writes the Pulumi schema of the random provider.
package main

import (
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfgen"

	"rt-inventory/tools/randominfo"
)

func main() { tfgen.Main("random", randominfo.Provider()) }
