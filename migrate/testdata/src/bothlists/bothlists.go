package bothlists

import (
	"time"

	tickless "github.com/tickless/tickless/timer"
)

type short = *time.Timer

func lists(x any) {
	switch x.(type) {
	case []*tickless.Timer, []short:
	}
}

func filled() { lists([]short{time.AfterFunc(1, nil)}) } // want `stays: a type switch has a case`

func funcs(x any) {
	switch x.(type) {
	case map[string]func() *tickless.Timer:
	case map[string]func() *time.Ticker:
	}
}
