package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is a commit in a directory of its own.
type source struct {
	dir    string
	commit string
	time   time.Time // of the commit: files have it as their time
}

// checkout clones the commit of a repository, without what is not committed.
func checkout(ctx context.Context, repo, commit, dir string) (source, error) {
	hash, err := output(ctx, repo, nil, "git", "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return source{}, err
	}
	if _, err := output(ctx, repo, nil, "git", "clone", "--quiet", "--shared", "--no-checkout", repo, dir); err != nil {
		return source{}, err
	}
	if _, err := output(ctx, dir, nil, "git", "checkout", "--quiet", "--detach", hash); err != nil {
		return source{}, err
	}
	seconds, err := output(ctx, dir, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return source{}, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	return source{
		dir:    dir,
		commit: hash,
		time:   time.Unix(n, 0).UTC(),
	}, err
}

// read returns a file of the commit.
func (s source) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(s.dir, name)) }

// files returns entries for files of the commit, by their names in the archive.
func (s source) files(names map[string]string) ([]entry, error) {
	var list []entry
	for name, from := range names {
		body, err := s.read(from)
		if err != nil {
			return nil, err
		}
		list = append(list, entry{
			path: name,
			mode: 0o644,
			body: body,
		})
	}
	return list, nil
}

// output runs a command in a directory, with variables beside those of this process. It returns what the command
// printed, without the space around it. An error has what it complained about.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	out, err := outputBytes(ctx, dir, env, name, args...)
	return strings.TrimSpace(string(out)), err
}

func outputBytes(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}
