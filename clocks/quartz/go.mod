module github.com/tickless/tickless/clocks/quartz

go 1.25.0

require (
	github.com/coder/quartz v0.3.1
	github.com/tickless/tickless v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/tickless/tickless => ../..
