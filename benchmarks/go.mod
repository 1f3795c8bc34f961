// License: MIT, in LICENSE.

module github.com/tickless/tickless/benchmarks

go 1.25.0

require (
	github.com/RussellLuo/timingwheel v0.0.0-20220218152713-54845bda3108
	github.com/antlabs/timer v0.1.4
	github.com/tickless/tickless v0.1.0
	github.com/xiaoxuxiansheng/timewheel v0.0.0-20230923134855-8f0e64b6ef3f
)

require (
	github.com/antlabs/stl v0.0.2 // indirect
	github.com/demdxx/gocast v1.2.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/gomodule/redigo v1.8.9 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/stretchr/objx v0.5.3 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
	modernc.org/libc v1.72.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/fatih/color v1.18.0 // indirect
	github.com/hibiken/asynq v0.26.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/redis/go-redis/v9 v9.22.0
	github.com/spaolacci/murmur3 v1.1.0 // indirect
	github.com/tickless/tickless/durable v0.1.0
	github.com/tickless/tickless/durable/pgstore v0.1.0
	github.com/tickless/tickless/durable/redisstore v0.1.0
	github.com/tickless/tickless/durable/sqlitestore v0.1.0
	github.com/zeromicro/go-zero v1.10.3
	go.opentelemetry.io/otel v1.40.0 // indirect
	go.opentelemetry.io/otel/trace v1.40.0 // indirect
	go.uber.org/atomic v1.12.0
	go.uber.org/automaxprocs v1.6.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	modernc.org/sqlite v1.50.0
)

replace github.com/tickless/tickless => ..

replace github.com/tickless/tickless/durable => ../durable

replace github.com/tickless/tickless/durable/redisstore => ../durable/redisstore

replace github.com/tickless/tickless/durable/sqlitestore => ../durable/sqlitestore

replace github.com/tickless/tickless/durable/pgstore => ../durable/pgstore
