// License: MIT, in LICENSE.

module github.com/tickless/tickless/durable

go 1.25.0

replace github.com/tickless/tickless => ../

require (
	github.com/emirpasic/gods/v2 v2.0.0-alpha
	github.com/stretchr/testify v1.12.1
	github.com/tickless/tickless v0.1.0
	go.uber.org/goleak v1.3.0
)

require (
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
