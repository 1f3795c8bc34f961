package project_test

import (
	"testing"

	"github.com/tickless/tickless/migrate"
)

// Timers in package variables are not rewritten if a test may use them in a synctest
// bubble, directly or through a helper package.
func TestProject_Bubbles(t *testing.T) {
	const do = `

import "time"

var t *time.Timer

func Do() { t = time.AfterFunc(time.Second, func() {}) }
`
	const use = "\nfunc Run(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }\n"
	const helper = "\n\nimport (\n\t\"testing\"\n\t\"testing/synctest\"\n)\n" + use
	dir := write(t, map[string]string{
		"go.mod":              "module example.com/m\n\ngo 1.25\n\nrequire example.com/far v0.0.0\n\nreplace example.com/far => ./far\n",
		"far/go.mod":          "module example.com/far\n\ngo 1.25\n",
		"far/far.go":          "package far" + helper,
		"testutil/util.go":    "package testutil" + helper,
		"mid/mid.go":          "package mid\n\nimport \"example.com/m/testutil\"\n\nvar Run = testutil.Run\n",
		"helped/a.go":         "package helped" + do,
		"helped/a_test.go":    "package helped_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/helped\"\n\t\"example.com/m/mid\"\n)\n\nfunc Test(t *testing.T) { mid.Run(t, func() { helped.Do() }) }\n",
		"afar/a.go":           "package afar" + do,
		"afar/a_test.go":      "package afar\n\nimport (\n\t\"testing\"\n\n\t\"example.com/far\"\n)\n\nfunc Test(t *testing.T) { far.Run(t, func() { Do() }) }\n",
		"below/a.go":          "package below" + do,
		"above/a.go":          "package above\n\nimport \"example.com/m/below\"\n\nvar Do = below.Do\n",
		"above/a_tag_test.go": "//go:build tagged\n\npackage above\n\nimport _ \"testing/synctest\"\n",
		"apart/a.go":          "package apart" + do,
		"all/all_test.go":     "//go:build tagged\n\npackage all\n\nimport (\n\t_ \"example.com/m/apart\"\n\t_ \"example.com/m/mid\"\n)\n",
		"own/a.go":            "package own" + do,
		"own/a_test.go":       "package own\n\nimport _ \"testing/synctest\"\n",
		"user/a.go":           "package user\n\nimport _ \"example.com/m/own\"" + do[1:],
	})
	const kept = "the package's variable t holds it, and a test may use it inside and outside a testing/synctest bubble (a.go:5)"
	compare(t, load(t, dir, migrate.Options{}, "./..."), map[string]string{
		"helped/a.go:7 time.AfterFunc": kept,
		"afar/a.go:7 time.AfterFunc":   kept,
		"below/a.go:7 time.AfterFunc":  kept,
		"apart/a.go:7 time.AfterFunc":  kept,
		"own/a.go:7 time.AfterFunc":    kept,
		"user/a.go:8 time.AfterFunc":   "",
	})
}
