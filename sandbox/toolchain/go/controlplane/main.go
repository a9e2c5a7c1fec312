// Command controlplane is a Kubernetes control plane in one process: etcd, kube-apiserver and the namespace,
// garbage-collector and service-account controllers. Nothing is scheduled and no container runs.
//
//	controlplane --data-dir DIR --kubeconfig FILE -- <kube-apiserver flags>
//
// The kubeconfig is the one the controllers use. etcd listens on unix sockets inside the data folder, which only the
// user who started it may enter. Logs go to standard error. On SIGTERM or SIGINT the controllers stop first: their open
// watches would hold the API server for a minute.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

const (
	controllersStopWithin = 2 * time.Second
	serverStopsWithin     = 4 * time.Second
)

type settings struct {
	dataDir, kubeconfig string
	apiserverFlags      []string
}

func parse(arguments []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	flags.StringVar(&s.dataDir, "data-dir", "", "folder of etcd's data and sockets (required)")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig of the controllers (required)")
	_ = flags.Int("etcd-client-port", 0, "unused: etcd listens on unix sockets")
	_ = flags.Int("etcd-peer-port", 0, "unused: etcd listens on unix sockets")
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if s.dataDir == "" || s.kubeconfig == "" {
		return s, fmt.Errorf("controlplane: --data-dir and --kubeconfig must be given")
	}
	s.apiserverFlags = flags.Args()
	return s, nil
}

func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "controlplane: "+format+"\n", values...)
}

func main() {
	s, err := parse(os.Args[1:])
	if err != nil {
		say("%v", err)
		os.Exit(2)
	}
	os.Exit(run(s))
}

func run(s settings) int {
	started := time.Now()
	etcd, err := startEtcd(s.dataDir)
	if err != nil {
		say("etcd did not start: %v", err)
		return 1
	}
	defer etcd.close()
	say("etcd ready after %s", time.Since(started).Round(time.Millisecond))

	command := app.NewAPIServerCommand()
	// With retry-after the server closes what is still open 2 seconds after the last request, not after a minute.
	fixed := []string{"--etcd-servers=" + etcd.endpoint, "--shutdown-send-retry-after=true"}
	command.SetArgs(append(fixed, s.apiserverFlags...))
	// The command has taken the signals; take them back, because the order of stopping matters.
	signal.Reset(syscall.SIGTERM, syscall.SIGINT)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- runControllers(ctx, s.kubeconfig, started) }()
	exit := make(chan int, 1)
	go func() { exit <- cli.Run(command) }()

	for {
		select {
		case code := <-exit:
			say("kube-apiserver ended with %d", code)
			return code
		case err := <-stopped:
			if err != nil {
				say("controllers: %v", err)
				return 1
			}
		case <-signals:
			cancel()
			waitFor(stopped, controllersStopWithin)
			genericapiserver.RequestShutdown()
			if !waitFor(exit, serverStopsWithin) {
				say("kube-apiserver is still serving %s after it was asked to stop; leaving it", serverStopsWithin)
			}
			say("stopped")
			return 0
		}
	}
}

// waitFor tells whether a value arrived in time.
func waitFor[T any](values <-chan T, limit time.Duration) bool {
	select {
	case <-values:
		return true
	case <-time.After(limit):
		return false
	}
}
