// License: MIT, in LICENSE.

module github.com/tickless/tickless/examples

go 1.25.0

require (
	github.com/coder/websocket v1.8.15
	github.com/stretchr/testify v1.12.1
	github.com/tickless/tickless v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sync v0.22.0 // indirect
	modernc.org/libc v1.72.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
	modernc.org/sqlite v1.50.0 // indirect
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/redis/go-redis/v9 v9.22.0
	github.com/tickless/tickless/durable v0.1.0
	github.com/tickless/tickless/durable/redisstore v0.1.0
	github.com/tickless/tickless/durable/sqlitestore v0.1.0
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/tickless/tickless => ../

replace github.com/tickless/tickless/durable => ../durable

replace github.com/tickless/tickless/durable/redisstore => ../durable/redisstore

replace github.com/tickless/tickless/durable/sqlitestore => ../durable/sqlitestore
