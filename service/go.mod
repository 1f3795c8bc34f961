// License: MIT, in LICENSE.

module github.com/tickless/tickless/service

go 1.25.0

replace (
	github.com/tickless/tickless => ..
	github.com/tickless/tickless/durable => ../durable
	github.com/tickless/tickless/durable/sqlitestore => ../durable/sqlitestore
	github.com/tickless/tickless/observe/prom => ../observe/prom
)

require (
	github.com/prometheus/client_golang v1.24.1
	github.com/stretchr/testify v1.12.1
	github.com/tickless/tickless v0.1.0
	github.com/tickless/tickless/durable v0.1.0
	github.com/tickless/tickless/observe/prom v0.1.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.22.0 // indirect
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/time v0.14.0
	google.golang.org/protobuf v1.36.11 // indirect
)
