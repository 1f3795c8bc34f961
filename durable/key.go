package durable

import (
	"crypto/rand"
	"slices"
)

// NewKey returns a unique random key of 26 letters and digits. A Task without a Key
// gets one.
func NewKey() string { return rand.Text() }

// withKeys returns a copy of items in which each has a key.
func withKeys(items []Item) []Item {
	items = slices.Clone(items)
	for i := range items {
		if items[i].Task.Key == "" {
			items[i].Task.Key = NewKey()
		}
	}
	return items
}
