module github.com/tickless/tickless

go 1.25.0
