// License: MIT, in LICENSE.

module github.com/tickless/tickless

go 1.25.0

require (
	github.com/emirpasic/gods/v2 v2.0.0-alpha
	github.com/stretchr/testify v1.12.1
	go.uber.org/atomic v1.12.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.47.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
