// License: MIT, in LICENSE.

module github.com/tickless/tickless/cmd/tickless

go 1.25.0

replace github.com/tickless/tickless => ../..

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	github.com/tickless/tickless v0.1.0
	github.com/tickless/tickless/service v0.1.0
)

require (
	github.com/aymanbagabas/go-udiff v0.4.1 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/prometheus/client_golang v1.24.1 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/tickless/tickless/observe/prom v0.1.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	golang.org/x/tools v0.48.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
	modernc.org/libc v1.72.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
	modernc.org/sqlite v1.50.0 // indirect
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/redis/go-redis/v9 v9.22.0
	github.com/tickless/tickless/durable v0.1.0
	github.com/tickless/tickless/durable/pgstore v0.1.0
	github.com/tickless/tickless/durable/redisstore v0.1.0
	github.com/tickless/tickless/durable/sqlitestore v0.1.0
	github.com/tickless/tickless/migrate v0.1.0
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/tickless/tickless/durable => ../../durable

replace github.com/tickless/tickless/durable/redisstore => ../../durable/redisstore

replace github.com/tickless/tickless/migrate => ../../migrate

replace github.com/tickless/tickless/durable/sqlitestore => ../../durable/sqlitestore

replace github.com/tickless/tickless/durable/pgstore => ../../durable/pgstore

replace github.com/tickless/tickless/service => ../../service

replace github.com/tickless/tickless/observe/prom => ../../observe/prom
