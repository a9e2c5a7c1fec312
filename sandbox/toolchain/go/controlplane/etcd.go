package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	etcdStartsWithin = 30 * time.Second
	etcdStopsWithin  = 2 * time.Second
)

// The kernel allows 108 bytes for the path of a unix socket.
const longestSocketPath = 100

type store struct {
	server   *embed.Etcd
	endpoint string
	sockets  string // a folder to remove, or empty
}

// startEtcd runs etcd on unix sockets: no port, and nobody but the owner of the folder can connect.
func startEtcd(dataDir string) (*store, error) {
	data, err := filepath.Abs(filepath.Join(dataDir, "etcd"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	s := &store{}
	folder := filepath.Dir(data)
	if len(filepath.Join(folder, "client.sock")) > longestSocketPath {
		if s.sockets, err = os.MkdirTemp("", "etcd-"); err != nil {
			return nil, err
		}
		folder = s.sockets
	} else if err := os.Chmod(folder, 0o700); err != nil {
		return nil, err
	}
	client, peer := socket(folder, "client.sock"), socket(folder, "peer.sock")
	s.endpoint = "unix://" + client.Host

	config := embed.NewConfig()
	config.Dir = data
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{client}, []url.URL{peer}
	// What a member advertises must look like host:port; a single member never dials it.
	nobody := []url.URL{{Scheme: "http", Host: "localhost:0"}}
	config.AdvertiseClientUrls, config.AdvertisePeerUrls = nobody, nobody
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true // the sandbox's data need not survive a power cut
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"}
	if s.server, err = embed.StartEtcd(config); err != nil {
		return nil, err
	}
	select {
	case <-s.server.Server.ReadyNotify():
		return s, nil
	case err := <-s.server.Err():
		return nil, errors.Join(err, s.close())
	case <-time.After(etcdStartsWithin):
		return nil, errors.Join(fmt.Errorf("not ready after %s", etcdStartsWithin), s.close())
	}
}

func socket(folder, name string) url.URL {
	path := filepath.Join(folder, name)
	_ = os.Remove(path)                        // left by a process that was killed
	return url.URL{Scheme: "unix", Host: path} // etcd binds what stands in Host
}

// close waits only shortly: etcd would give every client 7 seconds to finish, and all of them are in this process.
func (s *store) close() error {
	closed := make(chan struct{})
	go func() { s.server.Close(); close(closed) }()
	waitFor(closed, etcdStopsWithin)
	if s.sockets != "" {
		return os.RemoveAll(s.sockets)
	}
	return nil
}
