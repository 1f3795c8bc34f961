package bubble

import (
	"testing"
	"testing/synctest"
)

func TestWork(t *testing.T) { synctest.Test(t, func(*testing.T) { work() }) }
