package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	update := flag.Bool("update", false, "add the claims that docs/claims.txt lacks to it")
	flag.Parse()
	c, err := check(".")
	if err != nil {
		log.Fatal("claims: ", err)
	}
	if *update {
		if err := c.update(); err != nil {
			log.Fatal("claims: ", err)
		}
	}
	for _, w := range c.wrong {
		fmt.Println(w)
	}
	fmt.Printf("%d claims, %d of them proved, %d more measured by a benchmark that says what it finds and nothing of what it should; %d things are wrong\n",
		c.claims, c.proved, c.measured, len(c.wrong))
	if len(c.wrong) > 0 {
		os.Exit(1)
	}
}
