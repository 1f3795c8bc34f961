//go:build ignore

// Modules prepares the repository's modules for a release. Run it in the folder migrate,
// because that module requires golang.org/x/mod:
//
//	cd migrate && go run ../scripts/modules/main.go check v0.1.0
//
// The command check tests the release as a user sees it. It puts all modules into a folder
// that serves as the module proxy. Then it gets each module with go get, builds its
// packages, and installs the program tickless.
//
// The command strip changes the go.mod files. It removes the replace directives, because
// `go install` refuses a module with them. It also makes the modules require one another
// at the given version.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	root    = "github.com/tickless/tickless"
	command = root + "/cmd/tickless"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("modules: ")
	if len(os.Args) != 3 || module.Check(root, os.Args[2]) != nil {
		log.Fatal("usage: modules check|strip VERSION, for example v0.1.0")
	}
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err == nil {
		err = os.Chdir(strings.TrimSpace(string(top)))
	}
	if err != nil {
		log.Fatal(err)
	}
	mods, err := modules()
	if err == nil {
		switch version := os.Args[2]; os.Args[1] {
		case "check":
			err = check(mods, fmt.Sprintf("%s-check.%d", version, time.Now().Unix()))
		case "strip":
			for _, m := range mods {
				err = os.WriteFile(m.dir+"/go.mod", m.releaseGoMod(version), 0o644)
				if err != nil {
					break
				}
			}
		default:
			err = fmt.Errorf("unknown command %q, want check or strip", os.Args[1])
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A mod is a Go module of the repository.
type mod struct {
	path, dir string
	goMod     []byte
	files     []string // relative to the repository's root, without files of nested modules
}

// modules returns the repository's modules, the core first.
func modules() ([]mod, error) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, err
	}
	files := strings.Fields(string(out))
	var mods []mod
	for _, f := range files {
		if path.Base(f) != "go.mod" || strings.Contains(f, "testdata/") {
			continue
		}
		text, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue // removed, but the removal is not committed yet
		}
		m := mod{path: modfile.ModulePath(text), dir: path.Dir(f), goMod: text}
		if err != nil {
			return nil, err
		}
		if m.path == root {
			mods = append([]mod{m}, mods...)
		} else {
			mods = append(mods, m)
		}
	}
	for _, f := range files {
		if i := ownerIndex(mods, f); i >= 0 {
			mods[i].files = append(mods[i].files, f)
		}
	}
	return mods, nil
}

// ownerIndex returns the index of the module that contains a file. If several modules are
// nested around the file, it is the innermost.
func ownerIndex(mods []mod, file string) int {
	innermost := -1
	for i, m := range mods {
		if (m.dir == "." || strings.HasPrefix(file, m.dir+"/")) && (innermost < 0 || len(m.dir) > len(mods[innermost].dir)) {
			innermost = i
		}
	}
	return innermost
}

// releaseGoMod returns the go.mod file that the module has in a release.
func (m mod) releaseGoMod(version string) []byte {
	f, err := modfile.Parse(m.dir+"/go.mod", m.goMod, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range f.Replace {
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			log.Fatal(err)
		}
	}
	for _, r := range f.Require {
		if r.Mod.Path == root || strings.HasPrefix(r.Mod.Path, root+"/") {
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				log.Fatal(err)
			}
		}
	}
	f.Cleanup()
	text, err := f.Format()
	if err != nil {
		log.Fatal(err)
	}
	return text
}

// A file is a file in a module's zip. name is its path in the zip, source that on disk.
type file struct{ name, source string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(f.source) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.source) }

// writeToProxy writes the module into proxy, a folder that the go command can use as a
// module proxy.
func (m mod) writeToProxy(proxy, version string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	versionDir := filepath.Join(proxy, escaped, "@v")
	if err := os.MkdirAll(versionDir, 0o755); err != nil {
		return err
	}
	goMod := m.releaseGoMod(version)
	var files []zip.File
	hasLicense := false
	for _, f := range m.files {
		if _, err := os.Lstat(f); err != nil {
			continue
		}
		name := strings.TrimPrefix(f, m.dir+"/")
		zipped := file{name: name, source: f}
		if name == "go.mod" {
			zipped.source = filepath.Join(versionDir, version+".mod")
		}
		hasLicense = hasLicense || name == "LICENSE"
		files = append(files, zipped)
	}
	if !hasLicense { // for a nested module, the go command adds LICENSE too
		files = append(files, file{name: "LICENSE", source: "LICENSE"})
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	for name, text := range map[string]string{version + ".info": info, version + ".mod": string(goMod), "list": version + "\n"} {
		if err := os.WriteFile(filepath.Join(versionDir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(versionDir, version+".zip"))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := zip.Create(out, module.Version{Path: m.path, Version: version}, files); err != nil {
		return err
	}
	return out.Close()
}

// check gets and builds each module, and installs the command. The version must be new,
// because the module cache may contain an old one.
func check(mods []mod, version string) error {
	temp, err := os.MkdirTemp("", "release-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	proxy := filepath.Join(temp, "proxy")
	for _, m := range mods {
		if err := m.writeToProxy(proxy, version); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	env := goEnv("GOPROXY", "GOMODCACHE")
	defer removeFromCache(env["GOMODCACHE"], mods, version)
	environ := append(os.Environ(), "GOPROXY=file://"+proxy+","+env["GOPROXY"], "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw",
		"GOPRIVATE=", "GONOPROXY=", "GONOSUMDB="+root+","+root+"/*", "CGO_ENABLED=0", "GOBIN="+filepath.Join(temp, "bin"))
	run := func(dir string, args ...string) error {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, environ
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	for i, m := range mods {
		dir := filepath.Join(temp, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		program := "package main\n\nimport (\n"
		for _, p := range m.packages() {
			program += fmt.Sprintf("\t_ %q\n", p)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program+")\n\nfunc main() {}\n"), 0o644); err != nil {
			return err
		}
		for _, args := range [][]string{{"mod", "init", "example.com/user"}, {"get", m.path + "@" + version}, {"build", "-o", os.DevNull, "."}} {
			if err := run(dir, args...); err != nil {
				return fmt.Errorf("%s: %w", m.path, err)
			}
		}
		fmt.Printf("%s: %d packages\n", m.path, len(m.packages()))
	}
	if err := run(temp, "install", command+"@"+version); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(temp, "bin", "tickless"), "--help").CombinedOutput(); err != nil {
		return fmt.Errorf("tickless --help: %w\n%s", err, out)
	}
	fmt.Printf("%s: installed\n", command)
	return nil
}

// packages returns the packages of the module that other modules may import.
func (m mod) packages() (paths []string) {
	seen := map[string]bool{}
	for _, f := range m.files {
		dir := path.Dir(strings.TrimPrefix(f, m.dir+"/"))
		if !strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_test.go") || seen[dir] ||
			strings.Contains("/"+dir+"/", "/internal/") || strings.Contains("/"+dir+"/", "/testdata/") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil || strings.HasPrefix(string(text), "//go:build") || strings.Contains(string(text), "\npackage main\n") || strings.HasPrefix(string(text), "package main\n") {
			continue
		}
		seen[dir] = true
		paths = append(paths, path.Join(m.path, dir))
	}
	return paths
}

func goEnv(names ...string) map[string]string {
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		log.Fatal(err)
	}
	values := strings.Split(string(out), "\n")
	env := map[string]string{}
	for i, name := range names {
		env[name] = values[i]
	}
	return env
}

// removeFromCache removes the version of each module from the module cache.
func removeFromCache(cache string, mods []mod, version string) {
	for _, m := range mods {
		escaped, err := module.EscapePath(m.path)
		if err != nil {
			continue
		}
		os.RemoveAll(filepath.Join(cache, escaped+"@"+version))
		left, _ := filepath.Glob(filepath.Join(cache, "cache", "download", escaped, "@v", version+".*"))
		for _, f := range left {
			os.Remove(f)
		}
	}
}
