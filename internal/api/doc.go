// Command api lists what the public packages of the core export.
//
// The listing is in the folder api of the repository, one file a package and one
// line a constant, variable, function, type, field or method, in the form of Go's own
// api folder. `make api` compares it with the code and fails if they differ: so no
// exported name comes, goes or changes unseen. `make api-update` writes it again.
//
// A listing is that of linux/amd64. No package of the core exports anything else
// elsewhere.
package main
