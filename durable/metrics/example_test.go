package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/metrics"
	"github.com/tickless/tickless/observe/vars"
)

// A Client's metrics, exported through package vars.
func ExampleClient() {
	client := durable.New(memstore.New())
	client.Schedule(context.Background(), durable.Task{Key: "order-17", Handler: "remind"}, durable.After(time.Hour))

	var all struct {
		Client map[string]struct {
			Tasks map[string]int `json:"queue.tasks"`
		} `json:"durable.client"`
	}
	json.Unmarshal([]byte(vars.New(metrics.Client("orders", client)).String()), &all)
	fmt.Println(all.Client["orders"].Tasks["pending"], "pending")
	// Output: 1 pending
}
