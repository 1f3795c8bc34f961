//go:build ignore

// Modules prepares the repository's modules for a release. Run it in the folder migrate,
// because that module requires golang.org/x/mod:
//
//	cd migrate && go run ../scripts/modules/main.go check v0.1.0
//
// The command check tests the release as a user sees it. It puts all modules into a folder
// that serves as the module proxy. Then it gets each module with go get, builds its
// packages and the README's snippets, and installs the program tickless.
//
// The command strip changes the go.mod files. It removes the replace directives, because
// `go install` refuses a module with them. It also makes the modules require one another
// at the given version. In the pages, it changes what says that nothing is tagged yet.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	corePath    = "github.com/tickless/tickless"
	commandPath = corePath + "/cmd/tickless"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("modules: ")
	if len(os.Args) != 3 || module.Check(corePath, os.Args[2]) != nil {
		log.Fatal("usage: modules check|strip VERSION, for example v0.1.0")
	}
	repoRoot, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err == nil {
		err = os.Chdir(strings.TrimSpace(string(repoRoot)))
	}
	if err != nil {
		log.Fatal(err)
	}
	mods, err := listModules()
	if err == nil {
		switch version := os.Args[2]; os.Args[1] {
		case "check":
			err = checkRelease(mods, fmt.Sprintf("%s-check.%d", version, time.Now().Unix()))
		case "strip":
			for _, m := range mods {
				err = os.WriteFile(m.dir+"/go.mod", m.releaseGoMod(version), 0o644)
				if err != nil {
					break
				}
			}
			if err == nil {
				err = releasePages(strings.TrimPrefix(version, "v"), time.Now().UTC().Format(time.DateOnly))
			}
		default:
			err = fmt.Errorf("unknown command %q, want check or strip", os.Args[1])
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A goModule is a Go module of the repository.
type goModule struct {
	path, dir string
	goMod     []byte
	files     []string // relative to the repository's root, without files of nested modules
}

// listModules returns the repository's modules, the core first.
func listModules() ([]goModule, error) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, err
	}
	files := strings.Fields(string(out))
	var mods []goModule
	for _, f := range files {
		if path.Base(f) != "go.mod" || strings.Contains(f, "testdata/") {
			continue
		}
		text, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue // removed, but the removal is not committed yet
		}
		m := goModule{path: modfile.ModulePath(text), dir: path.Dir(f), goMod: text}
		if err != nil {
			return nil, err
		}
		if m.path == corePath {
			mods = append([]goModule{m}, mods...)
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
func ownerIndex(mods []goModule, file string) int {
	innermostIndex := -1
	for i, m := range mods {
		if (m.dir == "." || strings.HasPrefix(file, m.dir+"/")) && (innermostIndex < 0 || len(m.dir) > len(mods[innermostIndex].dir)) {
			innermostIndex = i
		}
	}
	return innermostIndex
}

// releaseGoMod returns the go.mod file that the module has in a release.
func (m goModule) releaseGoMod(version string) []byte {
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
		if r.Mod.Path == corePath || strings.HasPrefix(r.Mod.Path, corePath+"/") {
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

// releasePages changes the pages that say that the version is not tagged yet.
func releasePages(version, date string) error {
	for _, change := range []struct{ file, old, new string }{
		{"CHANGELOG.md", `(?m)^## ` + regexp.QuoteMeta(version) + ` \(not tagged yet\)$`, "## " + version + " (" + date + ")"},
		{"README.md", `(?m)^Status: .* License:`, "Status: " + version + "; before 1.0 the API may change. License:"},
		{"README.md", `(?m)^Until .* is tagged, .*\n\n`, ""},
		{"README.md", `(?m)^go work init \S+ \S+`, "go get " + corePath},
		{"README.md", `(?m)^go work use .*`, "go get " + corePath + "/durable/sqlitestore"},
		{"durable/README.md", `(?m)^These modules are not tagged yet.*\n\n`, ""},
	} {
		text, err := os.ReadFile(change.file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(change.file, regexp.MustCompile(change.old).ReplaceAll(text, []byte(change.new)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A zipFile is a file of a module's zip: its path in the zip, and its path on disk.
type zipFile struct{ zipPath, diskPath string }

func (f zipFile) Path() string                 { return f.zipPath }
func (f zipFile) Lstat() (os.FileInfo, error)  { return os.Lstat(f.diskPath) }
func (f zipFile) Open() (io.ReadCloser, error) { return os.Open(f.diskPath) }

// writeToProxy writes the module into proxyDir, a folder that the go command can use as a
// module proxy.
func (m goModule) writeToProxy(proxyDir, version string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	versionDir := filepath.Join(proxyDir, escaped, "@v")
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
		zippedFile := zipFile{zipPath: name, diskPath: f}
		if name == "go.mod" {
			zippedFile.diskPath = filepath.Join(versionDir, version+".mod")
		}
		hasLicense = hasLicense || name == "LICENSE"
		files = append(files, zippedFile)
	}
	if !hasLicense { // for a nested module, the go command adds LICENSE too
		files = append(files, zipFile{zipPath: "LICENSE", diskPath: "LICENSE"})
	}
	infoJSON := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	for name, text := range map[string]string{version + ".info": infoJSON, version + ".mod": string(goMod), "list": version + "\n"} {
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

// checkRelease gets and builds each module, and installs the command. The version must be
// new, because the module cache may contain an old one.
func checkRelease(mods []goModule, version string) error {
	tempDir, err := os.MkdirTemp("", "release-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tempDir)
	proxyDir := filepath.Join(tempDir, "proxy")
	for _, m := range mods {
		if err := m.writeToProxy(proxyDir, version); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	goVars := goEnv("GOPROXY", "GOMODCACHE")
	defer removeFromCache(goVars["GOMODCACHE"], mods, version)
	environ := append(os.Environ(), "GOPROXY=file://"+proxyDir+","+goVars["GOPROXY"], "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw",
		"GOPRIVATE=", "GONOPROXY=", "GONOSUMDB="+corePath+","+corePath+"/*", "CGO_ENABLED=0", "GOBIN="+filepath.Join(tempDir, "bin"))
	runGo := func(dir string, args ...string) error {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, environ
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	for i, m := range mods {
		dir := filepath.Join(tempDir, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		program := "package main\n\nimport (\n"
		for _, p := range m.importablePackages() {
			program += fmt.Sprintf("\t_ %q\n", p)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program+")\n\nfunc main() {}\n"), 0o644); err != nil {
			return err
		}
		for _, args := range [][]string{{"mod", "init", "example.com/user"}, {"get", m.path + "@" + version}, {"build", "-o", os.DevNull, "."}} {
			if err := runGo(dir, args...); err != nil {
				return fmt.Errorf("%s: %w", m.path, err)
			}
		}
		fmt.Printf("%s: %d packages\n", m.path, len(m.importablePackages()))
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	for i, program := range snippetPrograms(string(readme)) {
		dir := filepath.Join(tempDir, fmt.Sprint("readme", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
			return err
		}
		commands := [][]string{{"mod", "init", "example.com/readme"}}
		for _, m := range mods {
			if strings.Contains(program, `"`+m.path+`"`) || m.path == corePath {
				commands = append(commands, []string{"get", m.path + "@" + version})
			}
		}
		for _, args := range append(commands, []string{"build", "-o", os.DevNull, "."}) {
			if err := runGo(dir, args...); err != nil {
				return fmt.Errorf("the README's snippet %d: %w\n%s", i+1, err, program)
			}
		}
	}
	fmt.Println("README.md: the snippets compile")
	if err := runGo(tempDir, "install", commandPath+"@"+version); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(tempDir, "bin", "tickless"), "--help").CombinedOutput(); err != nil {
		return fmt.Errorf("tickless --help: %w\n%s", err, out)
	}
	fmt.Printf("%s: installed\n", commandPath)
	return nil
}

// snippetPrograms returns a program for each Go snippet of the README, with the imports that
// the snippet does not show.
func snippetPrograms(readme string) (programs []string) {
	for _, m := range regexp.MustCompile("(?s)\n```go\n(?:import \\((.*?)\n\\)\n)?(.*?)\n```\n").FindAllStringSubmatch(readme, -1) {
		imports, body := m[1], m[2]
		for _, path := range []string{"context", "fmt", "log", "time", corePath + "/timer"} {
			if name := filepath.Base(path); strings.Contains(body, name+".") && !strings.Contains(imports, `"`+path+`"`) {
				imports += fmt.Sprintf("\n\t%q", path)
			}
		}
		programs = append(programs, "package main\n\nimport ("+imports+"\n)\n\nfunc main() {\n"+body+"\n}\n")
	}
	return programs
}

// importablePackages returns the packages of the module that other modules may import.
func (m goModule) importablePackages() (paths []string) {
	seenDirs := map[string]bool{}
	for _, f := range m.files {
		dir := path.Dir(strings.TrimPrefix(f, m.dir+"/"))
		if !strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_test.go") || seenDirs[dir] ||
			strings.Contains("/"+dir+"/", "/internal/") || strings.Contains("/"+dir+"/", "/testdata/") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil || strings.HasPrefix(string(text), "//go:build") || strings.Contains(string(text), "\npackage main\n") || strings.HasPrefix(string(text), "package main\n") {
			continue
		}
		seenDirs[dir] = true
		paths = append(paths, path.Join(m.path, dir))
	}
	return paths
}

func goEnv(names ...string) map[string]string {
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		log.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	env := map[string]string{}
	for i, name := range names {
		env[name] = lines[i]
	}
	return env
}

// removeFromCache removes the version of each module from the module cache.
func removeFromCache(cache string, mods []goModule, version string) {
	for _, m := range mods {
		escaped, err := module.EscapePath(m.path)
		if err != nil {
			continue
		}
		os.RemoveAll(filepath.Join(cache, escaped+"@"+version))
		cachedFiles, _ := filepath.Glob(filepath.Join(cache, "cache", "download", escaped, "@v", version+".*"))
		for _, f := range cachedFiles {
			os.Remove(f)
		}
	}
}
