package bucket_test

import (
	"fmt"

	"github.com/tickless/tickless/bucket"
)

func ExampleArena() {
	var a bucket.Arena[string]
	b := a.NewBuckets(1)
	var refs []bucket.Ref
	for _, v := range []string{"first", "second", "third"} {
		e := a.New(0, v)
		a.PushBack(b, e)
		refs = append(refs, a.Ref(e))
	}

	// An entry in the middle is removed by its Ref.
	if e, ok := a.Find(refs[1]); ok {
		a.Unlink(e)
		fmt.Println("taken out:", a.Free(e))
	}
	_, ok := a.Find(refs[1])
	fmt.Println("still there:", ok)

	for e, ok := a.Front(b); ok; e, ok = a.Front(b) {
		a.Unlink(e)
		fmt.Println("in order:", a.Free(e))
	}
	// Output:
	// taken out: second
	// still there: false
	// in order: first
	// in order: third
}
