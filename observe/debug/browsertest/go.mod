module github.com/tickless/tickless/observe/debug/browsertest

go 1.25.0

replace github.com/tickless/tickless => ../../..

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/stretchr/testify v1.12.1
	github.com/tickless/tickless v0.0.0
)

require (
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
