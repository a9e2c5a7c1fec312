// Command pulumi-resource-random is the random provider behind Pulumi's bridge. randomschema has written the schema.json
// beside this file.
package main

import (
	"context"
	_ "embed"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"

	"rt-inventory/tools/randominfo"
)

//go:embed schema.json
var schema []byte

func main() {
	tfbridge.Main(context.Background(), "random", randominfo.Provider(),
		tfbridge.ProviderMetadata{PackageSchema: schema, BridgeMetadata: randominfo.Metadata})
}
