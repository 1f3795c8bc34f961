// Package genericboxes has generic functions ask for types.
package genericboxes

import "time"

// API keeps its type.
type API struct{ T *time.Timer }

func api() {
	a := API{time.AfterFunc(1, nil)} // want `stays: T is part of the API of package genericboxes`
	var v any = a.T
	get[*time.Timer](v).Stop()
}

func get[T any](v any) T { return v.(T) }

func other() {
	t := time.AfterFunc(1, nil) // want `stays: a type assertion may return it, or another timer that is not rewritten: T is part of the API`
	get[*time.Timer](t).Stop()
}
