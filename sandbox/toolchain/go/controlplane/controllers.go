package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

const (
	serverReadyWithin = 60 * time.Second
	resync            = 10 * time.Minute
	// How often the garbage collector looks for new resource types: custom resources come and go with their CRDs.
	discoveryEvery = 5 * time.Second
)

// runControllers waits for the API server and runs the controllers until the context ends. Without them a deleted
// namespace stays Terminating, and foreground deletion never ends.
func runControllers(ctx context.Context, kubeconfig string, started time.Time) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	if err := waitForServer(ctx, config); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	say("kube-apiserver ready after %s", time.Since(started).Round(time.Millisecond))
	return startControllers(ctx, config)
}

func waitForServer(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(serverReadyWithin)
	for ctx.Err() == nil {
		body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil && string(body) == "ok" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kube-apiserver not ready after %s: %w", serverReadyWithin, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

func startControllers(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	objects := informers.NewSharedInformerFactory(client, resync)
	metadataObjects := metadatainformer.NewSharedInformerFactory(metadataClient, resync)

	namespaces := namespace.NewNamespaceController(ctx, client, metadataClient,
		client.Discovery().ServerPreferredNamespacedResources, objects.Core().V1().Namespaces(), resync,
		v1.FinalizerKubernetes)
	accounts, err := serviceaccount.NewServiceAccountsController(objects.Core().V1().ServiceAccounts(),
		objects.Core().V1().Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	ignored := map[schema.GroupResource]struct{}{}
	for resource := range garbagecollector.DefaultIgnoredResources() {
		ignored[resource] = struct{}{}
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	informersStarted := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, mapper, ignored,
		informerfactory.NewInformerFactory(objects, metadataObjects), informersStarted)
	if err != nil {
		return err
	}
	objects.Start(ctx.Done())
	metadataObjects.Start(ctx.Done())
	close(informersStarted)

	var running sync.WaitGroup
	running.Go(func() { namespaces.Run(ctx, 4) })
	running.Go(func() { accounts.Run(ctx, 1) })
	running.Go(func() { collector.Run(ctx, 4, 30*time.Second) })
	running.Go(func() { collector.Sync(ctx, client.Discovery(), discoveryEvery) })
	running.Wait()
	return nil
}
