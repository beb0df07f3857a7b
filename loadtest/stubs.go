package main

type plot struct{ file, svg string }

func (r *Report) page() ([]byte, error) { return nil, nil }

func (r *Report) plots() []plot { return nil }
