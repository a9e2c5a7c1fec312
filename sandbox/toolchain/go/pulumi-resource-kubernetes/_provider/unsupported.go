// This file replaces the parts of the provider's package that need Helm, Kustomize and the Go SDK of all Kubernetes
// types, which together compile for longer than all the rest of the provider. The build copies the provider's module,
// removes those parts and puts this file in their place; see provider_source.py. Everything that needs them fails
// with an error that names it.

package provider

import (
	"context"
	"fmt"

	"github.com/golang/protobuf/ptypes/empty"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/clients"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/host"
	providerresource "github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const helmRelease = "kubernetes:helm.sh/v3:Release"

func unsupported(token string) error {
	return fmt.Errorf("%s: not built into the sandbox's Kubernetes provider, which has no Helm, no Kustomize and no "+
		"component resources. Declare the resources themselves, or run Pulumi's published provider", token)
}

// resourceProviders contains no component: Construct refuses all of them.
var resourceProviders map[string]providerresource.ResourceProviderFactory

// Construct refuses ConfigFile and ConfigGroup v2, Chart v4 and Directory v2.
func (k *kubeProvider) Construct(
	_ context.Context, request *pulumirpc.ConstructRequest,
) (*pulumirpc.ConstructResponse, error) {
	return nil, unsupported(request.GetType())
}

// HelmChartOpts has the one field that Invoke reads.
type HelmChartOpts struct {
	Namespace string `json:"namespace,omitempty"`
}

func helmTemplate(host.HostClient, HelmChartOpts, *clients.DynamicClientSet) (string, error) {
	return "", unsupported(invokeHelmTemplate)
}

func kustomizeDirectory(context.Context, string, *clients.DynamicClientSet) ([]any, error) {
	return nil, unsupported(invokeKustomize)
}

func isHelmRelease(urn resource.URN) bool { return urn.Type() == helmRelease }

// helmReleases refuses every operation on Helm's Release.
type helmReleases struct{}

func newHelmReleaseProvider(
	host.HostClient, *cancellationContext, *api.Config, *clientcmd.ConfigOverrides, *rest.Config,
	*clients.DynamicClientSet, string, string, bool, string, string, string, string, bool, string,
) (customResourceProvider, error) {
	return helmReleases{}, nil
}

func (helmReleases) Check(context.Context, *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return nil, unsupported(helmRelease)
}

func (helmReleases) Diff(context.Context, *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	return nil, unsupported(helmRelease)
}

func (helmReleases) Create(context.Context, *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	return nil, unsupported(helmRelease)
}

func (helmReleases) Read(context.Context, *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	return nil, unsupported(helmRelease)
}

func (helmReleases) Update(context.Context, *pulumirpc.UpdateRequest) (*pulumirpc.UpdateResponse, error) {
	return nil, unsupported(helmRelease)
}

func (helmReleases) Delete(context.Context, *pulumirpc.DeleteRequest) (*empty.Empty, error) {
	return nil, unsupported(helmRelease)
}
