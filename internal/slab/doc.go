// Package slab is the arena of package bucket, with what the timing wheel needs besides:
// each entry also keeps a tag, a grain and a place, each bucket an expiration and a load,
// a Ref packs into a word, and entries can be looked at by their slots. Package bucket
// says what both guarantee.
package slab
