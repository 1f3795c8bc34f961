// Package upstream runs the tests of another module against a package of this
// repository that has the same methods: so that module's authors say what these have
// to do. What all such packages have in common, the clocks of other libraries, has a
// contract besides.
package upstream
