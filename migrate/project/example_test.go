package project_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tickless/tickless/migrate/project"
)

func Example() {
	p, err := project.Load(context.Background(), project.Config{
		Dir:      "testdata/module",
		Patterns: []string{"./..."},
		Env:      env(),
	})
	if err != nil {
		log.Fatal(err)
	}
	c := p.Counts()
	fmt.Printf("%d of %d calls can be rewritten\n", c.Rewritten, c.Sites)
	// Output: 5 of 10 calls can be rewritten
}
