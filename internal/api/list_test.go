package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package p

import "io"

const Limit = 3

var Err error

type Option interface{ apply() }

type Reader interface {
	Read(p []byte) (n int, err error)
	io.Closer
}

type inner struct{}

func (inner) Promoted() {}

type Box[T any] struct {
	inner
	Value  T
	hidden int
}

func (b *Box[T]) Set(v T) {}
func (b Box[T]) Get() T   { return b.Value }
func (b Box[T]) secret()  {}

type ID = int

func Make[K comparable](keys ...K) (n int, err error) { return 0, nil }
func local() {}
`

func TestSurface_ListsEveryKindOfName(t *testing.T) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	require.NoError(t, err)
	p, err := (&types.Config{Importer: importing{}}).Check("p", fset, []*ast.File{f}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"const Limit untyped int = 3",
		"func Make[K comparable](...K) (int, error)",
		"method (*Box) Set(T)",
		"method (Box) Get() T",
		"method (Box) Promoted()",
		"type Box[T any] struct",
		"type Box[T any] struct, Value T",
		"type ID = int",
		"type Option interface { unexported methods }",
		"type Reader interface { Close() error; Read([]byte) (int, error) }",
		"var Err error",
	}, surface(p))
}

// importing has package io, as far as the source needs it.
type importing struct{}

func (importing) Import(path string) (*types.Package, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "io.go", "package io; type Closer interface{ Close() error }", 0)
	if err != nil {
		return nil, err
	}
	return new(types.Config).Check(path, fset, []*ast.File{f}, nil)
}

func TestDifference_SaysWhatCameAndWent(t *testing.T) {
	require.Equal(t, []string{"-b", "+c"}, difference([]string{"a", "b"}, []string{"a", "c"}))
	require.Empty(t, difference([]string{"a"}, []string{"a"}))
	require.Equal(t, []string{"+a"}, difference(nil, []string{"a"}))
}
