// Package upstream runs the tests of another module against a package of this
// repository that has the same methods: so it is that module's authors who say what
// these have to do.
package upstream
