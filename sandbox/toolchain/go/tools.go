//go:build tools

// Package tools names the commands that are built straight from their own modules, so that go.mod keeps what they need.
package tools

import (
	_ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
