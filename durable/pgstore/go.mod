// License: MIT, in LICENSE.

module github.com/tickless/tickless/durable/pgstore

go 1.25.0

replace (
	github.com/tickless/tickless => ../../
	github.com/tickless/tickless/durable => ../
)

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/stretchr/testify v1.12.1
	github.com/tickless/tickless v0.1.0
	github.com/tickless/tickless/durable v0.1.0
)

require (
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
