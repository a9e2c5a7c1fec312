// Package randominfo maps the Terraform random provider to Pulumi's tokens, as the published pulumi-random does.
package randominfo

import (
	"context"
	"errors"
	"strings"

	pf "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/terraform-providers/terraform-provider-random/bridgeshim"
)

// Metadata is the bridge's record of renamed tokens: there are none.
var Metadata = []byte("{}")

// Version is set by the linker.
var Version string

// Provider describes the provider with one Pulumi resource for each Terraform resource.
func Provider() tfbridge.ProviderInfo {
	info := tfbridge.ProviderInfo{
		P:            pf.ShimProvider(bridgeshim.New()),
		Name:         "random",
		Version:      Version,
		MetadataInfo: tfbridge.NewProviderMetadata(Metadata),
		Resources:    map[string]*tfbridge.ResourceInfo{},
	}
	info.P.ResourcesMap().Range(func(name string, _ shim.Resource) bool {
		info.Resources[name] = &tfbridge.ResourceInfo{Tok: token(name)}
		return true
	})
	// The one resource without an "id" of its own.
	info.Resources["random_bytes"].ComputeID = bytesID
	return info
}

// token is random:index/randomPassword:RandomPassword for random_password.
func token(name string) tokens.Type {
	pascal := ""
	for _, word := range strings.Split(name, "_") {
		pascal += strings.ToUpper(word[:1]) + word[1:]
	}
	return tokens.Type("random:index/" + strings.ToLower(pascal[:1]) + pascal[1:] + ":" + pascal)
}

func bytesID(_ context.Context, state resource.PropertyMap) (resource.ID, error) {
	value := state["base64"]
	if value.IsSecret() {
		value = value.SecretValue().Element
	}
	if !value.IsString() {
		return "", errors.New("random_bytes: base64 must be a string")
	}
	return resource.ID(value.StringValue()), nil
}
