// Package bridgeshim hands out the random provider. Its module is named inside that provider's path, so that Go lets
// it import the provider's internal package.
package bridgeshim

import (
	"github.com/hashicorp/terraform-plugin-framework/provider"

	random "github.com/terraform-providers/terraform-provider-random/internal/provider"
)

// New returns the Terraform provider.
func New() provider.Provider { return random.New() }
