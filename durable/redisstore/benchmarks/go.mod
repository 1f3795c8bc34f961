module github.com/tickless/tickless/durable/redisstore/benchmarks

go 1.25.0

replace (
	github.com/tickless/tickless => ../../..
	github.com/tickless/tickless/durable => ../..
	github.com/tickless/tickless/durable/redisstore => ../
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/hibiken/asynq v0.26.0
	github.com/redis/go-redis/v9 v9.22.0
	github.com/tickless/tickless/durable v0.0.0
	github.com/tickless/tickless/durable/redisstore v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/tickless/tickless v0.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	google.golang.org/protobuf v1.36.10 // indirect
)
