//go:build tools

// Package tools names the proxy's command, so that go.mod keeps what it needs.
package tools

import _ "github.com/Shopify/toxiproxy/v2/cmd/server"
