package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// runChild is one measurement.
func runChild(s *settings, out io.Writer) error {
	name, work, _ := strings.Cut(s.child, "/")
	for _, x := range sides {
		for _, w := range works {
			if x.name == name && w.name == work {
				opened, err := x.open(s.dir)
				if err != nil {
					return err
				}
				figures, err := w.run(context.Background(), s, opened)
				if err := errors.Join(err, opened.close()); err != nil {
					return err
				}
				return json.NewEncoder(out).Encode(figures)
			}
		}
	}
	return fmt.Errorf("there is no measurement %q", s.child)
}

// results has the figures of each run, by side, workload and name of the figure.
type results map[string][]float64

func key(side, work, figure string) string { return side + "/" + work + "/" + figure }

// measureAll runs everything, the sides in turn.
func measureAll(s *settings, out io.Writer) error {
	all := make(results)
	for i := range s.runs {
		for _, w := range works {
			for _, x := range sides {
				if !slices.Contains(s.works, w.name) || !slices.Contains(s.sides, x.name) || w.worker && !x.worker {
					continue
				}
				figures, err := measureOne(s, x.name, w.name)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", x.name, w.name, err)
				}
				for _, figure := range slices.Sorted(maps.Keys(figures)) {
					k := key(x.name, w.name, figure)
					all[k] = append(all[k], figures[figure])
					fmt.Fprintf(os.Stderr, "run %d %s %.5g\n", i+1, k, figures[figure])
				}
			}
		}
	}
	if s.raw != "" {
		if err := os.WriteFile(s.raw, []byte(raw(all)), 0o644); err != nil {
			return err
		}
	}
	text := report(s, all)
	if s.out != "" {
		return publish(s.out, text)
	}
	_, err := io.WriteString(out, text)
	return err
}

// patience is how long a measurement may take beyond its time.
const patience = 2 * time.Minute

func measureOne(s *settings, side, work string) (figures map[string]float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.dir, "tickless-benchmark-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), patience+20*s.time)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "--child", side+"/"+work, "--dir", filepath.Clean(dir),
		"--time", s.time.String(), "--tasks", fmt.Sprint(s.tasks))
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return figures, json.Unmarshal(answer, &figures)
}
