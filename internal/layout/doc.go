// Package layout holds no code, only a test: that the module's packages
// import one another in one direction, and that the core stands on few
// modules. The order is drawn in the README.
package layout
