module github.com/tickless/tickless/durable

go 1.25.0

replace github.com/tickless/tickless => ../

require (
	github.com/stretchr/testify v1.12.1
	github.com/tickless/tickless v0.0.0
	go.uber.org/goleak v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
