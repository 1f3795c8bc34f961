// License: MIT, in LICENSE.

module github.com/tickless/tickless/durable/sqlitestore

go 1.25.0

replace (
	github.com/tickless/tickless => ../../
	github.com/tickless/tickless/durable => ../
)

require (
	github.com/stretchr/testify v1.12.1
	github.com/tickless/tickless v0.1.0
	github.com/tickless/tickless/durable v0.1.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.47.0
	modernc.org/sqlite v1.50.0
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	modernc.org/libc v1.72.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
)
