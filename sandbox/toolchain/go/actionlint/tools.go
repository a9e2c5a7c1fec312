//go:build tools

// Package tools names the linter's command, so that go.mod keeps what it needs.
package tools

import _ "github.com/rhysd/actionlint/cmd/actionlint"
