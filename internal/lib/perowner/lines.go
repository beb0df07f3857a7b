package perowner

// Lines has items of owners, which are taken owners in turn, and those of an owner in the order in which they came. It
// bounds nothing: see Queue. The zero Lines is empty. One goroutine at a time may call its methods.
type Lines[T any] struct {
	of     map[string][]T
	owners []string // those that have items, the next one first
}

// Push adds an item of an owner.
func (l *Lines[T]) Push(owner string, item T) {
	line := l.of[owner]
	if len(line) == 0 {
		if l.of == nil {
			l.of = make(map[string][]T)
		}
		l.owners = append(l.owners, owner)
	}
	l.of[owner] = append(line, item)
}

// Pop takes an item of the next owner. It returns false when there is none.
func (l *Lines[T]) Pop() (item T, ok bool) {
	if len(l.owners) == 0 {
		return item, false
	}
	owner := l.owners[0]
	l.owners = l.owners[1:]
	line := l.of[owner]
	item, line[0] = line[0], item // what is taken is not kept in memory
	if len(line) == 1 {
		delete(l.of, owner)
		return item, true
	}
	l.of[owner] = line[1:]
	l.owners = append(l.owners, owner)
	return item, true
}

// Owners returns how many owners have items.
func (l *Lines[T]) Owners() int { return len(l.owners) }

// Waiting returns how many items an owner has.
func (l *Lines[T]) Waiting(owner string) int { return len(l.of[owner]) }
