package imports

import (
	"fmt"
	stdtime "time"
)

func alias() {
	fmt.Println(stdtime.Now())
	stdtime.AfterFunc(1, alias) // want `can be`
}
