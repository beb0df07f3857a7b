//go:build !linux

package cgroup

import "errors"

func own() (dir string, err error) { return "", errors.New("only Linux has cgroups") }
