// License: MIT, in LICENSE.

module github.com/tickless/tickless/clocks

go 1.25.0

require (
	github.com/jonboulle/clockwork v0.5.0
	github.com/tickless/tickless v0.1.0
	go.uber.org/goleak v1.3.0
	k8s.io/utils v0.0.0-20260707023825-cf1189d6abe3
)

require (
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/tickless/tickless => ../
